"""Statistics of samples: summaries, the step of a clock, intervals of medians, and when two medians may be ranked.

The rule for ranking and its error rates: docs/compare.md, benchmarks/compare_error_table.py.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mkframe.model.outcome import Verdict
from mkframe.model.report import Summary

Samples = NDArray[np.float64]
"""Times in milliseconds, shape (rounds, samples per round)."""

RESAMPLES = 500
CONFIDENCE = 0.95
SAME_WITHIN = 0.01
"""Two medians whose whole ratio interval lies within 1 % of one are SAME."""
ONE_PROCESS_LIMIT = 0.05
"""Rounds of one process agree to 0.1 % while processes differ by 3 to 7 %: one process decides nothing below 5 %."""
RATIO_CONFIDENCE = 0.99
"""Of the interval of a ratio: at most 1 % of the pairs of equals may be ranked."""
UNSEEN_SPREAD = 0.07
"""Standard deviation taken for processes where only one was measured: the upper end of what processes were seen to differ by."""

_STEPS_MS = tuple(32e-6 * 2.0**k for k in range(5, -1, -1))
"""Candidate steps of an event clock: 32 ns x 2^k up to 1.024 us, largest first."""
_STEP_SLACK_MS = 1e-6


def summarize(samples: Samples) -> Summary:
    """Summary of all samples, whatever their shape. p50 is the mean of the two middle samples of an even count; p95
    is the inclusive linear quantile, at position 0.95 (n - 1)."""
    flat = np.asarray(samples, dtype=np.float64).ravel()
    p50, p95 = np.quantile(flat, (0.5, 0.95), method="linear")
    return Summary(
        count=flat.size,
        p50_ms=float(p50),
        p95_ms=float(p95),
        min_ms=float(flat.min()),
        max_ms=float(flat.max()),
        mean_ms=_mean(flat),
    )


def _mean(flat: Samples) -> float:
    """The mean, kept inside [min, max] where rounding of the sum would push it out by an ulp."""
    return float(min(max(flat.mean(), flat.min()), flat.max()))


def event_step_ms(values: Samples) -> float | None:
    """The step of an event clock: the largest of 32 ns x 2^k, up to 1.024 us, on which more than half of at least eight
    values lie (within 1 ns). None where there is no such step, as on a fine clock."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if flat.size < 8:
        return None
    for step in _STEPS_MS:
        off = np.abs(flat - np.rint(flat / step) * step)
        if np.count_nonzero(off <= _STEP_SLACK_MS) * 2 > flat.size:
            return step
    return None


def clock_step_ms(values: Samples) -> float | None:
    """The step of a fine clock, in ms: the smallest difference between two different readings. None with fewer than two."""
    distinct = np.unique(np.asarray(values, dtype=np.float64).ravel())
    return float(np.diff(distinct).min()) if distinct.size > 1 else None


@lru_cache(maxsize=8)
def _resampled_rounds(round_process: tuple[int, ...], resamples: int) -> NDArray[np.int64]:
    """(resamples, rounds) indices of rounds: processes drawn first, then the rounds of each drawn process."""
    generator = np.random.default_rng(len(round_process))
    members = [np.flatnonzero(np.asarray(round_process) == process) for process in sorted(set(round_process))]
    rows = []
    for _ in range(resamples):
        processes = generator.integers(len(members), size=len(members))
        drawn = np.concatenate([generator.choice(members[p], size=members[p].size) for p in processes])
        rows.append(np.resize(drawn, len(round_process)))  # processes may differ in rounds
    return np.stack(rows)


