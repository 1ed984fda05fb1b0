"""Kinds of mutants: the card of the device and the peaks of its datasheet."""

from random import Random

from own_mutants import own, rehash
from report_mutants import Document, Places


@own
def _a_datasheet_of_no_card(_: Document, block: Document, __: Random) -> Places | None:
    if not block["device"].get("peaks") or not block["device"]["card"]:
        return None
    block["device"]["card"] = block["config"]["device"]["card"] = None
    rehash(block)
    return ("=/mkframe/device/peaks",)


@own
def _a_card_without_its_datasheet(_: Document, block: Document, __: Random) -> Places | None:
    if not block["device"].get("peaks") or not block["device"]["card"]:
        return None
    block["device"]["peaks"]["datasheet"] = None
    for cell in block["cells"]:
        if cell.get("rates"):
            cell["rates"] |= {"compute_share": None, "memory_share": None}
    return ("=/mkframe/device/peaks",)


@own
def _another_source_of_the_datasheet(_: Document, block: Document, __: Random) -> Places | None:
    if not block["device"].get("peaks") or not block["config"]["device"]["card"]:
        return None
    block["device"]["peaks"]["datasheet"]["source"] = "a leaflet"
    return ("=/mkframe/device/peaks/datasheet/source",)
