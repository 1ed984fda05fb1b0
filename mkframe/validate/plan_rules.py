"""The plan in the block of a report of ours: which cases and engines the configuration asks for, and which have cells."""

from collections.abc import Iterator
from typing import Any

from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.validate.block_parts import BlockCell, block_cells, block_of
from mkframe.validate.comparison_parts import Path, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_BLOCK = "mkframe"
_CONFIG = (_BLOCK, "config")
_OURS = "residual_mlp"  # whose axes are known: a depth of one may be left out
_AXES = ("rows", "channels", "hidden")
_NONE = object()


def planned(subject: Subject) -> Iterator[Finding]:
    """Every case and engine that the configuration lists has its cell, and every case every engine; options are those asked for."""
    block = block_of(subject.document)
    if not block:
        return
    shape, engine = table(block, "config", "shape"), table(block, "config", "engine")
    cases: dict[tuple[str, int], BlockCell] = {}
    engines: dict[tuple[str, int], set[str]] = {}
    place: Path = (_BLOCK, "cells")
    for cell in block_cells(subject):
        cases.setdefault(cell.key[:2], cell)
        engines.setdefault(cell.key[:2], set()).add(cell.key[2])
    every = frozenset().union(*engines.values())
    ordered = sorted(every)
    for key, have in engines.items():
        if len(have) < len(every):
            lacking = next(name for name in ordered if name not in have)
            yield error("planned", f"{key[0]}[{key[1]}] lacks {shown(lacking)}, and the plan had every engine on every case", place)
    yield from _selected(block_cells(subject), every, engine)
    for name, node in shape.items():
        yield from _cases(name, node, cases, place, block["workload"])
    yield from _of_engines(block_cells(subject), engine)


def _selected(cells: list[BlockCell], every: frozenset[str], engine: dict[str, Any]) -> Iterator[Finding]:
    """Engines that are named have cells. Others come from a preset: an engine in graph form stands beside itself, and where no preset is
    `all` it is a baseline."""
    presets = {str(node["select"]) for node in map(table, engine.values()) if node.get("select") is not None}
    chosen = {name for name, node in engine.items() if table(node).get("select") is None}
    for name in sorted(chosen - every):
        yield error("planned", f"the configuration asks for the engine {shown(name)}, which has no cell", (_BLOCK, "cells"))
    unnamed = every - chosen
    if not presets:
        for name in sorted(unnamed):
            yield error("planned", f"no part of the configuration asks for the engine {shown(name)}", (*_CONFIG, "engine"))
        return
    for name in sorted(unnamed):
        if name.endswith(GRAPH_SUFFIX) and name.removesuffix(GRAPH_SUFFIX) not in every:
            base = shown(name.removesuffix(GRAPH_SUFFIX))
            yield error("planned", f"{shown(name)} has cells and {base} has none; a preset takes both", (_BLOCK, "cells"))
    if presets == {"baselines"}:
        first: dict[str, BlockCell] = {}
        for cell in cells:
            first.setdefault(cell.key[2], cell)
        for name in sorted(unnamed):
            if first[name].record["baseline"] is not True:
                why = f"{shown(name)} is no baseline, and the configuration asks for baselines alone"
                yield error("planned", why, (*first[name].path, "baseline"))


def _cases(name: str, node: Any, cases: dict[tuple[str, int], BlockCell], place: Path, workload: str) -> Iterator[Finding]:
    listed = table(node).get("cases")
    if not isinstance(listed, list):
        if workload == _OURS and not set(_AXES).intersection(table(node)):
            why = f"the shape set {shown(name)} of the configuration has neither cases nor axes"
            yield error("planned", why, (*_CONFIG, "shape", name))
        return
    for index, wanted in enumerate(listed):
        cell = cases.get((name, index))
        if cell is None:
            yield error("planned", f"the configuration lists {shown(name)}, case {index}, which has no cell", place)
            continue
        sizes = cell.record["shape"]
        if differs := _differing(sizes, table(wanted), workload):
            why = f"{differs[0]} is {_told(sizes, differs[0])}, and the configuration lists {_told(table(wanted), differs[0])}"
            yield error("planned", f"{name}[{index}]: {why}", (*cell.path, "shape"))
    more = max((index for of, index in cases if of == name), default=-1)
    if more >= len(listed):
        yield error("planned", f"case {more} of {shown(name)} is not in the configuration", (*cases[name, more].path, "case"))


def _of_engines(cells: list[BlockCell], engine: dict[str, Any]) -> Iterator[Finding]:
    """What belongs to an engine is the same in all of its cells; a baseline is one in both forms."""
    first: dict[str, BlockCell] = {}
    baseline: dict[str, BlockCell] = {}
    for cell in cells:
        before, name = first.setdefault(cell.key[2], cell), cell.key[2]
        for key in ("options", "implementation"):
            if cell.record[key] != before.record[key]:
                yield error("planned", f"{key} of {shown(name)} is not what other cells of it say", (*cell.path, key))
        other = baseline.setdefault(name.removesuffix(GRAPH_SUFFIX), cell)
        if cell.record["baseline"] is not other.record["baseline"]:
            why = f"baseline is {shown(cell.record['baseline'])}, and {other.text} says otherwise of the same engine"
            yield error("planned", why, (*cell.path, "baseline"))
    for name, cell in first.items():
        for key, value in table(engine, name, "options").items():
            if cell.record["options"].get(key, _NONE) != value:
                why = f"{key} of {shown(name)} is {_told(cell.record['options'], key)}, and the configuration asks for {shown(value)}"
                yield error("planned", why, (*cell.path, "options"))


def _differing(sizes: dict[str, Any], wanted: dict[str, Any], workload: str) -> list[str]:
    """Axes of other sizes; those that one side leaves out only where their sizes are known."""
    if workload != _OURS:
        return [axis for axis in wanted if axis in sizes and whole(sizes[axis]) != whole(wanted[axis])]
    have, asked = ({"depth": 1, **{axis: whole(size) for axis, size in side.items()}} for side in (sizes, wanted))
    return sorted(axis for axis in {*have, *asked} if have.get(axis) != asked.get(axis))


def _told(record: dict[str, Any], key: str) -> str:
    return shown(record[key]) if key in record else "left out"


PLAN_RULES = (
    Rule(
        id="planned",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="every case and engine of the configuration has its cell, with the options asked for",
        check=planned,
        needs_schema=True,
    ),
)
