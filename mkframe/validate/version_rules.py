"""A report of ours is of one version: what came with the schema that it shows signs of is there, everywhere."""

from collections.abc import Iterator

from mkframe.validate.age import CELL_KEYS, PEAKS, newer
from mkframe.validate.block_parts import block_cells, block_of
from mkframe.validate.comparison_parts import table
from mkframe.validate.finding import Finding, Severity, error
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_READ = "other_processes"
"""What schema 1.1 added to every reading of clocks."""
_ASKED = ("replays", "k1", "slope_us", "sets", "method", "footprint")
"""What every configuration of timing had by schema 1.2; null where it does not apply."""
_BLOCK = "mkframe"


def one_version(subject: Subject) -> Iterator[Finding]:
    """Rules are milder to reports before schema 1.2. Whoever leaves out one key does not make a report older."""
    sign = newer(subject)
    if sign is None:
        return
    block = block_of(subject.document)
    for cell in block_cells(subject):
        if missing := [name for name in CELL_KEYS if name not in cell.record]:
            yield error("one-version", f"{missing[0]} is missing, and every cell has it where {sign}", cell.path)
    if PEAKS not in block["device"]:
        yield error("one-version", f"{PEAKS} is missing, and is there, or null, where {sign}", (_BLOCK, "device"))
    for index, record in enumerate(block["rounds"]):
        for when in ("before", "after"):
            if _READ not in record[when]:
                why = f"{_READ} is missing, and every reading has it, or null, where {sign}"
                yield error("one-version", why, (_BLOCK, "rounds", index, when))
    asked = table(block, "config", "timing")
    if asked and (lacking := [name for name in _ASKED if name not in asked]):
        why = f"{lacking[0]} is missing, and every configuration has it, or null, where {sign}"
        yield error("one-version", why, (_BLOCK, "config"))


VERSION_RULES: tuple[Rule, ...] = (
    Rule(
        id="one-version",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="keys that came with one version of the schema stand together, and none is missing that its sources and its day ask for",
        check=one_version,
        needs_schema=True,
    ),
)
