"""What the comparison with the reference says where the workload is mkframe's own: its outputs, rows and tolerance are known.

residual_mlp compares y (rows, channels) element by element, with |error| <= atol + rtol |reference|, and excuses whole rows. Workloads
of others may count and accept as they like.
"""

from collections.abc import Iterator
from typing import Any

from mkframe.validate.block_parts import BlockCell, block_cells, block_of
from mkframe.validate.comparison_parts import above, whole
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

ACCEPTANCE = "acceptance"
_WORKLOAD = "residual_mlp"


def acceptance(subject: Subject) -> Iterator[Finding]:
    """Elements are rows times channels, no more rows were excused than there are, and a tolerance of nothing forgives nothing."""
    if block_of(subject.document).get("workload") != _WORKLOAD:
        return
    for cell in block_cells(subject):
        check, shape = cell.record["check"], cell.record["shape"]
        rows, channels = (whole(shape.get(name)) for name in ("rows", "channels"))
        if check is not None and rows is not None and channels is not None:
            yield from _counts(cell, check, rows, channels)
            yield from _forgiven(cell, check)


def _counts(cell: BlockCell, check: dict[str, Any], rows: int, channels: int) -> Iterator[Finding]:
    if check["elements"] != rows * channels:
        why = f"{cell.text}: {shown(check['elements'])} elements, and the output has {rows} x {channels}"
        yield error(ACCEPTANCE, why, (*cell.path, "check", "elements"))
    if check["rounding_rows"] > rows:
        why = f"{cell.text}: {shown(check['rounding_rows'])} rows were excused, and there are {rows}"
        yield error(ACCEPTANCE, why, (*cell.path, "check", "rounding_rows"))


def _forgiven(cell: BlockCell, check: dict[str, Any]) -> Iterator[Finding]:
    """Without a relative part the tolerance of every element is atol, whatever the reference."""
    largest, atol = float(check["max_abs_error"]), float(check["atol"])
    if not check["violations"] and not check["rounding_rows"] and not check["rtol"] and above(largest, atol):
        why = f"{cell.text}: rtol is 0 and atol {shown(atol)}, so that an error of {shown(largest)} is beyond tolerance"
        yield error(ACCEPTANCE, why, (*cell.path, "check", "max_abs_error"))


ACCEPTANCE_RULES: tuple[Rule, ...] = (
    Rule(
        id=ACCEPTANCE,
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="elements, excused rows and errors of residual_mlp fit its shape and the tolerance",
        check=acceptance,
        needs_schema=True,
    ),
)
