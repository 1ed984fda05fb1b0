"""The word of a verdict, decided anew from the figures of the report: the rule that ranked is held to its own result."""

import math
from typing import Any

from mkframe.decision import HUGE, ONE_PROCESS_LIMIT, ZERO, Comparison, Ends, decide
from mkframe.model.outcome import Verdict
from mkframe.validate.block_parts import BlockCell, workers
from mkframe.validate.comparison_parts import amount, table, whole
from mkframe.validate.finding import shown
from mkframe.validate.rule import Subject

_FITTED = 1e-9
MEDIAN_ERRORS, RATIO_ERRORS = 1.959, 2.806
"""Standard errors of half a 95 % and a 99.5 % interval of the normal distribution (stats/rule.py)."""
_ZEROS = (ZERO, "the baseline's median is zero")
"""The second: as the first versions wrote it."""


def word_fault(subject: Subject, record: dict[str, Any], cell: BlockCell, baseline: BlockCell, step_ms: float | None) -> str | None:
    """Why a verdict and its reason do not follow from medians, intervals, step and processes; None where they do, and where a figure
    is no figure.

    With two processes or more the intervals of the cells are those that decided. With one process they come from other resamples of
    the same samples, and before schema 1.2 from another rule: there a word stands that follows from ends that lie a little elsewhere.
    """
    word, reason = record.get("verdict"), record.get("reason")
    medians, ratio_ends = (cell.p50_ms, baseline.p50_ms), (amount(record.get("ratio_low")), amount(record.get("ratio_high")))
    ends = [tuple(amount(table(one.record, "interval").get(name)) for name in ("low_ms", "high_ms")) for one in (cell, baseline)]
    told = whole(table(subject.document, "mkframe", "timing").get("processes"))
    if told is None or told < 1 or None in (*medians, *ratio_ends, *ends[0], *ends[1]):
        return None
    if 0.0 in medians:
        return None if word == Verdict.UNDECIDED and reason in _ZEROS else f"{word}, and a median is zero"
    exact = told > 1 and cell.since_1_2 and baseline.since_1_2
    processes = {1, 2} if told == 1 and len(workers(subject)) > 1 else {min(told, 2)}  # a worker that died was followed by another
    may: list[Comparison] = [
        decide(medians, ratio_ends, (moved(ends[0]), moved(ends[1])), step_ms, count, ONE_PROCESS_LIMIT)  # type: ignore[arg-type]
        for count in sorted(processes)
        for moved in ((_wider_by(_FITTED), _wider_by(-_FITTED)) if exact else (_wider_by(1.0), _wider_by(0.0), _wider_by(-0.25)))
    ]
    if any(one.verdict == word and one.reason == reason for one in may):
        return None
    first = may[len(may) // 2]
    because = f" because {first.reason}" if first.reason else ""
    stated = f"{word} because {shown(reason)}" if reason is not None else str(word)
    return f"{stated}, and medians, intervals, step and processes of the report say {first.verdict}{because}"


def _wider_by(share: float) -> Any:
    """Moves both ends of an interval outwards by a share of its width."""

    def moved(ends: Ends) -> Ends:
        by = share * min(ends[1] - ends[0], HUGE / 4)
        return max(ends[0] - by, 0.0), min(ends[1] + by, HUGE) if math.isfinite(ends[1] + by) else HUGE

    return moved


def too_narrow(subject: Subject, low: Any, high: Any, time_ms: float | None, errors: float) -> str | None:
    """Why an interval around a time is narrower than the clock's step allows; None where it is not, or where nobody can tell.

    However well processes agree, each reading has the variance step^2 / 12, so that with n processes the logarithms of the ends lie at
    least 2 `errors` sqrt(step^2 / 12 / n) / time apart. `errors`: the quantile of the normal distribution, which Student's is above.
    """
    low, high, step_ms = amount(low), amount(high), amount(table(subject.document, "mkframe", "timing").get("timer_step_ms"))
    told = whole(table(subject.document, "mkframe", "timing").get("processes")) or 1
    if not low or not high or not step_ms or not time_ms or told < 2:
        return None
    least = 2 * errors * step_ms / time_ms / math.sqrt(12) / math.sqrt(max(len(workers(subject)), told))  # the count may be any integer
    if math.log(high) - math.log(low) >= least * 0.9:
        return None
    return f"an interval from {shown(low)} to {shown(high)}, narrower than readings of a clock with steps of {step_ms * 1e3:.3g} us can be"
