"""Statistics of samples: summaries, the step of a clock, intervals of medians, and when two medians may be ranked."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """`ratio` = one / other of the medians, with its interval, and what may be said of it. `reason` explains UNDECIDED."""

    verdict: Verdict
    ratio: float
    low: float
    high: float
    reason: str | None = None


def compare(one: Samples, other: Samples, round_process: tuple[int, ...], step_ms: float | None, seed: int) -> Comparison:
    """How `one` stands to `other`, both (rounds, samples per round) of the same rounds, in ms.

    Medians nearer than a step of the clock, or with overlapping intervals, are never ranked; nor is a difference
    below 5 % that rests on one process.
    """
    generator = np.random.default_rng(seed)
    medians_one = bootstrap_medians(one, round_process, generator)
    medians_other = bootstrap_medians(other, round_process, generator)
    median_one, median_other = float(np.median(one)), float(np.median(other))
    if median_other <= 0:
        return Comparison(
            verdict=Verdict.UNDECIDED, ratio=1.0, low=0.0, high=float(np.finfo(np.float64).max), reason="the baseline's median is zero"
        )
    ratio = median_one / median_other
    low, high = interval(medians_one / medians_other)
    low, high = min(low, ratio), max(high, ratio)
    verdict, reason = _verdict(
        ratio, (low, high), interval(medians_one), interval(medians_other), abs(median_one - median_other), step_ms, len(set(round_process))
    )
    return Comparison(verdict=verdict, ratio=ratio, low=low, high=high, reason=reason)


def _verdict(
    ratio: float,
    ratio_interval: tuple[float, float],
    one: tuple[float, float],
    other: tuple[float, float],
    difference_ms: float,
    step_ms: float | None,
    processes: int,
) -> tuple[Verdict, str | None]:
    resolves = step_ms is None or step_ms <= SAME_WITHIN * min(one[0], other[0])
    if resolves and processes > 1 and ratio_interval[0] >= 1 - SAME_WITHIN and ratio_interval[1] <= 1 + SAME_WITHIN:
        return Verdict.SAME, None
    if step_ms is not None and difference_ms <= step_ms:
        return Verdict.UNDECIDED, f"the medians differ by no more than one step of the clock ({step_ms * 1e3:.3g} us)"
    if max(one[0], other[0]) <= min(one[1], other[1]):
        return Verdict.UNDECIDED, "the intervals of the medians overlap"
    if processes < 2 and abs(ratio - 1) < ONE_PROCESS_LIMIT:
        return Verdict.UNDECIDED, "one process decides nothing below 5 %"
    return (Verdict.FASTER if ratio < 1 else Verdict.SLOWER), None
