"""The interval of a median and of a ratio, from samples. What follows from them: decision.py. docs/compare.md has the rule and its error
rates."""

import math

import numpy as np

from mkframe.decision import HUGE, ONE_PROCESS_LIMIT, Comparison, decide, undecided_zero
from mkframe.stats.bootstrap import CONFIDENCE, bootstrap_medians, interval
from mkframe.stats.processes import UNSEEN_SPREAD, Level, difference, level_of_logs, level_of_samples, process_logs, reading_variance
from mkframe.stats.samples import Samples

RATIO_CONFIDENCE = 0.99
"""Of the interval of a ratio: at most 1 % of the pairs of equals may be ranked."""


def median_interval(samples: Samples, round_process: tuple[int, ...], step_ms: float | None, seed: int) -> tuple[float, float]:
    """95 % interval of the median in ms, as `compare` uses it: Student's t over the processes, or with one process the bootstrap
    over its rounds and samples, which says nothing of other processes."""
    if len(set(round_process)) < 2:
        return interval(bootstrap_medians(samples, round_process, np.random.default_rng(seed)))
    level = level_of_samples(samples, round_process, step_ms)
    return (0.0, HUGE) if level is None else _exp(level.interval(CONFIDENCE))


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
    first, second = level_of_samples(one, owners[0], step_ms), level_of_samples(other, owners[1], step_ms)
    if first is None or second is None:
        return undecided_zero()
    if processes < 2:
        generator = np.random.default_rng(seed)
        medians_one, medians_other = bootstrap_medians(one, owners[0], generator), bootstrap_medians(other, owners[1], generator)
        ratios = medians_one / np.maximum(medians_other, np.finfo(np.float64).tiny)  # a resample may be zero
        ratio_interval, intervals = interval(np.minimum(ratios, HUGE)), (interval(medians_one), interval(medians_other))
    else:
        halved = (1 + RATIO_CONFIDENCE) / 2
        logs = [process_logs(samples, owner) for samples, owner in zip((one, other), owners, strict=True)]
        pairs = np.array([logs[0][process] - logs[1][process] for process in sorted(logs[0].keys() & logs[1].keys())])
        found = [difference(first, second).interval(halved)]
        if pairs.size > 1:
            found.append(level_of_logs(pairs, 2 * reading_variance(step_ms, min(first.center, second.center))).interval(halved))
        ratio_interval = _exp(min(found, key=lambda ends: ends[1] - ends[0]))
        intervals = (_exp(first.interval(CONFIDENCE)), _exp(second.interval(CONFIDENCE)))
    return decide(_medians(one, other), ratio_interval, intervals, step_ms, processes, ONE_PROCESS_LIMIT)


def compare_apart(
    one: Samples, one_process: tuple[int, ...], other: Samples, other_process: tuple[int, ...], step_ms: float | None
) -> Comparison:
    """How `one` stands to `other` where nothing is paired: two reports, whose rounds and processes may differ in number.

    `samples` as (rounds, samples per round) in ms, with the process of each round. The interval of the ratio is Welch's
    over the logarithms of the processes' medians, at RATIO_CONFIDENCE. A side with one process has no spread to show and
    is given UNSEEN_SPREAD. `step_ms`: the larger step of the two clocks.
    """
    first, second = level_of_samples(one, one_process, step_ms), level_of_samples(other, other_process, step_ms)
    if first is None or second is None:
        return undecided_zero()
    intervals = (_exp(first.interval(CONFIDENCE)), _exp(second.interval(CONFIDENCE)))
    ratio_interval = _exp(difference(first, second).interval(RATIO_CONFIDENCE))
    processes = min(len(set(one_process)), len(set(other_process)))
    return decide(_medians(one, other), ratio_interval, intervals, step_ms, processes, 0.0)


def unseen_ratio() -> float:
    """The least ratio between two processes, nothing else being known of either, that their spread does not explain."""
    unseen = Level(center=0.0, variance=UNSEEN_SPREAD**2, freedom=math.inf)
    return math.exp(difference(unseen, unseen).interval(RATIO_CONFIDENCE)[1])


def _exp(ends: tuple[float, float]) -> tuple[float, float]:
    return math.exp(max(ends[0], -700.0)), math.exp(min(ends[1], 700.0))


def _medians(one: Samples, other: Samples) -> tuple[float, float]:
    return float(np.median(one)), float(np.median(other))
