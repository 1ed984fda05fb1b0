"""A comparison report that our runner wrote, by its own packages and sources, has our block.

Without it a report is one of others: no rule asks for samples, cells or verdicts.
"""

from collections.abc import Iterator

from mkframe.validate.comparison_parts import table
from mkframe.validate.finding import Finding, Severity, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_ID = "block"
_OURS = "mkframe"


def block_findings(subject: Subject) -> Iterator[Finding]:
    """`packages.mkframe`, or a source below mkframe/, and no `mkframe` block."""
    if _OURS in subject.document:
        return
    why = None
    if _OURS in table(subject.document, "packages"):
        why, place = "packages names mkframe", "packages"
    elif any(name.startswith(f"{_OURS}/") for name in table(subject.document, "source_sha256")):
        why, place = "its sources are those of mkframe", "source_sha256"
    if why is not None:
        text = f"{why}, and there is no mkframe block: whoever took it out took out the samples, cells and verdicts of this report"
        yield warning(_ID, text, (place,))


ORIGIN_RULES = (
    Rule(
        id=_ID,
        format=COMPARISON,
        severities=(Severity.WARNING,),
        says="a report whose packages or sources are those of mkframe has the mkframe block",
        check=block_findings,
    ),
)
