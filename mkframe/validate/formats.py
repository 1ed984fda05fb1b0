"""Which of the two report formats a document is in."""

from typing import Any

COMPARISON = "comparison"
ENERGY = "energy"
FORMATS = (COMPARISON, ENERGY)

TOLD_BY = (
    "unknown format: neither a comparison report (an object with samples_per_round, or with a list whose items hold shape and engines) "
    "nor an energy report (an object with validation, or with rounds that hold gross_mj)"
)


def recognise(document: Any) -> str | None:
    """ "comparison", "energy", or None for a document in neither format.

    Each format has two signs. A document that shows signs of both (an extra key, say) is in the format with more of
    them, a comparison report where they are even.
    """
    if not isinstance(document, dict):
        return None
    comparison = ("samples_per_round" in document) + any(_holds(value, "shape", "engines") for value in document.values())
    energy = ("validation" in document) + _holds(document.get("rounds"), "gross_mj")
    if not comparison and not energy:
        return None
    return COMPARISON if comparison >= energy else ENERGY


def _holds(value: Any, *keys: str) -> bool:
    """Whether `value` is a list with an item that has all `keys`."""
    return isinstance(value, list) and any(isinstance(item, dict) and all(key in item for key in keys) for item in value)