def bootstrap_medians(
    samples: Samples, round_process: tuple[int, ...], generator: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Medians of hierarchical resamples (processes, then rounds, then samples), shape (resamples,), in ms.

    `samples` is (rounds, samples per round); `round_process[r]` is the process of round r. The rounds of resample i are
    the same for every call with the same `round_process`, so that two engines measured side by side stay paired.
    """
    rounds = _resampled_rounds(round_process, resamples)
    count = samples.shape[1]
    columns = generator.integers(count, size=(*rounds.shape, count))
    picked = samples[rounds[:, :, None], columns].reshape(resamples, -1)
    medians: NDArray[np.float64] = np.median(picked, axis=1)
    return medians


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The central 95 % of bootstrap values."""
    low, high = np.quantile(values, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return float(low), float(high)


def median_interval(samples: Samples, round_process: tuple[int, ...], step_ms: float | None, seed: int) -> tuple[float, float]:
    """95 % interval of the median in ms, as `compare` uses it: Student's t over the processes, or with one process the bootstrap
    over its rounds and samples, which says nothing of other processes."""
    if len(set(round_process)) < 2:
        return interval(bootstrap_medians(samples, round_process, np.random.default_rng(seed)))
    level = _level(samples, round_process, step_ms)
    return (0.0, _HUGE) if level is None else _exp(level.interval(CONFIDENCE))


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """`ratio` = one / other of the medians, with its interval, and what may be said of it. `reason` explains UNDECIDED."""

    verdict: Verdict
    ratio: float
    low: float
    high: float
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Level:
    """What the processes of one cell say of its time: mean of the logarithms of their medians, the variance of that mean,
    its degrees of freedom (infinite where the spread is taken and not measured)."""

    center: float
    variance: float
    freedom: float

    def interval(self, confidence: float) -> tuple[float, float]:
        half = _t_quantile(self.freedom, confidence) * math.sqrt(self.variance)
        return self.center - half, self.center + half


_HUGE = float(np.finfo(np.float64).max)
_ZERO = "a median is zero"


def compare(
    one: Samples,
    other: Samples,
    round_process: tuple[int, ...],
    step_ms: float | None,
    seed: int,
    other_process: tuple[int, ...] | None = None,
) -> Comparison:
    """How `one` stands to `other`, both (rounds, samples per round) of one run, in ms.

    `round_process` is the process of each round, `other_process` that of the rounds of `other` where it differs. The two are
    paired by process. The interval of the ratio is the shorter one of Student's t over the differences inside processes and
    of Welch's over the two sets of processes, each at half the error that RATIO_CONFIDENCE allows.
    Medians nearer than a step of the clock, or with overlapping intervals, are never ranked; nor is a difference
    below 5 % that rests on one process.
    """
    owners = (round_process, round_process if other_process is None else other_process)
    processes = min(len(set(owner)) for owner in owners)
    first, second = _level(one, owners[0], step_ms), _level(other, owners[1], step_ms)
    if first is None or second is None:
        return _undecided_zero()
    if processes < 2:
        generator = np.random.default_rng(seed)
        medians_one, medians_other = bootstrap_medians(one, owners[0], generator), bootstrap_medians(other, owners[1], generator)
        ratios = medians_one / np.maximum(medians_other, np.finfo(np.float64).tiny)  # a resample may be zero
        ratio_interval, intervals = interval(np.minimum(ratios, _HUGE)), (interval(medians_one), interval(medians_other))
    else:
        halved = (1 + RATIO_CONFIDENCE) / 2
        logs = [_process_logs(samples, owner) for samples, owner in zip((one, other), owners, strict=True)]
        pairs = np.array([logs[0][process] - logs[1][process] for process in sorted(logs[0].keys() & logs[1].keys())])
        found = [_difference(first, second).interval(halved)]
        if pairs.size > 1:
            found.append(_level_of(pairs, 2 * _reading_variance(step_ms, min(first.center, second.center))).interval(halved))
        ratio_interval = _exp(min(found, key=lambda ends: ends[1] - ends[0]))
        intervals = (_exp(first.interval(CONFIDENCE)), _exp(second.interval(CONFIDENCE)))
    return _decide(one, other, ratio_interval, intervals, step_ms, processes, ONE_PROCESS_LIMIT)


def compare_apart(
    one: Samples, one_process: tuple[int, ...], other: Samples, other_process: tuple[int, ...], step_ms: float | None
) -> Comparison:
    """How `one` stands to `other` where nothing is paired: two reports, whose rounds and processes may differ in number.

    `samples` as (rounds, samples per round) in ms, with the process of each round. The interval of the ratio is Welch's
    over the logarithms of the processes' medians, at RATIO_CONFIDENCE. A side with one process has no spread to show and
    is given UNSEEN_SPREAD. `step_ms`: the larger step of the two clocks.
    """
    first, second = _level(one, one_process, step_ms), _level(other, other_process, step_ms)
    if first is None or second is None:
        return _undecided_zero()
    intervals = (_exp(first.interval(CONFIDENCE)), _exp(second.interval(CONFIDENCE)))
    ratio_interval = _exp(_difference(first, second).interval(RATIO_CONFIDENCE))
    processes = min(len(set(one_process)), len(set(other_process)))
    return _decide(one, other, ratio_interval, intervals, step_ms, processes, 0.0)


def unseen_ratio() -> float:
    """The least ratio between two processes, nothing else being known of either, that their spread does not explain."""
    unseen = _Level(center=0.0, variance=UNSEEN_SPREAD**2, freedom=math.inf)
    return math.exp(_difference(unseen, unseen).interval(RATIO_CONFIDENCE)[1])


def _undecided_zero() -> Comparison:
    return Comparison(verdict=Verdict.UNDECIDED, ratio=1.0, low=0.0, high=_HUGE, reason=_ZERO)


def _process_logs(samples: Samples, round_process: tuple[int, ...]) -> dict[int, float]:
    """Logarithm of each process's median over all its samples; -inf for a median of zero."""
    owner = np.asarray(round_process)
    medians = {process: float(np.median(samples[owner == process])) for process in sorted(set(round_process))}
    return {process: math.log(median) if median > 0 else -math.inf for process, median in medians.items()}


def _level(samples: Samples, round_process: tuple[int, ...], step_ms: float | None) -> _Level | None:
    """None where a median is zero and has no logarithm."""
    logs = np.array(list(_process_logs(samples, round_process).values()))
    if not np.isfinite(logs).all():
        return None
    return _level_of(logs, _reading_variance(step_ms, float(logs.mean())))


def _level_of(logs: NDArray[np.float64], least: float) -> _Level:
    """`least`: variance of a process that the clock's step hides, however well the readings agree."""
    if logs.size < 2:
        return _Level(center=float(logs[0]), variance=UNSEEN_SPREAD**2, freedom=math.inf)
    return _Level(center=float(logs.mean()), variance=max(float(logs.var(ddof=1)), least) / logs.size, freedom=logs.size - 1)


def _reading_variance(step_ms: float | None, log_ms: float) -> float:
    """Variance of a reading, relative to the time, that a clock with this step rounds: step^2 / 12."""
    return 0.0 if step_ms is None else (step_ms / math.exp(log_ms)) ** 2 / 12


def _difference(one: _Level, other: _Level) -> _Level:
    """one - other, independent of each other, with the degrees of freedom of Welch and Satterthwaite; where the numbers of
    processes differ, those of the smaller one, because Welch's are too many when the small sample happens to look calm."""
    variance = one.variance + other.variance
    if one.freedom != other.freedom and math.isfinite(max(one.freedom, other.freedom)):
        freedom = min(one.freedom, other.freedom)
    elif variance == 0:
        freedom = one.freedom
    else:
        share = (one.variance / variance) ** 2 / one.freedom + (other.variance / variance) ** 2 / other.freedom
        freedom = 1 / share if share > 0 else math.inf
    return _Level(center=one.center - other.center, variance=variance, freedom=freedom)


@lru_cache(maxsize=4096)
def _t_quantile(freedom: float, confidence: float) -> float:
    """Half width, in standard errors, of the central interval of Student's t (of the normal distribution where infinite)."""
    from scipy.special import ndtri, stdtrit  # here: importing it takes longer than most commands

    share = (1 + confidence) / 2
    return float(stdtrit(freedom, share) if math.isfinite(freedom) else ndtri(share))


def _exp(ends: tuple[float, float]) -> tuple[float, float]:
    return math.exp(max(ends[0], -700.0)), math.exp(min(ends[1], 700.0))


def _decide(
    one: Samples,
    other: Samples,
    ratio_interval: tuple[float, float],
    intervals: tuple[tuple[float, float], tuple[float, float]],
    step_ms: float | None,
    processes: int,
    one_process_limit: float,
) -> Comparison:
    """`processes`: on the side that has fewer. `one_process_limit`: what one process may not decide below."""
    median_one, median_other = float(np.median(one)), float(np.median(other))
    if min(median_one, median_other) <= 0:
        return _undecided_zero()
    ratio = median_one / median_other
    low, high = min(ratio_interval[0], ratio), max(ratio_interval[1], ratio)
    verdict, reason = Verdict.FASTER if ratio < 1 else Verdict.SLOWER, None
    resolves = step_ms is None or step_ms <= SAME_WITHIN * min(intervals[0][0], intervals[1][0])
    if resolves and processes > 1 and low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        verdict = Verdict.SAME
    elif step_ms is not None and abs(median_one - median_other) <= step_ms:
        reason = f"the medians differ by no more than one step of the clock ({step_ms * 1e3:.3g} us)"
    elif max(intervals[0][0], intervals[1][0]) <= min(intervals[0][1], intervals[1][1]):
        reason = "the intervals of the medians overlap"
    elif low <= 1 <= high:
        reason = "the interval of the ratio holds 1"
    elif processes < 2 and abs(ratio - 1) < one_process_limit:
        reason = "one process decides nothing below 5 %"
    return Comparison(verdict=Verdict.UNDECIDED if reason else verdict, ratio=ratio, low=low, high=high, reason=reason)
