"""The verdicts of a report of ours, as far as the report alone tells: who is ranked, by which medians, and what may be said of it."""

import math
from collections.abc import Iterator
from typing import Any

from mkframe.model.outcome import Verdict
from mkframe.validate.block_parts import BlockCell, Key, all_known, block_cells, block_of, key_of
from mkframe.validate.comparison_parts import ROUNDING, above, amount, items
from mkframe.validate.comparison_rules import step_of
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.verdict_word import RATIO_ERRORS, too_narrow, word_fault

Ranking = tuple[int, dict[str, Any], BlockCell, BlockCell]
"""(index, record, the cell that is ranked, its baseline)."""


def verdict_cells(subject: Subject) -> Iterator[Finding]:
    """Every cell that passed is ranked once, against the fastest baseline of its form in its case; the baseline itself is not."""
    if not isinstance(block_of(subject.document).get("verdicts"), list) or not all_known(subject):
        return
    cells = {cell.key: cell for cell in reversed(block_cells(subject))}
    if not all(isinstance(cell.record.get("baseline"), bool) for cell in cells.values()):
        return
    fastest = _fastest(cells)
    seen: dict[Key, int] = {}
    for index, record in enumerate(items(subject.document, "mkframe", "verdicts")):
        key, baseline = key_of(record), key_of(record, "baseline")
        place = ("mkframe", "verdicts", index)
        if key is None or baseline is None:
            return  # nobody knows who is ranked here
        if seen.setdefault(key, index) != index:
            yield error("verdict-cells", f"{key[2]} on {key[0]}[{key[1]}] is ranked by item {seen[key]} already", place)
            continue
        why = _no_pair(cells.get(key), cells.get(baseline), fastest)
        if why is not None:
            yield error("verdict-cells", why, place)
    unranked: set[tuple[str, int, str]] = set()
    for cell in cells.values():
        base = fastest.get(_group(cell))
        if not cell.passed or cell.p50_ms is None or base is None or cell.key in seen:
            continue
        if cell.record.get("baseline") is True and not above(cell.p50_ms, base) and _group(cell) not in unranked:
            unranked.add(_group(cell))  # the baseline that the others are held against
        else:
            yield error("verdict-cells", f"no verdict ranks {cell.text}, and its form has a baseline there", ("mkframe", "verdicts"))


def _group(cell: BlockCell) -> tuple[str, int, str]:
    return (*cell.key[:2], cell.form)


def _fastest(cells: dict[Key, BlockCell]) -> dict[tuple[str, int, str], float]:
    """The smallest median of a baseline by set, case and form."""
    found: dict[tuple[str, int, str], float] = {}
    for cell in cells.values():
        if cell.record.get("baseline") is True and cell.p50_ms is not None:
            found[_group(cell)] = min(found.get(_group(cell), math.inf), cell.p50_ms)
    return found


def _no_pair(cell: BlockCell | None, baseline: BlockCell | None, fastest: dict[tuple[str, int, str], float]) -> str | None:
    """Why a cell cannot be ranked against a baseline; None where it can."""
    if cell is None or baseline is None or cell is baseline:
        return "it ranks a cell against itself" if cell is not None and cell is baseline else "mkframe.cells has no such cells"
    if not (cell.passed and baseline.passed):
        return f"{(baseline if cell.passed else cell).text} did not pass"
    if baseline.record.get("baseline") is not True:
        return f"{baseline.key[2]} is no baseline"
    if _group(cell) != _group(baseline):
        return f"{cell.key[2]} and {baseline.key[2]} are not of one form"
    if baseline.p50_ms is not None and above(baseline.p50_ms, fastest.get(_group(baseline), baseline.p50_ms)):
        return f"{baseline.key[2]} is not the fastest baseline of its form there"
    return None


def _rankings(subject: Subject) -> Iterator[Ranking]:
    """The verdicts whose cells passed."""
    cells = {cell.key: cell for cell in block_cells(subject)}
    for index, record in enumerate(items(subject.document, "mkframe", "verdicts")):
        keys = key_of(record), key_of(record, "baseline")
        one, other = (None if key is None else cells.get(key) for key in keys)
        if one is not None and other is not None and one.passed and other.passed:
            yield index, record, one, other


def verdict_ratio(subject: Subject) -> Iterator[Finding]:
    """ratio = median of the engine / median of the baseline, inside its own interval. Where a median is zero nothing is ranked."""
    for index, record, cell, baseline in _rankings(subject):
        place = ("mkframe", "verdicts", index)
        one, other, ratio = cell.p50_ms, baseline.p50_ms, amount(record.get("ratio"))
        if one and other and ratio is not None and not math.isclose(ratio, expected := one / other, rel_tol=ROUNDING):
            if math.isfinite(expected):
                yield error("verdict-ratio", f"ratio is {shown(ratio)}, and the medians give {shown(expected)}", (*place, "ratio"))
            continue
        low, high = (amount(record.get(name)) for name in ("ratio_low", "ratio_high"))
        if ratio is not None and low is not None and high is not None and (above(low, ratio) or above(ratio, high)):
            yield error("verdict-ratio", f"the interval from {shown(low)} to {shown(high)} does not hold {shown(ratio)}", place)
        elif cell.since_1_2 and one and other:
            wrong = too_narrow(subject, low, high, max(one, other) / math.sqrt(2), RATIO_ERRORS)
            if wrong is not None:
                yield error("verdict-ratio", wrong, place)


def verdict_word(subject: Subject) -> Iterator[Finding]:
    """Word and reason follow from medians, intervals, step and processes: docs/measurement.md has the rule."""
    step_ms = step_of(subject)
    for index, record, cell, baseline in _rankings(subject):
        word = record.get("verdict")
        place = ("mkframe", "verdicts", index)
        if word not in list(Verdict) or not isinstance(record.get("reason", 0), str | None):
            continue
        if (record["reason"] is not None) is not (word == Verdict.UNDECIDED):
            yield error("verdict-word", f"reason is {shown(record['reason'])}, and the verdict is {word}", (*place, "reason"))
        elif (why := word_fault(subject, record, cell, baseline, step_ms)) is not None:
            yield error("verdict-word", why, (*place, "verdict"))


VERDICT_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=(Severity.ERROR,), says=says, check=check)
    for id, check, says in (
        ("verdict-cells", verdict_cells, "every cell that passed is ranked once, against the fastest baseline of its form and case"),
        ("verdict-ratio", verdict_ratio, "the ratio of a verdict is that of the medians, and lies in its interval"),
        (
            "verdict-word",
            verdict_word,
            "the word and the reason of a verdict follow from medians, intervals, step of the clock and processes",
        ),
    )
)
