"""How far an energy per call may be off, from the file alone: quantisation of the counter, repeats, drift of the idle power.

A counter moves in steps, so energy per call exists only as a difference over many calls, and its error must be stated. In this module
W is the length of a run and I that of its idle windows in seconds, r = W / 2I, P the mean power of the three windows, N the calls of the
run. The net energy is (E_run - r (E_before + E_after)) / N: the error of the run's window counts once, that of each idle window r times.

docs/energy-report.md says what follows from the figures. Formulas: JCGM 100:2008 (GUM), 4.2, 5.1 and G.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

MJ_PER_J = 1000
_SHAMS = 3
_EXACT_UP_TO = 200
_NORMAL_975 = 1.959963984540054


class EnergyVerdict(StrEnum):
    """What may be said of an energy above idle."""

    RESOLVED = "resolved"
    BELOW_RESOLUTION = "below_resolution"
    UNVERIFIED = "unverified"
    METER_FAULT = "meter_fault"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run between two idle windows.

    `repeats`: calls, at least 1. `run_s`: length of the run. `idle_s`: mean length of the two idle windows, above 0. `power_w`: mean of the
    mean powers of the three windows. `idle_difference_w`: what the powers of the idle windows differ by. `net_mj`: energy of one call above
    idle, sign kept.
    """

    repeats: int
    run_s: float
    idle_s: float
    power_w: float
    idle_difference_w: float
    net_mj: float

    @property
    def ratio(self) -> float:
        """r = W / 2I, without unit."""
        return self.run_s / (2 * self.idle_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meter:
    """How finely the counter tells time. `step_s`: its update period T where windows end anywhere; where they end on updates (`on_edges`)
    the bracket d within which an update is known to have happened."""

    step_s: float
    on_edges: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Net energy of one call with its uncertainty, in mJ.

    `net_mj`: mean of the rounds. `u_mj`: expanded uncertainty U (95 %), None where one round and an unknown meter say nothing of it.
    `spread_mj`: standard deviation of the rounds with n - 1, None for one. `quantisation_mj`: u_q, `bounds_mj`: B_q of each round; None and
    empty where the meter is unknown. `drift_mj`: u_d, 0 for windows that end anywhere: there the repeats hold it.
    """

    net_mj: float
    u_mj: float | None
    spread_mj: float | None
    quantisation_mj: float | None
    bounds_mj: tuple[float, ...]
    drift_mj: float


def quantisation_mj(run: Run, meter: Meter) -> float:
    """u_q: standard uncertainty of one round's net energy from the steps of the counter, mJ.

    Ends of windows that fall anywhere in a step, neighbours sharing the step they fall into:
    P T sqrt((1 + r)^2 + r^2) / sqrt(6). On edges each end has an error of its own: P d sqrt((1 + 2 r^2) / 6).
    """
    r = run.ratio
    weight = math.sqrt((1 + 2 * r**2) / 6) if meter.on_edges else math.sqrt((1 + r) ** 2 + r**2) / math.sqrt(6)
    return MJ_PER_J / run.repeats * run.power_w * meter.step_s * weight


def bound_mj(run: Run, meter: Meter) -> float:
    """B_q = P T (1 + 2r) / N: the steps alone can make a net energy of nothing this large, mJ."""
    return MJ_PER_J / run.repeats * run.power_w * meter.step_s * (1 + 2 * run.ratio)


def drift_mj(runs: Sequence[Run]) -> float:
    """u_d: standard uncertainty from an idle power that moves between the windows, mean |Pa - Pb| W / (2 sqrt(3) N), mJ."""
    each = (run.idle_difference_w * run.run_s / (2 * math.sqrt(3)) * MJ_PER_J / run.repeats for run in runs)
    return math.fsum(each) / len(runs)


def budget(runs: Sequence[Run], meter: Meter | None) -> Budget:
    """The error budget of at least one run.

    U = t(0.975, n - 1) sqrt(u_A^2 + u_d^2) with u_A = max(SD, u_q) / sqrt(n), where u_q is the root mean square of the rounds' own.
    For n = 1: U = B_q + 2 u_d. Raises OverflowError where figures leave float64.
    """
    count = len(runs)
    net = mean([run.net_mj for run in runs])
    spread = sample_sd([run.net_mj for run in runs])
    steps = [quantisation_mj(run, meter) for run in runs] if meter else []
    bounds = tuple(bound_mj(run, meter) for run in runs) if meter else ()
    u_q = math.sqrt(math.fsum(step**2 for step in steps) / count) if steps else None
    u_d = drift_mj(runs) if meter is not None and meter.on_edges else 0.0
    if spread is not None:
        u_a = max(spread, u_q or 0.0) / math.sqrt(count)
        expanded: float | None = student_t_975(count - 1) * math.sqrt(u_a**2 + u_d**2)
    else:
        expanded = bounds[0] + 2 * u_d if bounds else None
    return Budget(net_mj=net, u_mj=expanded, spread_mj=spread, quantisation_mj=u_q, bounds_mj=bounds, drift_mj=u_d)


def verdict(
    net_mj: float, u_mj: float | None, sham_mj: float | None, *, reference_passed: bool | None, meter_fault: bool = False
) -> EnergyVerdict:
    """What may be said of a net energy. `sham_mj`: net energy of an idle run that was treated like a measured one, None without one.
    `reference_passed`: None without a reference load."""
    if meter_fault or reference_passed is False:
        return EnergyVerdict.METER_FAULT
    if (u_mj is not None and not abs(net_mj) > u_mj) or (sham_mj is not None and not abs(net_mj) > _SHAMS * abs(sham_mj)):
        return EnergyVerdict.BELOW_RESOLUTION
    if u_mj is None or sham_mj is None or reference_passed is None:
        return EnergyVerdict.UNVERIFIED
    return EnergyVerdict.RESOLVED


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean of at least one value, its sum rounded once."""
    return math.fsum(values) / len(values)


def sample_sd(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1; None for one value."""
    if len(values) < 2:
        return None
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


@lru_cache(maxsize=256)
def student_t_975(freedom: int) -> float:
    """The 0.975 quantile of Student's t for a whole number of degrees of freedom, at least 1.

    Up to 200 by inverting the exact distribution (Abramowitz and Stegun 26.7.3 and 26.7.4), above by its expansion (26.7.5). Written
    out because importing scipy takes longer than checking a report.
    """
    if freedom > _EXACT_UP_TO:
        return _expanded_t(freedom)
    low, high = 1.9, 13.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if _within(middle, freedom) < 0.95:
            low = middle
        else:
            high = middle


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = sine * cosine if odd else sine
    total = 0.0
    for k in range(freedom // 2):
        total += term
        term *= cosine**2 * ((2 * k + 2) / (2 * k + 3) if odd else (2 * k + 1) / (2 * k + 2))
    return (angle + total) * 2 / math.pi if odd else total


def _expanded_t(freedom: int) -> float:
    x = _NORMAL_975
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))
