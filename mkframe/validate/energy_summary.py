"""The summary of an energy report, rebuilt from its rounds."""

from collections.abc import Callable, Iterator, Sequence

from mkframe.energy_budget import sample_sd
from mkframe.validate.energy_parts import (
    RELATIVE,
    Absent,
    Node,
    Number,
    at,
    energy_rule,
    finite,
    held_against,
    items,
    number,
    whole,
)
from mkframe.validate.finding import Finding, error, shown

Statistic = Callable[[Sequence[Number]], Number]


def median(values: Sequence[Number]) -> Number:
    """Middle value, or mean of the two middle ones, of at least one."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _sd(values: Sequence[Number]) -> float:
    spread = sample_sd([float(value) for value in values])
    assert spread is not None, "at least two values"
    return spread


_STATISTICS: tuple[tuple[str, str, Statistic, str], ...] = (
    ("wall_ms_median", "wall_ms", median, "the median"),
    ("gross_mj_median", "gross_mj", median, "the median"),
    ("adjusted_mj_median", "adjusted_mj", median, "the median"),
    ("adjusted_mj_min", "adjusted_mj", min, "the smallest"),
    ("adjusted_mj_max", "adjusted_mj", max, "the largest"),
)


def of_all_rounds(document: Node, name: str) -> list[Number]:
    """One figure of every round, at least one. Raises Absent where any round lacks it."""
    values = [number(one, name) for one in items(document, "rounds")]
    if not values:
        raise Absent
    return values


def statistics(document: Node) -> Iterator[Finding]:
    """Medians and extremes."""
    for name, figure, statistic, words in _STATISTICS:
        yield from _held(document, name, figure, statistic, words)
    try:
        times = [at(one, "cuda_ms") for one in items(document, "rounds")]
        stated = at(document, "summary", "cuda_ms_median")
    except Absent:
        return
    if times and all(time is None for time in times):
        if stated is not None:
            yield error("summary", f"cuda_ms_median is {shown(stated)}, and no round has a cuda_ms", ("summary", "cuda_ms_median"))
    elif stated is None and None not in times:
        yield error("summary", "cuda_ms_median is null, and every round has a cuda_ms", ("summary", "cuda_ms_median"))
    else:
        yield from _held(document, "cuda_ms_median", "cuda_ms", median, "the median")


def _held(document: Node, name: str, figure: str, statistic: Statistic, words: str, slack: float = 0.0) -> Iterator[Finding]:
    try:
        stated, values = number(document, "summary", name), of_all_rounds(document, figure)
        rebuilt = finite(statistic, values)
    except Absent:
        return
    rule = "spread" if statistic is _sd else "summary"
    yield from held_against(rule, name, stated, rebuilt, f"{words} {figure} of the rounds", ("summary", name), slack)


def spread(document: Node) -> Iterator[Finding]:
    """Standard deviation with n - 1, and null for one round."""
    place = ("summary", "adjusted_mj_sample_sd")
    try:
        stated, count = at(document, *place), len(of_all_rounds(document, "adjusted_mj"))
    except Absent:
        return
    if count == 1:
        if stated is not None:
            yield error("spread", f"adjusted_mj_sample_sd is {shown(stated)}, must be null: one round has no spread", place)
    elif stated is None:
        yield error("spread", f"adjusted_mj_sample_sd is null, and {count} rounds have a spread", place)
    else:
        words = "the standard deviation with n - 1 of"
        yield from _held(document, "adjusted_mj_sample_sd", "adjusted_mj", _sd, words, _rounding(document))


def _rounding(document: Node) -> float:
    try:
        return RELATIVE * float(max(abs(value) for value in of_all_rounds(document, "gross_mj")))
    except Absent:
        return 0.0


def negatives(document: Node) -> Iterator[Finding]:
    """Rounds with a negative net energy are kept and counted."""
    place = ("summary", "negative_adjusted_rounds")
    try:
        stated, values = whole(document, *place), of_all_rounds(document, "adjusted_mj")
    except Absent:
        return
    count = sum(value < 0 for value in values)
    if stated != count:
        yield error("negatives", f"negative_adjusted_rounds is {stated}, and {count} rounds have a negative adjusted_mj", place)


def presence(document: Node) -> Iterator[Finding]:
    """The summary is null exactly where no round finished."""
    try:
        summary, finished = at(document, "summary"), len(items(document, "rounds"))
    except Absent:
        return
    if summary is None and finished:
        yield error("summary-presence", f"summary is null, and {finished} rounds finished", ("summary",))
    elif isinstance(summary, dict) and not finished:
        yield error("summary-presence", "the summary has figures, and no round finished", ("summary",))


SUMMARY_RULES = (
    energy_rule("summary", statistics, "medians, smallest and largest of the summary are those of the rounds"),
    energy_rule("spread", spread, "adjusted_mj_sample_sd has n - 1, and is null for one round"),
    energy_rule("negatives", negatives, "negative_adjusted_rounds counts the rounds whose adjusted_mj is negative"),
    energy_rule("summary-presence", presence, "summary is null exactly where no round finished"),
)
