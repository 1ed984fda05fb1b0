"""Peaks of a datasheet and the card that they come from: a report has both or neither, and one sentence says where they stand."""

from collections.abc import Iterator

from mkframe.validate.block_parts import block_of
from mkframe.validate.comparison_parts import table
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

CARD_PEAKS = "card-peaks"
_DEVICE = ("mkframe", "device")


def card_peaks(subject: Subject) -> Iterator[Finding]:
    """The runner takes card and datasheet from one place, so that neither is there without the other. Reports before schema 1.2 have no
    peaks."""
    block = block_of(subject.document)
    device = table(block, "device")
    if "peaks" not in device:
        return
    card, datasheet = device["card"], table(device, "peaks", "datasheet")
    if card is None and datasheet:
        why = "there are peaks of a datasheet, and card is null: a datasheet is that of a card"
        yield error(CARD_PEAKS, why, (*_DEVICE, "peaks"))
    elif card is not None and not datasheet:
        why = f"the card is {shown(card)}, and there are no peaks of its datasheet: shares of peak would be hidden"
        yield error(CARD_PEAKS, why, (*_DEVICE, "peaks"))
    asked = table(block, "config", "device", "card")
    if card is not None and datasheet and asked.get("id") == card and asked.get("source", datasheet["source"]) != datasheet["source"]:
        why = f"the source is {shown(datasheet['source'])}, and the card of the configuration says {shown(asked['source'])}"
        yield error(CARD_PEAKS, why, (*_DEVICE, "peaks", "datasheet", "source"))


CARD_PEAKS_RULES: tuple[Rule, ...] = (
    Rule(
        id=CARD_PEAKS,
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="peaks of a datasheet stand where there is a card, nowhere else, and name the source of the card",
        check=card_peaks,
        needs_schema=True,
    ),
)
