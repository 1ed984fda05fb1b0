"""The error budget of energies: against exact arithmetic, scipy, and a paper meter that knows the truth."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mkframe.energy_budget import (
    EnergyVerdict,
    Meter,
    Run,
    bound_mj,
    budget,
    drift_mj,
    quantisation_mj,
    sample_sd,
    student_t_975,
    verdict,
)

RECORDED = Run(repeats=1_000_000, run_s=16.39, idle_s=5.003, power_w=40.4, idle_difference_w=0.5, net_mj=0.011)
UNALIGNED, ON_EDGES = Meter(step_s=0.0992), Meter(step_s=0.00207, on_edges=True)
POSITIVE = st.floats(1e-3, 1e3)


def a_run(net_mj: float, **changes: float) -> Run:
    return Run(
        repeats=1_000_000,
        run_s=changes.get("run_s", 16.39),
        idle_s=changes.get("idle_s", 5.003),
        power_w=changes.get("power_w", 40.4),
        idle_difference_w=changes.get("idle_difference_w", 0.0),
        net_mj=net_mj,
    )


def test_the_figures_of_the_recorded_session() -> None:
    assert quantisation_mj(RECORDED, UNALIGNED) == pytest.approx(0.0051, abs=5e-5)
    assert bound_mj(RECORDED, UNALIGNED) == pytest.approx(0.0171, abs=5e-5)
    assert quantisation_mj(RECORDED, UNALIGNED) / quantisation_mj(RECORDED, ON_EDGES) == pytest.approx(59, abs=0.5)


@pytest.mark.parametrize("freedom", [*range(1, 31), 60, 99, 100, 199, 200, 201, 202, 500, 10_000, 10**9])
def test_the_quantile_of_student_s_t(freedom: int) -> None:
    assert student_t_975(freedom) == pytest.approx(float(stats.t.ppf(0.975, freedom)), rel=1e-10)


@given(st.integers(1, 10**6), POSITIVE, POSITIVE, POSITIVE, st.floats(1e-4, 1))
def test_quantisation_and_bound_are_the_formulas(repeats: int, run_s: float, idle_s: float, power_w: float, step_s: float) -> None:
    run = Run(repeats=repeats, run_s=run_s, idle_s=idle_s, power_w=power_w, idle_difference_w=0, net_mj=0)
    r = Fraction(run_s) / (2 * Fraction(idle_s))
    unit = Fraction(1000) / repeats * Fraction(power_w) * Fraction(step_s)
    assert bound_mj(run, Meter(step_s=step_s)) == pytest.approx(float(unit * (1 + 2 * r)), rel=1e-12)
    assert quantisation_mj(run, Meter(step_s=step_s)) ** 2 == pytest.approx(float(unit**2 * ((1 + r) ** 2 + r**2) / 6), rel=1e-12)
    edges = quantisation_mj(run, Meter(step_s=step_s, on_edges=True))
    assert edges**2 == pytest.approx(float(unit**2 * (1 + 2 * r**2) / 6), rel=1e-12)
    assert bound_mj(run, Meter(step_s=step_s, on_edges=True)) == bound_mj(run, Meter(step_s=step_s))


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=9))
def test_net_energy_and_spread_are_those_of_numpy(values: list[float]) -> None:
    found = budget([a_run(value) for value in values], None)
    assert found.net_mj == pytest.approx(float(np.mean(values)), rel=1e-12, abs=1e-12)
    assert found.spread_mj == sample_sd(values) == pytest.approx(float(np.std(values, ddof=1)), rel=1e-9, abs=1e-12)
    assert found.u_mj == pytest.approx(float(stats.t.ppf(0.975, len(values) - 1)) * float(stats.sem(values)), rel=1e-9, abs=1e-12)


def test_the_steps_are_the_least_that_rounds_may_be_said_to_differ_by() -> None:
    calm = budget([a_run(0.01)] * 4, UNALIGNED)
    assert calm.spread_mj == 0
    assert calm.u_mj == pytest.approx(float(stats.t.ppf(0.975, 3)) * quantisation_mj(RECORDED, UNALIGNED) / 2)
    wide = budget([a_run(-1.0), a_run(1.0)], UNALIGNED)
    assert wide.u_mj == pytest.approx(float(stats.t.ppf(0.975, 1)) * math.sqrt(2) / math.sqrt(2))


def test_one_round_is_known_to_its_bound() -> None:
    alone = budget([a_run(0.01, idle_difference_w=0.7)], UNALIGNED)
    assert alone.spread_mj is None
    assert alone.u_mj == bound_mj(RECORDED, UNALIGNED)
    drifting = a_run(0.01, idle_difference_w=0.7)
    on_edges = budget([drifting], ON_EDGES)
    assert on_edges.drift_mj == pytest.approx(0.7 * 16.39 / (2 * math.sqrt(3)) * 1000 / 1e6)
    assert on_edges.u_mj == pytest.approx(bound_mj(drifting, ON_EDGES) + 2 * on_edges.drift_mj)
    assert budget([drifting], None).u_mj is None


def test_drift_counts_where_windows_end_on_edges_alone() -> None:
    runs = [a_run(0.01, idle_difference_w=0.2), a_run(0.01, idle_difference_w=0.4)]
    assert drift_mj(runs) == pytest.approx(0.3 * 16.39 / (2 * math.sqrt(3)) * 1e-3)
    assert budget(runs, UNALIGNED).drift_mj == 0
    u_a = quantisation_mj(RECORDED, ON_EDGES) / math.sqrt(2)
    assert budget(runs, ON_EDGES).u_mj == pytest.approx(float(stats.t.ppf(0.975, 1)) * math.hypot(u_a, drift_mj(runs)))


def measured_on_paper(sessions: int, rounds: int, on_edges: bool, net_w: float, seed: int) -> np.ndarray:
    """Net energies in mJ, (sessions, rounds), of the recorded plan from a meter that is off by up to a step at every end of a window.

    Unaligned: neighbouring windows share the step they end in. On edges: each end is known to a bracket of its own.
    """
    generator = np.random.default_rng(seed)
    step_s = ON_EDGES.step_s if on_edges else UNALIGNED.step_s
    late = generator.uniform(0, step_s, (sessions, rounds, 6))  # ends of idle, run, idle
    if not on_edges:
        late[..., 2], late[..., 4] = late[..., 1], late[..., 3]
    power_w, r = RECORDED.power_w, RECORDED.ratio
    before, run, after = (power_w * (late[..., start] - late[..., start + 1]) for start in (0, 2, 4))
    return (net_w * RECORDED.run_s + run - r * (before + after)) * 1000 / RECORDED.repeats


@pytest.mark.parametrize(("on_edges", "sd"), [(False, 0.0051), (True, 0.000086)])
def test_the_spread_of_a_paper_meter_is_the_one_foretold(on_edges: bool, sd: float) -> None:
    net = measured_on_paper(20_000, 1, on_edges, 0.0, seed=1)
    assert net.std() == pytest.approx(sd, rel=0.02)
    assert net.std() == pytest.approx(quantisation_mj(RECORDED, ON_EDGES if on_edges else UNALIGNED), rel=0.02)
    assert np.abs(net).max() <= bound_mj(RECORDED, ON_EDGES if on_edges else UNALIGNED)


@pytest.mark.parametrize("on_edges", [False, True])
@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_the_uncertainty_covers_the_truth_of_a_paper_meter(on_edges: bool, rounds: int) -> None:
    net_w, meter = 0.63, ON_EDGES if on_edges else UNALIGNED
    truth = net_w * RECORDED.run_s * 1000 / RECORDED.repeats
    sessions = measured_on_paper(2000, rounds, on_edges, net_w, seed=2)
    covered = [abs(found.net_mj - truth) <= found.u_mj for found in (budget([a_run(float(one)) for one in row], meter) for row in sessions)]
    assert np.mean(covered) >= 0.95


@pytest.mark.parametrize(
    ("net", "u", "sham", "reference", "expected"),
    [
        (1.0, 0.1, 0.01, True, EnergyVerdict.RESOLVED),
        (-1.0, 0.1, -0.3, True, EnergyVerdict.RESOLVED),
        (0.1, 0.1, 0.0, True, EnergyVerdict.BELOW_RESOLUTION),
        (1.0, 0.1, -0.34, True, EnergyVerdict.BELOW_RESOLUTION),
        (0.1, 0.2, None, None, EnergyVerdict.BELOW_RESOLUTION),
        (1.0, 0.1, None, True, EnergyVerdict.UNVERIFIED),
        (1.0, 0.1, 0.01, None, EnergyVerdict.UNVERIFIED),
        (1.0, None, 0.01, True, EnergyVerdict.UNVERIFIED),
        (1.0, 0.1, 0.01, False, EnergyVerdict.METER_FAULT),
    ],
)
def test_the_verdict(net: float, u: float | None, sham: float | None, reference: bool | None, expected: EnergyVerdict) -> None:
    assert verdict(net, u, sham, reference_passed=reference) is expected
    assert verdict(net, u, sham, reference_passed=reference, meter_fault=True) is EnergyVerdict.METER_FAULT
