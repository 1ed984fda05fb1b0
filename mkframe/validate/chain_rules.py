"""Chains of calls in a report of ours: how long they were, what they rotated over, and whether calls could overlap."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from mkframe.validate.block_parts import BlockCell, block_cells, block_of, chained
from mkframe.validate.comparison_parts import Path, amount, table, whole
from mkframe.validate.fact_rules import ships_with_mkframe
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_SLOPE_SLACK = 4.0
"""k2 is chosen from an estimate of a call's time, so that the difference of the chains may miss what was asked for."""
_SET_SLACK = 2.0
"""A cost counts the least bytes of a call, and a set of a third party's workload may hold more."""
_WHOLE_SETS = ("residual_mlp",)
"""Workloads that ship with mkframe, whose cost counts every tensor of a set once."""
_MOST = 2**53
"""Beyond it a count is no float64 any more."""
_FULL, _PROGRAMMATIC = "full", "programmatic"


def chains(subject: Subject) -> Iterator[Finding]:
    """A cell whose samples are slopes has two chains, as far apart as was asked for; there are as many sets as fill the footprint;
    edges are full."""
    block = block_of(subject.document)
    if not chained(block):
        return
    config = table(block, "config", "timing")
    footprint = amount(config.get("footprint")) if block["timing"]["protocol"] == "cold" else 0.0
    wanted = footprint and footprint * (amount(block["device"].get("l2_bytes")) or 0.0)
    for cell in block_cells(subject):
        facts = table(cell.record, "facts")
        place = (*cell.path, "facts")
        if not cell.passed or not cell.since_1_2:
            continue  # before schema 1.2 facts were free
        if lacking := [name for name in ("k1", "k2", "sets", "edges") if name not in facts]:
            yield error("chains", f"the facts of {cell.text} lack {lacking[0]}, which every chain of calls has", place)
        else:
            yield from _lengths(cell, facts, config, place)
            yield from _edges(cell, facts, place)
            if wanted is not None:
                yield from _sets(cell, config, wanted, exact=block["workload"] in _WHOLE_SETS)


def _lengths(cell: BlockCell, facts: dict[str, Any], config: dict[str, Any], place: Path) -> Iterator[Finding]:
    short, long = whole(facts.get("k1")), whole(facts.get("k2"))
    if short is None or long is None or long <= short:
        why = f"k2 is {shown(facts.get('k2'))}, and k1 {shown(facts.get('k1'))}: a slope needs a longer chain"
        yield error("chains", why, (*place, "k2"))
        return
    if "k1" in config and whole(config["k1"]) != short:
        yield error("chains", f"k1 is {short}, and the configuration asks for {shown(config['k1'])}", (*place, "k1"))
    asked, median_ms = amount(config.get("slope_us")), cell.p50_ms
    if asked and median_ms and min(long - short, _MOST) * median_ms * 1e3 * _SLOPE_SLACK < asked:
        why = f"{long - short} calls take less than a quarter of the {asked:g} us that the configuration asks for"
        yield error("chains", why, (*place, "k2"))


def _edges(cell: BlockCell, facts: dict[str, Any], place: Path) -> Iterator[Finding]:
    """No engine that ships with mkframe lets calls overlap: the run rejects a chain of it with other edges."""
    kernels, edges = cell.record.get("kernels") or (), facts.get("edges")
    if edges not in (_FULL, _PROGRAMMATIC):
        yield error("chains", f"edges are {shown(edges)}, and there are {_FULL} and {_PROGRAMMATIC}", (*place, "edges"))
    elif edges == _PROGRAMMATIC and ships_with_mkframe(cell):
        why = f"edges are {shown(edges)}, and no engine of mkframe lets calls overlap: {cell.text} would not have passed"
        yield error("chains", why, (*place, "edges"))
    elif edges == _PROGRAMMATIC:
        yield warning("chains", f"edges are {shown(edges)}: calls of {cell.text} may overlap", (*place, "edges"))
    elif kernels and all(kernel["programmatic"] for kernel in kernels):
        yield error("chains", "edges are full, and every launch carries a programmatic edge", (*place, "edges"))


def _sets(cell: BlockCell, config: dict[str, Any], wanted_bytes: float, *, exact: bool) -> Iterator[Finding]:
    """As many sets as were asked for, or as hold `wanted_bytes` together. `exact`: the bytes of a set are known."""
    place = (*cell.path, "facts", "sets")
    sets, least = whole(table(cell.record, "facts").get("sets")), whole(config.get("sets"))
    set_bytes = amount(table(cell.record, "cost").get("bytes"))
    if sets is None:
        yield error("chains", f"sets is {shown(table(cell.record, 'facts').get('sets'))}, and they are counted", place)
        return
    if least is None or not set_bytes:
        return
    most, held_bytes = max(least, ceil(min(wanted_bytes / set_bytes, _MOST))), min(sets, _MOST) * set_bytes
    if sets > most or (exact and sets < most) or sets < least:
        why = (
            f"{shown(sets)} sets of {set_bytes:.3g} bytes, and {shown(most)} were to hold {wanted_bytes:.3g} bytes, at least {shown(least)}"
        )
        yield error("chains", why, place)
    elif held_bytes * _SET_SLACK < wanted_bytes:
        yield error("chains", f"{shown(sets)} sets of {set_bytes:.3g} bytes hold less than half of {wanted_bytes:.3g} bytes", place)
    elif held_bytes < wanted_bytes:
        why = f"{shown(sets)} sets of at least {set_bytes:.3g} bytes may hold less than the {wanted_bytes:.3g} bytes that were asked for"
        yield warning("chains", why, place)


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
