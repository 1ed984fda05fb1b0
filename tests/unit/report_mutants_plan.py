"""Kinds of mutants: engines, options and cases that the configuration asks for, and cells of others."""

from random import Random

from own_mutants import own, rehash
from report_mutants import Document, Places


@own
def _no_engine_was_asked_for(_: Document, block: Document, __: Random) -> Places:
    block["config"]["engine"] = {}
    rehash(block)
    return ("=/mkframe/config/engine",)


@own
def _baselines_alone_were_asked_for(_: Document, block: Document, __: Random) -> Places:
    base = block["cells"][0]["engine"].removesuffix("-graph")
    for cell in block["cells"]:
        cell["baseline"] = cell["baseline"] and cell["engine"].removesuffix("-graph") != base
    block["config"]["engine"] = {"baselines": {"select": "baselines", "options": {}}}
    rehash(block)
    return ("=/mkframe/cells/0/baseline",)


@own
def _an_option_that_no_cell_has(_: Document, block: Document, __: Random) -> Places:
    engine = block["cells"][0]["engine"]
    node = block["config"]["engine"].setdefault(engine, {"select": None, "options": {}})
    node["options"] = {**(node.get("options") or {}), "surprise": 1}
    rehash(block)
    return ("=/mkframe/cells/0/options",)


@own
def _a_deeper_case_than_was_measured(_: Document, block: Document, __: Random) -> Places | None:
    cases = block["config"]["shape"]["development"].get("cases")
    if not cases:
        return None
    cases[0]["depth"] = 4
    rehash(block)
    return ("/mkframe/cells/0/shape",)


@own
def _a_set_without_cases_and_axes(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"] = {"seed": block["config"]["shape"]["development"]["seed"]}
    rehash(block)
    return ("=/mkframe/config/shape/development",)
