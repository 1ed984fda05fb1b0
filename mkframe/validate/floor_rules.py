"""Floors and launch twins of a report of ours: one of each kind for every worker, and no time below what a clock reads around less.

Which floor bounds which time:

- A sample that is one call between two readings (per_call; cold by eviction) is never below the pair of readings around nothing.
  Below the least of those by more than SLACK it is impossible.
- Such a call launches at least one kernel, or one graph of one, so that a median below the empty kernel of its form is doubtful: a
  warning, because an engine may do its work by a copy or a memset, which may be shorter than a kernel.
- A sample of several calls (replay, unrolled, cold by rotation) is divided by their number, or a slope: the readings fall out. What is
  left is at least a kernel in a chain, unless kernels overlap (programmatic launches): a warning.
- A launch twin is the cell without its work, so a cell faster than its twin is doubtful.

Floors and twins vary between processes: of published runs the medians of one floor by up to 17 %, which SLACK allows for.
"""

import math
from collections.abc import Iterator
from typing import Any

from mkframe.validate.block_parts import BlockCell, block_cells, block_of, workers
from mkframe.validate.comparison_parts import STREAM, TIMES, amount, table, whole
from mkframe.validate.comparison_rules import EVENT_STEPS_MS
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.two_clocks import beyond

SLACK = 0.2
_NANOSECOND_MS = 1e-6
_PAIRS = {"cuda": "empty-pair", "cpu": "empty-call"}
_CALLS = {"eager": "empty-kernel", "graph": "empty-kernel-graph"}
_CHAIN = "empty-kernel-slope"
_NAMES = {"cuda": {"empty-pair", "empty-kernel", "empty-kernel-graph", _CHAIN}, "cpu": {"empty-call"}}
_SINCE_1_2 = {_CHAIN}
_CLOCKS = ("stream", "host")


def floors(subject: Subject) -> Iterator[Finding]:
    """Every worker measured every floor once, by both clocks, from as many samples; the host's clock stands outside."""
    block = block_of(subject.document)
    if not block:
        return
    kind, found = block["device"]["kind"], block["timing"]["floors"]
    yield from _step(block)
    place = ("mkframe", "timing", "floors")
    first: dict[tuple[str, str, int], int] = {}
    counts: dict[int, int] = {}
    for index, floor in enumerate(found):
        key = (floor["name"], floor["clock"], whole(floor["process"]) or 0)
        counts.setdefault(whole(floor["summary"]["count"]) or 0, index)
        if floor["clock"] not in _CLOCKS:
            yield error("floors", f"clock is {shown(floor['clock'])}, and there are {' and '.join(_CLOCKS)}", (*place, index, "clock"))
        elif floor["name"] not in _NAMES.get(kind, {floor["name"]}):
            yield error("floors", f"{shown(floor['name'])} is no floor of a {kind} device", (*place, index, "name"))
        elif first.setdefault(key, index) != index:
            yield error("floors", f"the same floor as item {first[key]}", (*place, index))
    if len(counts) > 1:
        yield error("floors", "floors are of different numbers of samples", (*place, sorted(counts.values())[1], "summary", "count"))
    told = {(name, clock) for name, clock, _ in first}
    wanted = {(name, clock) for name in {name for name, _ in told} | (_NAMES.get(kind, set()) - _SINCE_1_2) for clock in _CLOCKS}
    ordered = sorted(wanted)
    lacking = next((key for worker in sorted(workers(subject)) for key in ordered if (*key, worker) not in first), None)
    processes = whole(block["timing"]["processes"]) or 1
    if any(cell.passed for cell in block_cells(subject)) and len(workers(subject)) < processes:
        yield error("floors", f"they are of {len(workers(subject))} processes, and {processes} measured", place)
    elif lacking is not None:
        yield error("floors", f"a process has no {lacking[0]} by the clock of the {lacking[1]}, which every process measures", place)
    for (name, clock, worker), index in first.items():
        outer = first.get((name, "host", worker))
        if clock == "stream" and name != _CHAIN and outer is not None:
            stream, host = found[index]["summary"], found[outer]["summary"]
            wrong = [figure for figure in TIMES if beyond(stream[figure], host[figure])]
            if wrong:
                why = f"{wrong[0]} is {shown(host[wrong[0]])} by the host and {shown(stream[wrong[0]])} by the stream"
                yield error("floors", f"{why}: the host's clock stands outside", (*place, outer, "summary"))


