"""The probe of a GPU on a paper device: planted times come back in the card, planted faults give an error and no card."""

from dataclasses import replace

import numpy as np
import probe_fakes as fakes
import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_fakes import HOPPER, FakeGpu

from mkframe.errors import RunError
from mkframe.model.device_card import Body, MeasuredCard, Operation, Pattern, Scope
from mkframe.probe import fit, memory_cases
from mkframe.probe.cards import findings_of
from mkframe.probe.session import probe_gpu

AMPERE = replace(HOPPER, name="Paper 8000", compute_capability="8.0", shared_bytes_per_block=163 * 1024)


def probed(gpu: FakeGpu, rounds: int = 2) -> MeasuredCard:
    return probe_gpu(gpu, rounds=rounds, now=gpu.now)


@pytest.fixture(scope="module")
def card() -> MeasuredCard:
    return probed(FakeGpu())


def test_launch_floors_come_back(card: MeasuredCard) -> None:
    assert card.launches
    measured = [floor for floor in card.launches if floor.time is not None]
    assert {(f.cluster, f.cooperative, f.programmatic) for f in measured} >= {
        (8, False, False),
        (1, True, False),
        (1, False, True),
        (4, True, True),
    }
    for floor in measured:
        assert floor.time is not None
        if floor.body is Body.EMPTY:
            expected = fakes.empty_us(floor.grid, floor.cluster, floor.cooperative, floor.programmatic)
        else:
            mode = (Body.PARAMETERS, Body.STORE, Body.LOAD, Body.ROUND_TRIP).index(floor.body)
            expected = fakes.TOUCH_US[mode] - (0.37 if floor.programmatic else 0)
        assert floor.time.median_us == pytest.approx(expected), floor
    assert {f.body for f in measured} == set(Body)


def test_launches_that_do_not_fit_have_a_reason_and_no_time() -> None:
    card = probed(FakeGpu(facts=replace(HOPPER, multiprocessors=2)))
    assert card.launches
    refused = [floor for floor in card.launches if floor.time is None]
    assert refused
    assert {bool(floor.resident_blocks) for floor in refused} == {True, False}
    assert all(floor.resident_blocks < (floor.grid if floor.cooperative else 1) and floor.reason for floor in refused)
    assert all(floor.reason is None for floor in card.launches if floor.time is not None)


def test_barriers_come_back(card: MeasuredCard) -> None:
    assert card.barriers
    assert {(b.scope, b.cluster) for b in card.barriers} == {(Scope.BLOCK, 1), (Scope.CLUSTER, 2), (Scope.CLUSTER, 4), (Scope.GRID, 1)}
    for barrier in card.barriers:
        assert barrier.step.median_us == pytest.approx(fakes.STEP_US[barrier.scope])
        assert barrier.bare.median_us == pytest.approx(fakes.BARE_US[barrier.scope])


def test_bandwidths_and_their_lines_come_back(card: MeasuredCard) -> None:
    kernels = {
        memory_cases.BULK: "ring",
        memory_cases.LOADS: "read_dram",
        memory_cases.STORES: "write",
        memory_cases.MEMSET: "memset",
        memory_cases.LOADS_STORES: "copy",
        memory_cases.CALLS: "memcpy",
        memory_cases.NODE: "memcpy",
    }
    assert {model.method for model in card.memory_models} == set(kernels)
    for model in card.memory_models:
        assert model.bytes_per_s == pytest.approx(fakes.RATE[kernels[model.method]])
        assert model.latency_us == pytest.approx(fakes.LATENCY_US)
        assert model.worst_residual < 1e-9
    for rate in card.memory:
        seconds = (fakes.LATENCY_US + rate.moved_bytes / fakes.RATE[kernels[rate.method]] * 1e6) / 1e6
        assert rate.rate.median_bytes_per_s == pytest.approx(rate.moved_bytes / seconds)
        assert rate.moved_bytes == rate.bytes * (2 if rate.operation is Operation.COPY else 1)
        assert rate.sets * rate.bytes >= 5 * HOPPER.l2_bytes


def test_l2_rates_come_back(card: MeasuredCard) -> None:
    assert card.l2
    assert {(rate.pattern, rate.method) for rate in card.l2} == {(p, m) for p in Pattern for m in (memory_cases.BULK, memory_cases.LOADS)}
    for rate in card.l2:
        planted = fakes.L2_RATE["ring" if rate.method == memory_cases.BULK else "read_l2"]
        if not (rate.method == memory_cases.BULK and rate.pattern is Pattern.DISTINCT):
            assert rate.rate.median_bytes_per_s == pytest.approx(planted)
        assert rate.bytes <= 0.6 * HOPPER.l2_bytes


def test_events_and_clocks_come_back(card: MeasuredCard) -> None:
    assert card.events
    assert card.clock
    assert card.events.step_us == pytest.approx(fakes.TICK_US)
    held = {floor.around: floor.time.median_us for floor in card.events.floors if floor.held}
    assert held == pytest.approx(fakes.EVENT_US)
    assert all(floor.time.median_us > 4 for floor in card.events.floors if not floor.held)
    assert (card.clock.idle_nvml_mhz, card.clock.light_nvml_mhz) == (345, 1980)
    assert card.clock.light_measured.median_mhz == 1980
    assert card.clock.rise_s == pytest.approx(0.2)
    assert card.clock.throttle_reasons == 4
    assert card.clock.max_power_w is not None
    assert card.clock.max_power_w > 301


