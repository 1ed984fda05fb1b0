"""Kinds of mutants: what a cell states once it is ready, and the launches of its graph."""

from random import Random
from typing import Any

from own_mutants import index_of, own
from report_mutants import Document, Places


def _graph(change: Any) -> None:
    """A fault in a graph that has read kernels. `change` gets the record and gives the keys that lead to what it changed."""

    def changed(_: Document, block: Document, __: Random) -> Places | None:
        index = index_of(block, "graph")
        cell = block["cells"][index]
        return (f"=/mkframe/cells/{index}/{change(cell)}",) if cell.get("kernels") else None

    changed.__name__, changed.__module__ = change.__name__, change.__module__
    own(changed)


@_graph
def _launches_that_nobody_read(cell: Document) -> str:
    cell["kernels"] = None
    return "kernels"


@_graph
def _no_launches_at_all(cell: Document) -> str:
    cell["kernels"] = []
    return "kernels"


@_graph
def _a_launch_more_than_nodes(cell: Document) -> str:
    cell["kernels"].append(dict(cell["kernels"][-1]))
    return f"kernels/{len(cell['kernels']) - 1}"


@_graph
def _a_node_more_than_launches(cell: Document) -> str:
    cell["nodes"].append(cell["nodes"][0])
    return "kernels"


@own
def _passed_and_never_bound(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["bind_s"] = None
    return (f"=/mkframe/cells/{index}/bind_s",)


@own
def _unsupported_and_yet_bound(document: Document, block: Document, __: Random) -> Places:
    cell = block["cells"][-1]
    cell |= {"outcome": "unsupported", "reason": "not here"}
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    del engines[cell["engine"]]
    return (f"=/mkframe/cells/{len(block['cells']) - 1}/bind_s",)


def _launch(name: str, **changes: object) -> None:
    """A launch that no device makes."""

    def changed(cell: Document) -> str:
        cell["kernels"][0] |= changes
        return "kernels/0"

    changed.__name__ = f"_{name}"
    _graph(changed)


_launch("a_deep_block", block=[1, 1, 1024], registers=32)
_launch("a_wide_grid", grid=[2**40, 1, 1], cluster=[1, 1, 1])
_launch("registers_of_four_blocks", block=[1024, 1, 1], registers=255)
_launch("more_shared_memory_than_there_is", shared_bytes=400_000)
_launch("more_blocks_at_once_than_there_are", grid=[10**6, 1, 1], cluster=[1, 1, 1], cooperative=True)
