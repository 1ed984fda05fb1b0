"""What every run writes down of itself, beside what it measured."""

from collections.abc import Iterator

from mkframe.validate.block_parts import block_cells, block_of
from mkframe.validate.comparison_parts import table
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

RUN_RECORD = "run-record"


def run_record(subject: Subject) -> Iterator[Finding]:
    """A budget was turned into rounds, and is none any more. Reports before schema 1.2 are asked nothing."""
    budget_s = table(block_of(subject.document), "config", "timing").get("budget_s")
    if budget_s is not None and any(cell.since_1_2 for cell in block_cells(subject)):
        why = f"budget_s is {shown(budget_s)}: a run turns a budget into rounds, and leaves none in its configuration"
        yield error(RUN_RECORD, why, ("mkframe", "config", "timing", "budget_s"))


RUN_RECORD_RULES: tuple[Rule, ...] = (
    Rule(
        id=RUN_RECORD,
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="no budget is left in the configuration",
        check=run_record,
        needs_schema=True,
    ),
)
