"""A report or a device card as a page for a reviewer: what was measured, how, what follows from it, what does not.

Everything said rests on the file alone; whether its samples were there to rebuild it stands among the findings. Functions take any document
of their format, damaged ones too, and pass over what is not there.
"""

from collections.abc import Callable
from typing import Any

from mkframe.explain import card, comparison, energy
from mkframe.explain.findings import findings
from mkframe.explain.page import Section, section
from mkframe.validate import Result
from mkframe.validate.formats import COMPARISON, DEVICE_CARD, ENERGY

__all__ = ["Section", "explain"]

Say = Callable[[dict[str, Any]], list[str]]

MEASURED, HOW, FOLLOWS, NOT = "What was measured", "How", "What follows from it", "What does not follow from it"
_SAY: dict[str, tuple[Say, Say, Say, Say]] = {
    COMPARISON: (comparison.measured, comparison.how, comparison.follows, comparison.does_not_follow),
    ENERGY: (energy.measured, energy.how, energy.follows, energy.does_not_follow),
    DEVICE_CARD: (card.measured, card.how, card.follows, card.does_not_follow),
}


def explain(document: dict[str, Any], result: Result, *, strict: bool = False) -> tuple[Section, ...]:
    """The page of a document in a known format. `result`: what validate says of it, by the strict profile where `strict` says so."""
    assert result.format is not None, "a document in a known format"
    said = zip((MEASURED, HOW, FOLLOWS, NOT), _SAY[result.format], strict=True)
    return (
        *(section(title, say(document)) for title, say in said),
        section("Findings of validate", findings(document, result, strict=strict)),
    )
