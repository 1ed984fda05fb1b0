"""Kinds of mutants: cells that did not pass, with words, checks or costs that no run gives them."""

from random import Random
from typing import Any

from own_mutants import own
from report_mutants import Document, Places


def _failed(document: Document, block: Document, outcome: str, reason: str) -> tuple[int, Document]:
    """The last cell, which did not pass: its place and its record. Sentences are left as they are."""
    index = len(block["cells"]) - 1
    cell: Document = block["cells"][index]
    cell |= {"outcome": outcome, "reason": reason, "interval": None}
    cell |= {"rates": None} if "rates" in cell else {}
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    engines[cell["engine"]] = {"passed": False, "replay_changed_input": False}
    return index, cell


def _ending(name: str, outcome: str, reason: str, key: str = "reason", **changes: Any) -> None:
    """A cell that ended so, and `key`, where that shows."""

    def changed(document: Document, block: Document, __: Random) -> Places:
        index, cell = _failed(document, block, outcome, reason)
        cell |= changes
        return (f"=/mkframe/cells/{index}/{key}",)

    changed.__name__, changed.__module__ = f"_{name}", __name__
    own(changed)


_ending("a_crash_of_nothing", "crashed", "it was slow")
_ending("too_little_memory_for_nothing", "oom", "it was slow")
_ending("a_timeout_of_nothing", "timeout", "it was slow")
_ending("a_longer_silence_than_allowed", "timeout", "the worker ended while timing round 0: no sign of life for 99 s")
_ending("incomplete_and_killed", "incomplete", "it was killed by SIGSEGV")
_ending("a_round_that_is_not", "crashed", "ValueError while timing round 999: no such tile")
_ending("a_check_that_is_not", "incorrect", "banana: 3 of 9 elements are wrong", "checks", checks=["banana"])
_ending("a_check_out_of_turn", "incorrect", "joined: it came late", "checks", checks=["joined"])
_ending("a_check_too_many", "incorrect", "joined: it came late", "checks", checks=["poison nan", "input negated"])
_ending("a_cost_of_its_own", "incorrect", "joined: it came late", "cost", cost={"bytes": 1, "flops": 1})
