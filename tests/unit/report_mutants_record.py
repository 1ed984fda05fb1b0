"""Kinds of mutants: what every run writes down of itself."""

from random import Random

from own_mutants import own, rehash
from report_mutants import Document, Places


@own
def _a_cell_that_nobody_bound(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if block["cells"][index]["outcome"] != "passed":
        return None
    block["cells"][index]["bind_s"] = None
    return (f"=/mkframe/cells/{index}/bind_s",)


@own
def _a_budget_that_is_left(_: Document, block: Document, __: Random) -> Places:
    block["config"]["timing"]["budget_s"] = 3600.0
    rehash(block)
    return ("=/mkframe/config/timing/budget_s",)
