"""How a cell of a report of ours ended that did not pass: its reason is one that a run gives for its outcome, and fits what the cell had
come to."""

import re
from collections.abc import Iterator

from mkframe.model.checks import all_checks
from mkframe.model.outcome import Outcome
from mkframe.validate.block_parts import BlockCell, block_cells, block_of, chained
from mkframe.validate.comparison_parts import number, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_RULE = "failures"
_ENDED = "the worker ended"
_SILENT = re.compile(r"the worker ended while .*: no sign of life for (\S+) s", re.DOTALL)
_IN_ROUND = re.compile(rf"(?:{_ENDED}|\w+) while timing round (\d+): ")
_TOLD = (Outcome.CRASHED, Outcome.OOM, Outcome.TIMEOUT)
"""Outcomes whose reason begins in words of ours; of others an engine may have written the beginning."""


def failures(subject: Subject) -> Iterator[Finding]:
    """Reasons, checks and costs of the cells that did not pass, of reports since schema 1.2: what a reason tells of rounds and of
    silence is what the report says of them, checks stand in their order up to the one that failed, and all cells of a case have one cost.
    """
    block = block_of(subject.document)
    kind = table(block, "device").get("kind", "")
    wanted = all_checks(kind, chained=chained(block))
    cells = [cell for cell in block_cells(subject) if cell.supported and cell.since_1_2]
    for cell in cells:
        if not cell.passed:
            yield from _checks(cell, wanted)
            yield from _reason(subject, cell)
            yield from _round(subject, cell)
    yield from _costs(cells)


def _checks(cell: BlockCell, wanted: tuple[str, ...]) -> Iterator[Finding]:
    """One after the other, until one fails. On chains a check that fails may stand once for each set of buffers."""
    stated = tuple(dict.fromkeys(cell.record["checks"]))
    odd = next((name for name, right in zip(stated, (*wanted, *stated), strict=False) if name != right), None)
    if odd is not None:
        why = f"the check {shown(odd)} of {cell.text} is not in its turn: they come one after the other, until one fails"
        yield error(_RULE, why, (*cell.path, "checks"))


def _reason(subject: Subject, cell: BlockCell) -> Iterator[Finding]:
    reason, outcome, place = str(cell.record["reason"]), cell.record["outcome"], (*cell.path, "reason")
    if outcome == Outcome.TIMEOUT:
        yield from _silence(subject, cell, reason)
    elif outcome == Outcome.OOM and " while " not in reason:
        yield error(_RULE, f"{cell.text} ran out of memory, and the reason does not say while doing what", place)
    elif outcome == Outcome.CRASHED and " while " not in reason and not reason.startswith(f"{_ENDED}: "):
        yield error(_RULE, f"{cell.text} crashed, and the reason does not say while doing what", place)
    elif outcome == Outcome.INCOMPLETE and not reason.partition(" ")[2].startswith(f"of {_rounds(subject)} rounds were measured"):
        yield error(_RULE, f"{cell.text} is incomplete, and the reason does not say how many of its rounds were measured", place)


def _silence(subject: Subject, cell: BlockCell, reason: str) -> Iterator[Finding]:
    told, place = _SILENT.fullmatch(reason), (*cell.path, "reason")
    asked = number(table(block_of(subject.document), "config", "timing").get("cell_timeout_s"))
    if told is None:
        yield error(_RULE, f"{cell.text} is a timeout, and the reason does not say how long there was no sign of life", place)
    elif asked is not None and told[1] != f"{asked:g}":
        yield error(_RULE, f"no sign of life for {shown(told[1])} s, and cell_timeout_s of the configuration is {asked:g}", place)


def _round(subject: Subject, cell: BlockCell) -> Iterator[Finding]:
    """A round that is told of is one of the plan."""
    found = _IN_ROUND.match(str(cell.record["reason"]))
    if found is not None and cell.record["outcome"] in _TOLD and int(found[1][:18]) >= _rounds(subject):
        yield error(_RULE, f"round {shown(found[1])} is told of, and there are {_rounds(subject)}, from 0", (*cell.path, "reason"))


def _rounds(subject: Subject) -> int:
    return whole(table(block_of(subject.document), "timing")["rounds"]) or 0


def _costs(cells: list[BlockCell]) -> Iterator[Finding]:
    """The plan has one cost for a case. Cells that passed are held to each other elsewhere."""
    usual: dict[tuple[str, int], BlockCell] = {}
    for cell in sorted(cells, key=lambda cell: not cell.passed):
        one, other = (table(at.record, "cost") for at in (cell, usual.setdefault(cell.key[:2], cell)))
        if not cell.passed and one and other and one != other:
            why = f"the cost is not that of {usual[cell.key[:2]].text}: cells of a case compute the same"
            yield error(_RULE, why, (*cell.path, "cost"))


FAILURE_RULES: tuple[Rule, ...] = (
    Rule(
        id=_RULE,
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="reason, checks and cost of a cell that did not pass are those that a run gives it",
        check=failures,
        needs_schema=True,
    ),
)
