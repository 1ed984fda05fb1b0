"""Kinds of mutants: reports that are made older than they are, as rules are milder to those before schema 1.2."""

from random import Random

from own_mutants import own, rehash
from report_mutants import Document, Places


def _aged(document: Document, block: Document, *keys: str) -> None:
    """Without what schema 1.2 brought: rules are milder to reports before it."""
    for key in keys:
        for cell in block["cells"]:
            cell.pop(key, None)
    if "peaks" in keys:
        block["device"].pop("peaks", None)
    if "sources" in keys:
        old = ("mkframe/__init__.py", "mkframe/canonical.py")
        found = document["source_sha256"]
        document["source_sha256"] = {name: found[name] for name in found if name in old or name.startswith("mkframe_plugins/")}


def _without_a_check(block: Document, index: int) -> None:
    block["cells"][index]["checks"].remove("fresh input")


@own
def _no_rates_and_a_check_less(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(_, block, "rates")
    return (f"=/mkframe/cells/{index}",)


@own
def _one_cell_without_rates_and_a_check_less(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    del block["cells"][index]["rates"]
    return (f"=/mkframe/cells/{index}",)


@own
def _older_in_all_but_its_sources(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(document, block, "rates", "kernels", "twin", "peaks")
    return (f"=/mkframe/cells/{index}",)


@own
def _older_in_all_but_its_day(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(document, block, "rates", "kernels", "twin", "peaks", "sources")
    document["recorded_on"] = "2026-12-01"
    return (f"=/mkframe/cells/{index}",)


@own
def _older_in_all_but_the_peaks_of_its_device(document: Document, block: Document, random: Random) -> Places:
    _aged(document, block, "rates", "kernels", "twin", "sources")
    return (f"=/mkframe/cells/{random.randrange(len(block['cells']))}",)


@own
def _no_peaks_beside_rates(document: Document, block: Document, _: Random) -> Places:
    _aged(document, block, "sources")
    block["device"].pop("peaks", None)
    return ("=/mkframe/device",)


@own
def _a_reading_that_counts_no_other_processes(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["rounds"]))
    del block["rounds"][index]["after"]["other_processes"]
    return (f"=/mkframe/rounds/{index}/after",)


@own
def _chains_that_nobody_asked_for(_: Document, block: Document, __: Random) -> Places:
    for key in ("k1", "slope_us", "footprint"):
        del block["config"]["timing"][key]
    rehash(block)
    return ("=/mkframe/config",)