def _step(block: dict[str, Any]) -> Iterator[Finding]:
    """Events step by 32 ns x 2^k, and the clock of a CPU counts whole nanoseconds."""
    step_ms = amount(block["timing"]["timer_step_ms"])
    if step_ms is None:
        return
    on_gpu = block["device"]["kind"] == "cuda"
    if step_ms < _NANOSECOND_MS * 0.99 or (on_gpu and not any(math.isclose(step_ms, step, rel_tol=1e-9) for step in EVENT_STEPS_MS)):
        why = "32 ns x 2^k up to 1.024 us" if on_gpu else "at least 1 ns"
        yield error(
            "floors", f"timer_step_ms is {shown(step_ms)}, and a step of this clock is {why}", ("mkframe", "timing", "timer_step_ms")
        )


def below_floor(subject: Subject) -> Iterator[Finding]:
    """No median is below what the clock reads around nothing; none should be below an empty kernel, or below its launch twin."""
    block = block_of(subject.document)
    if not block:
        return
    kind = block["device"]["kind"]
    pair_ms = _least(block, "min_ms").get(_PAIRS.get(kind, ""))
    least = _least(block, "p50_ms")
    timing = block["timing"]
    single = timing["protocol"] == "per_call" or (
        timing["protocol"] == "cold" and table(block, "config", "timing").get("method") == "evict"
    )
    for cell in block_cells(subject):
        if cell.entry is None or cell.p50_ms is None:
            continue
        place = (*cell.entry.path, STREAM, "p50_ms")
        if single and _is_below(cell.p50_ms, pair_ms):
            why = f"a median of {shown(cell.p50_ms)} ms, and around nothing the clock reads at least {shown(pair_ms)} ms"
            yield error("below-floor", f"{cell.text}: {why}", place)
        elif (doubt := _doubt(cell, cell.p50_ms, least, kind, single)) is not None:
            yield warning("below-floor", doubt, place)


def _doubt(cell: BlockCell, p50_ms: float | None, least: dict[str, float], kind: str, single: bool) -> str | None:
    name = _CALLS[cell.form] if single else _CHAIN
    if kind == "cuda" and _is_below(p50_ms, least.get(name)):
        return f"{cell.text}: a median of {shown(p50_ms)} ms, and the floor {name} is {shown(least[name])} ms"
    twin_ms = amount(table(cell.record, "twin", STREAM).get("p50_ms"))
    if _is_below(p50_ms, twin_ms):
        return f"{cell.text}: a median of {shown(p50_ms)} ms, and its launch twin, which does nothing, takes {shown(twin_ms)} ms"
    return None


def _is_below(time_ms: float | None, floor_ms: float | None) -> bool:
    return time_ms is not None and floor_ms is not None and time_ms < floor_ms * (1 - SLACK)


def _least(block: dict[str, Any], figure: str) -> dict[str, float]:
    """The smallest figure of each floor by the stream, over all processes."""
    found: dict[str, float] = {}
    for floor in block["timing"]["floors"]:
        if floor["clock"] == "stream":
            value = float(floor["summary"][figure])
            found[floor["name"]] = min(value, found.get(floor["name"], value))
    return found


FLOOR_RULES: tuple[Rule, ...] = (
    Rule(
        id="floors",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="every process measured every floor once by both clocks, host figures hold stream figures, the step is one of the clock",
        check=floors,
        needs_schema=True,
    ),
    Rule(
        id="below-floor",
        format=COMPARISON,
        severities=(Severity.ERROR, Severity.WARNING),
        says="no median is below its clock's reading around nothing; none should be below an empty kernel or its launch twin",
        check=below_floor,
        needs_schema=True,
    ),
)
