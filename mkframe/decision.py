"""When two medians may be ranked: the rule itself, on figures alone. Runs decide by it, and `validate` holds reports to it.

docs/compare.md has the rule and its error rates; intervals come from stats.
"""

import sys
from dataclasses import dataclass

from mkframe.model.outcome import Verdict, within_a_step

SAME_WITHIN = 0.01
"""Two medians whose whole ratio interval lies within 1 % of one are SAME."""
ONE_PROCESS_LIMIT = 0.05
"""Rounds of one process agree to 0.1 % while processes differ by 3 to 7 %: one process decides nothing below 5 %."""
HUGE = sys.float_info.max
ZERO = "a median is zero"

Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """`ratio` = one / other of the medians, with its interval, and what may be said of it. `reason` explains UNDECIDED."""

    verdict: Verdict
    ratio: float
    low: float
    high: float
    reason: str | None = None


def decide(
    medians: Ends, ratio_interval: Ends, intervals: tuple[Ends, Ends], step_ms: float | None, processes: int, one_process_limit: float
) -> Comparison:
    """What may be said of two medians in ms, with the intervals of each and of their ratio. `processes`: on the side that has fewer.
    `one_process_limit`: what one process may not decide below."""
    one, other = medians
    if min(medians) <= 0:
        return undecided_zero()
    ratio = min(one / other, HUGE)
    low, high = min(ratio_interval[0], ratio), max(ratio_interval[1], ratio)
    verdict, reason = Verdict.FASTER if ratio < 1 else Verdict.SLOWER, None
    resolves = step_ms is None or step_ms <= SAME_WITHIN * min(intervals[0][0], intervals[1][0])
    if resolves and processes > 1 and low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        verdict = Verdict.SAME
    elif step_ms is not None and within_a_step(one, other, step_ms):
        reason = f"the medians differ by no more than one step of the clock ({step_ms * 1e3:.3g} us)"
    elif max(intervals[0][0], intervals[1][0]) <= min(intervals[0][1], intervals[1][1]):
        reason = "the intervals of the medians overlap"
    elif low <= 1 <= high:
        reason = "the interval of the ratio holds 1"
    elif processes < 2 and abs(ratio - 1) < one_process_limit:
        reason = "one process decides nothing below 5 %"
    return Comparison(verdict=Verdict.UNDECIDED if reason else verdict, ratio=ratio, low=low, high=high, reason=reason)


def undecided_zero() -> Comparison:
    return Comparison(verdict=Verdict.UNDECIDED, ratio=1.0, low=0.0, high=HUGE, reason=ZERO)
