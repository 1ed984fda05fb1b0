"""Kinds of mutants: rates and peaks, and the chains and sets of cold calls."""

from random import Random
from typing import Any

from own_mutants import block_of, index_of, is_cold, own, own_doubt, with_rates
from report_mutants import COMPARISON, Document, Places, kind

# Rates and peaks ------------------------------------------------------------------------------------------------------------------


@own
def _one_set_that_is_cold(_: Document, block: Document, random: Random) -> Places | None:
    if not is_cold(block):
        return None
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["sets"] = 1
    return (f"/mkframe/cells/{index}/facts/sets",)


@own
def _a_slope_of_one_chain(_: Document, block: Document, random: Random) -> Places | None:
    if not is_cold(block):
        return None
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["k2"] = block["cells"][index]["facts"]["k1"]
    return (f"/mkframe/cells/{index}/facts/k2",)


@own
def _an_error_larger_than_all_together(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    check = block["cells"][index]["check"]
    if check is None or not check["mean_abs_error"]:
        return None
    check["max_abs_error"] = 2 * check["mean_abs_error"] * check["elements"]
    return (f"/mkframe/cells/{index}/check/max_abs_error",)


@own
def _an_anti_cheat_check_left_out(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if "fresh input" not in block["cells"][index]["checks"]:
        return None
    block["cells"][index]["checks"].remove("fresh input")
    return (f"/mkframe/cells/{index}/checks",)


@own
def _a_rate_of_another_time(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if block["cells"][index].get("rates") is None:
        return None
    block["cells"][index]["rates"]["bytes_per_s"] *= 1.01
    return (f"/mkframe/cells/{index}/rates",)


@own
def _more_operations_than_the_device_can(document: Document, block: Document, _: Random) -> Places | None:
    if block["device"].get("peaks") is None:
        return None
    document["mkframe"] = with_rates(document, cold=False, peak_flops=1.0)["mkframe"]
    return tuple(f"/mkframe/cells/{index}" for index in range(len(block["cells"])))


@kind(COMPARISON, "W")
def _colder_than_the_memory_reads(document: Document, _: Random) -> Places | None:
    block = block_of(document)
    if block.get("device", {}).get("peaks") is None or block["timing"]["cache_state"] != "cold":
        return None
    document["mkframe"] = with_rates(document, cold=True, read_peak=1.0)["mkframe"]
    return tuple(f"/mkframe/cells/{index}" for index in range(len(block["cells"])))


# Tolerances, chains and their sets ------------------------------------------------------------------------------------------------------


@own
def _another_tolerance_for_one_case(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        if (cell["set"], cell["case"]) == ("development", 0):
            cell["check"]["atol"] *= 2
    return ("=/mkframe/cells/0/check/atol",)


def _chain(change: Any, key: str) -> None:
    """A fault in the facts of one chain, at `key`. `change` gets block and cell."""

    def changed(_: Document, block: Document, random: Random) -> Places | None:
        if not is_cold(block):
            return None
        index = random.randrange(len(block["cells"]))
        change(block, block["cells"][index])
        return (f"=/mkframe/cells/{index}/facts/{key}",)

    changed.__name__ = change.__name__
    own(changed)


def _another_k1(_: Document, cell: Document) -> None:
    cell["facts"]["k1"] -= 1


def _a_difference_too_short(_: Document, cell: Document) -> None:
    cell["facts"]["k2"] = cell["facts"]["k1"] + 1


def _a_set_too_many(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] += 1


def _a_set_too_few(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] -= 1


def _sets_that_are_no_number(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] = "many"


def _edges_of_overlapping_calls(_: Document, cell: Document) -> None:
    cell["facts"]["edges"] = "programmatic"


def _edges_of_no_kind(_: Document, cell: Document) -> None:
    cell["facts"]["edges"] = "loose"


for _change, _key in (
    (_another_k1, "k1"),
    (_a_difference_too_short, "k2"),
    (_a_set_too_many, "sets"),
    (_a_set_too_few, "sets"),
    (_sets_that_are_no_number, "sets"),
    (_edges_of_overlapping_calls, "edges"),
    (_edges_of_no_kind, "edges"),
):
    _chain(_change, _key)


@own
def _a_larger_cache_than_the_sets_fill(_: Document, block: Document, __: Random) -> Places | None:
    if not is_cold(block):
        return None
    block["device"]["l2_bytes"] *= 2
    return ("=/mkframe/cells/0/facts/sets",)


@own
def _full_edges_of_launches_that_may_overlap(_: Document, block: Document, __: Random) -> Places | None:
    if not is_cold(block):
        return None
    index = index_of(block, "graph")
    for launch in block["cells"][index].get("kernels") or ():
        launch["programmatic"] = True
    return (f"=/mkframe/cells/{index}/facts/edges",) if block["cells"][index].get("kernels") else None


@own_doubt
def _calls_of_a_third_partys_engine_that_overlap(_: Document, block: Document, __: Random) -> Places | None:
    if not is_cold(block):
        return None
    for cell in block["cells"]:
        cell["implementation"] = "elsewhere.engines:Overlapping"
        cell["facts"]["edges"] = "programmatic"
    return ("=/mkframe/cells/0/facts/edges",)
