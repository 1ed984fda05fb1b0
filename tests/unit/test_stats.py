"""Summaries against independent formulas, clock steps against planted ones, verdicts against planted differences."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe import stats
from mkframe.model.outcome import Verdict

THREE_PROCESSES = (0, 0, 1, 1, 2, 2)
times = st.lists(st.floats(min_value=1e-6, max_value=1e4), min_size=2, max_size=300)


@given(times)
def test_summary_follows_the_formulas(values: list[float]) -> None:
    ordered = sorted(values)
    position = 0.95 * (len(values) - 1)
    low = int(position)
    high = min(low + 1, len(values) - 1)
    p95 = ordered[low] + (position - low) * (ordered[high] - ordered[low])
    summary = stats.summarize(np.array(values))
    assert summary.count == len(values)
    assert summary.p50_ms == pytest.approx(statistics.median(values), rel=1e-12)
    assert summary.p95_ms == pytest.approx(p95, rel=1e-9)
    assert (summary.min_ms, summary.max_ms) == (ordered[0], ordered[-1])
    assert summary.mean_ms == pytest.approx(statistics.fmean(values), rel=1e-9)


@given(times)
def test_summary_is_ordered_as_reports_demand(values: list[float]) -> None:
    s = stats.summarize(np.array(values))
    assert s.min_ms <= s.p50_ms <= s.p95_ms <= s.max_ms
    assert s.min_ms <= s.mean_ms <= s.max_ms


def test_summary_does_not_depend_on_the_shape_of_the_samples() -> None:
    values = np.random.default_rng(1).exponential(size=(6, 200))
    assert stats.summarize(values) == stats.summarize(values.ravel())


@pytest.mark.parametrize("step_us", [0.032, 0.064, 0.128, 0.256, 0.512, 1.024])
def test_event_step_is_found(step_us: float) -> None:
    ticks = np.random.default_rng(2).integers(5, 50, size=400) * 2 + 1  # odd: on no larger step
    assert stats.event_step_ms(ticks * step_us / 1e3) == pytest.approx(step_us / 1e3)


def test_event_step_is_unknown_on_a_fine_clock_and_for_few_values() -> None:
    assert stats.event_step_ms(np.random.default_rng(3).uniform(0.01, 0.02, size=400)) is None
    assert stats.event_step_ms(np.full(7, 0.001024)) is None


@given(st.integers(1, 1000), st.lists(st.integers(1, 10**6), min_size=2, max_size=50, unique=True))
def test_clock_step_is_the_smallest_difference(unit: int, readings: list[int]) -> None:
    values = np.array(readings, dtype=float) * unit
    smallest = min(b - a for a, b in zip(sorted(values), sorted(values)[1:], strict=False))
    assert stats.clock_step_ms(values) == smallest


def test_values_beyond_any_step_lie_on_none() -> None:
    assert stats.event_step_ms(np.array([1e308] * 3 + [0.001024 * count for count in range(1, 9)])) == pytest.approx(0.001024)
    assert stats.event_step_ms(np.full(20, 1.7e308)) is None


def test_clock_step_needs_two_values() -> None:
    assert stats.clock_step_ms(np.full(10, 3.0)) is None


def samples(median_us: float, seed: int, *, process_spread: float = 0.0, noise: float = 0.01) -> stats.Samples:
    """(6, 200) samples in ms: a level of its own for each of three processes, and noise."""
    generator = np.random.default_rng(seed)
    levels = 1 + process_spread * generator.standard_normal(3)
    return median_us / 1e3 * np.repeat(levels, 2)[:, None] * (1 + noise * generator.standard_normal((6, 200)))


def test_bootstrap_medians_cover_the_median() -> None:
    one = samples(20.0, 5)
    low, high = stats.interval(stats.bootstrap_medians(one, THREE_PROCESSES, np.random.default_rng(0)))
    assert low < np.median(one) < high
    assert high - low < 0.02 * low


def test_bootstrap_sees_what_processes_disagree_about() -> None:
    """Without resampling processes the interval would be that of 1200 quiet samples."""
    calm, torn = samples(20.0, 6), samples(20.0, 6, process_spread=0.05)
    widths = [
        np.subtract(*reversed(stats.interval(stats.bootstrap_medians(s, THREE_PROCESSES, np.random.default_rng(0))))) for s in (calm, torn)
    ]
    assert widths[1] > 5 * widths[0]


def test_planted_differences_are_found() -> None:
    slow, fast = samples(21.0, 7), samples(20.0, 8)
    assert stats.compare(slow, fast, THREE_PROCESSES, 32e-6, 0).verdict is Verdict.SLOWER
    found = stats.compare(fast, slow, THREE_PROCESSES, 32e-6, 0)
    assert found.verdict is Verdict.FASTER
    assert found.low <= found.ratio <= found.high
    assert found.ratio == pytest.approx(20 / 21, rel=0.01)


def test_equal_times_are_same_where_the_clock_can_tell() -> None:
    found = stats.compare(samples(20.0, 9), samples(20.0, 10), THREE_PROCESSES, 32e-6, 0)
    assert (found.verdict, found.reason) == (Verdict.SAME, None)


def test_medians_within_a_step_are_undecided() -> None:
    found = stats.compare(samples(8.9, 11, noise=1e-4), samples(8.2, 12, noise=1e-4), THREE_PROCESSES, 1.024e-3, 0)
    assert found.verdict is Verdict.UNDECIDED
    assert found.reason is not None
    assert "1.02 us" in found.reason


@given(st.integers(1, 2**14), st.sampled_from([32e-6, 0.512e-3, 1.024e-3]))
def test_medians_exactly_a_step_apart_are_undecided_however_float32_rounds_them(steps: int, step_ms: float) -> None:
    one, other = (np.full((6, 20), np.float64(np.float32(count * step_ms))) for count in (steps, steps + 1))
    assert stats.compare(one, other, THREE_PROCESSES, step_ms, 0).verdict in (Verdict.UNDECIDED, Verdict.SAME)
    far = np.full((6, 20), np.float64(np.float32((steps + 3) * step_ms)))
    assert "one step of the clock" not in (stats.compare(one, far, THREE_PROCESSES, step_ms, 0).reason or "")


def test_overlapping_intervals_are_undecided() -> None:
    found = stats.compare(samples(20.0, 13, process_spread=0.05), samples(20.4, 14, process_spread=0.05), THREE_PROCESSES, 32e-6, 0)
    assert (found.verdict, found.reason) == (Verdict.UNDECIDED, "the intervals of the medians overlap")


def test_one_process_decides_nothing_below_five_percent() -> None:
    one_process = (0,) * 6
    small = stats.compare(samples(20.6, 15), samples(20.0, 16), one_process, 32e-6, 0)
    assert (small.verdict, small.reason) == (Verdict.UNDECIDED, "one process decides nothing below 5 %")
    assert stats.compare(samples(22.0, 15), samples(20.0, 16), one_process, 32e-6, 0).verdict is Verdict.SLOWER


def test_a_zero_median_is_no_baseline() -> None:
    found = stats.compare(samples(20.0, 17), np.zeros((6, 200)), THREE_PROCESSES, None, 0)
    assert found.verdict is Verdict.UNDECIDED
