"""Chains of calls in a report of ours: how long they were, what they rotated over, and whether calls could overlap."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from mkframe.validate.block_parts import BlockCell, block_cells, block_of, chained
from mkframe.validate.comparison_parts import Path, amount, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_SLOPE_SLACK = 4.0
"""k2 is chosen from an estimate of a call's time, so that the difference of the chains may miss what was asked for."""
_SET_SLACK = 2.0
"""A cost counts the least bytes of a call, and a set may hold more."""
_FULL = "full"


def chains(subject: Subject) -> Iterator[Finding]:
    """A cell whose samples are slopes has two chains, as far apart as was asked for; cold sets fill the footprint; edges are full."""
    block = block_of(subject.document)
    if not chained(block):
        return
    config, cold = table(block, "config", "timing"), block["timing"]["protocol"] == "cold"
    for cell in block_cells(subject):
        facts = table(cell.record, "facts")
        place = (*cell.path, "facts")
        if not cell.passed or "rates" not in cell.record:
            continue  # before schema 1.2 facts were free
        if lacking := [name for name in ("k1", "k2", "sets", "edges") if name not in facts]:
            yield error("chains", f"the facts of {cell.text} lack {lacking[0]}, which every chain of calls has", place)
        else:
            yield from _lengths(cell, facts, config, place)
            yield from _edges(cell, facts, place)
            if cold:
                yield from _sets(cell, facts, config, amount(block["device"].get("l2_bytes")), place)


def _lengths(cell: BlockCell, facts: dict[str, Any], config: dict[str, Any], place: Path) -> Iterator[Finding]:
    short, long = whole(facts.get("k1")), whole(facts.get("k2"))
    if short is None or long is None or long <= short:
        why = f"k2 is {shown(facts.get('k2'))}, and k1 {shown(facts.get('k1'))}: a slope needs a longer chain"
        yield error("chains", why, (*place, "k2"))
        return
    if "k1" in config and whole(config["k1"]) != short:
        yield error("chains", f"k1 is {short}, and the configuration asks for {shown(config['k1'])}", (*place, "k1"))
    asked, median_ms = amount(config.get("slope_us")), cell.p50_ms
    if asked and median_ms and min(long - short, 2**53) * median_ms * 1e3 * _SLOPE_SLACK < asked:
        why = f"{long - short} calls take less than a quarter of the {asked:g} us that the configuration asks for"
        yield error("chains", why, (*place, "k2"))


def _edges(cell: BlockCell, facts: dict[str, Any], place: Path) -> Iterator[Finding]:
    kernels = cell.record.get("kernels") or ()
    if facts.get("edges") != _FULL:
        yield warning("chains", f"edges are {shown(facts.get('edges'))}: calls of {cell.text} may overlap", (*place, "edges"))
    elif kernels and all(kernel["programmatic"] for kernel in kernels):
        yield error("chains", "edges are full, and every launch carries a programmatic edge", (*place, "edges"))


def _sets(cell: BlockCell, facts: dict[str, Any], config: dict[str, Any], l2_bytes: float | None, place: Path) -> Iterator[Finding]:
    sets, footprint, least = whole(facts.get("sets")), amount(config.get("footprint")), whole(config.get("sets"))
    set_bytes = amount(table(cell.record, "cost").get("bytes"))
    if sets is None or not footprint or not l2_bytes or not set_bytes:
        return
    wanted, held = footprint * l2_bytes, min(sets, 2**53) * set_bytes
    if held * _SET_SLACK < wanted:
        why = f"{sets} sets of {set_bytes:.3g} bytes hold {held / l2_bytes:.3g} L2 caches, and {footprint:g} were asked for"
        yield error("chains", why, (*place, "sets"))
    elif held < wanted:
        why = f"{sets} sets of at least {set_bytes:.3g} bytes may hold less than the {footprint:g} L2 caches that were asked for"
        yield warning("chains", why, (*place, "sets"))
    elif wanted / set_bytes < 2**53 and sets > max(least or 2, 2, ceil(wanted / set_bytes)):
        why = f"{sets} sets are more than {footprint:g} L2 caches of {l2_bytes:.3g} bytes ask for"
        yield error("chains", why, (*place, "sets"))


CHAIN_RULES: tuple[Rule, ...] = (
    Rule(
        id="chains",
        format=COMPARISON,
        severities=(Severity.ERROR, Severity.WARNING),
        says="two chains of the lengths that were asked for, sets that fill the footprint, and full edges where samples are slopes",
        check=chains,
        needs_schema=True,
    ),
)