def test_the_card_holds_to_its_schema_and_comes_back_from_json(card: MeasuredCard) -> None:
    assert findings_of(card.document()) == []
    assert MeasuredCard.of(card.document()) == card
    assert card.device.uuid == HOPPER.uuid
    assert card.took_s > 3


def test_an_older_device_has_a_card_without_clusters() -> None:
    gpu = FakeGpu(facts=AMPERE)
    card = probed(gpu)
    assert findings_of(card.document()) == []
    assert card.launches
    assert card.barriers
    assert card.l2
    assert not any(floor.cluster > 1 or floor.programmatic for floor in card.launches)
    assert {barrier.scope for barrier in card.barriers} == {Scope.BLOCK, Scope.GRID}
    assert not any(rate.method == memory_cases.BULK for rate in (*card.memory, *card.l2))
    assert any("9.0" in note for note in card.notes)
    assert "ring" not in gpu.ran


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        ("touch", "launch "),
        ("exchange_block", "block barrier"),
        ("exchange_cluster", "cluster barrier"),
        ("exchange_grid", "grid barrier"),
        ("barrier_grid", "not every block passed"),
        ("ring", "bulk copies"),
        ("read_dram", "16-byte loads"),
        ("write", "16-byte stores"),
        ("memset", "memset node"),
        ("memcpy", "memcpy"),
        ("copy", "16-byte loads and stores"),
        ("read_l2", "L2 "),
    ],
)
def test_a_kernel_with_wrong_data_gives_an_error_and_no_card(kernel: str, named: str) -> None:
    with pytest.raises(RunError, match="nothing was written") as caught:
        probed(FakeGpu(broken=kernel))
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kernel", ["empty", "exchange_grid", "ring", "memcpy"])
def test_work_that_takes_no_time_gives_an_error(kernel: str) -> None:
    with pytest.raises(RunError, match="took no more time"):
        probed(FakeGpu(still=kernel))


def test_sizes_follow_memory_and_l2() -> None:
    h200 = replace(HOPPER, multiprocessors=132, memory_bytes=141 * 2**30, l2_bytes=60 * 2**20)
    assert [(size >> 20, sets) for size, sets in memory_cases.sizes(h200)] == [(64, 5), (224, 2), (1024, 2)]
    small = memory_cases.sizes(replace(HOPPER, memory_bytes=6 * 2**30, l2_bytes=3 * 2**20))
    assert max(size * sets for size, sets in small) * 2 <= 6 * 2**30 / 1.9


def test_slope_takes_what_is_common_out() -> None:
    short = [2.8 + 20 * 0.54] * 5
    long = [2.8 + 120 * 0.54] * 5
    long[0] = 900.0  # one disturbed replay
    assert fit.slope_us(short, long, 100) == pytest.approx(0.54)
    with pytest.raises(ValueError, match="differs by 0"):
        fit.slope_us(short, long, 0)


def test_times_and_rates_keep_the_extremes() -> None:
    found = fit.times([3.0, 1.0, 2.0, 10.0])
    assert (found.rounds, found.median_us, found.min_us, found.max_us) == (4, 2.5, 1.0, 10.0)
    rates = fit.rates(1_000_000, [1.0, 2.0, 4.0])
    assert (rates.min_bytes_per_s, rates.median_bytes_per_s, rates.max_bytes_per_s) == (2.5e11, 5e11, 1e12)
    for wrong in ([], [1.0, 0.0]):
        with pytest.raises(ValueError, match="positive time"):
            fit.rates(1, wrong)
    with pytest.raises(ValueError, match="no round"):
        fit.times([])


@given(latency=st.floats(0.1, 50), rate=st.floats(1e9, 1e13), unit=st.integers(2**20, 2**27))
def test_the_line_through_exact_times_is_found(latency: float, rate: float, unit: int) -> None:
    points = [(size, latency + size / rate * 1e6) for size in (unit, 3 * unit, 16 * unit)]
    model = fit.memory_model(Operation.READ, "x", points)
    assert model is not None
    assert model.bytes_per_s == pytest.approx(rate, rel=1e-6)
    assert model.latency_us == pytest.approx(latency, rel=1e-4, abs=1e-6 * points[0][1])


def test_a_noisy_line_states_its_residual() -> None:
    generator = np.random.default_rng(3)
    points = [(size, (1.85 + size / 4.67e12 * 1e6) * (1 + generator.uniform(-0.01, 0.01))) for size in (2**26, 7 * 2**25, 2**30) * 5]
    model = fit.memory_model(Operation.READ, "x", points)
    assert model is not None
    assert model.bytes_per_s == pytest.approx(4.67e12, rel=0.01)
    assert 0.001 < model.worst_residual < 0.025


@pytest.mark.parametrize("points", [[], [(5, 1.0)], [(5, 1.0), (5, 2.0)], [(5, 2.0), (10, 1.0)], [(5, 1.0), (10, 0.0)]])
def test_there_is_no_line_where_there_is_none(points: list[tuple[int, float]]) -> None:
    if points:
        assert fit.memory_model(Operation.READ, "x", points) is None
    else:
        assert memory_cases.memory_models([]) == ()


def test_the_clock_rises_once_and_for_all() -> None:
    series = [(0.0, 345.0), (0.1, 1980.0), (0.2, 1200.0), (0.3, 1970.0), (0.4, 1980.0), (0.5, 1980.0), (0.6, 1980.0), (0.7, 1980.0)]
    assert fit.rise_s(series) == 0.3
    assert fit.rise_s([(0.05, 1980.0)]) == 0.05
    assert fit.mhz(594_000, 300_000) == pytest.approx(1980)
    with pytest.raises(ValueError, match="no clock"):
        fit.mhz(10, 0)
