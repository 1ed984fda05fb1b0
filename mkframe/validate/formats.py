"""Which of the three formats a document is in: two of reports, and the device card."""

from typing import Any

COMPARISON = "comparison"
ENERGY = "energy"
DEVICE_CARD = "device-card"
FORMATS = (COMPARISON, ENERGY, DEVICE_CARD)
WORDS = {COMPARISON: "comparison report", ENERGY: "energy report", DEVICE_CARD: "device card"}
"""The formats for people."""

TOLD_BY = (
    "unknown format: no comparison report (an object with samples_per_round, or with a list whose items hold shape and engines), "
    "no energy report (an object with validation, or with rounds that hold gross_mj) "
    "and no device card (an object whose format begins with device-card/)"
)


def recognise(document: Any) -> str | None:
    """One of FORMATS, or None for a document in none of them.

    A device card names its format. Each report format has two signs; a document that shows signs of both (an extra key, say) is in
    the format with more of them, a comparison report where they are even.
    """
    if not isinstance(document, dict):
        return None
    named = document.get("format")
    if isinstance(named, str) and named.startswith(f"{DEVICE_CARD}/"):
        return DEVICE_CARD
    comparison = ("samples_per_round" in document) + any(_holds(value, "shape", "engines") for value in document.values())
    energy = ("validation" in document) + _holds(document.get("rounds"), "gross_mj")
    if not comparison and not energy:
        return None
    return COMPARISON if comparison >= energy else ENERGY


def a_word(format: str) -> str:
    """A format in words with its article: `an energy report`."""
    return f"{'an' if WORDS[format][0] in 'aeiou' else 'a'} {WORDS[format]}"


def _holds(value: Any, *keys: str) -> bool:
    """Whether `value` is a list with an item that has all `keys`."""
    return isinstance(value, list) and any(isinstance(item, dict) and all(key in item for key in keys) for item in value)
