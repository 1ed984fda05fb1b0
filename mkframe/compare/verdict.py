"""What may be said of one cell that passed in both reports."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from mkframe import stats
from mkframe.compare.report import Cell, CellKey, Report
from mkframe.model.outcome import Verdict, within_a_step
from mkframe.model.report import Summary

_FLOORS = {"slope": ("empty-kernel-slope",), "graph": ("empty-kernel-graph", "empty-call"), "eager": ("empty-kernel", "empty-call")}
"""The floor that a cell's time stands on: of slopes, else by the form of its call; `empty-call` is a CPU's."""
FLOOR_WORDS = {
    "empty-kernel-slope": "one empty kernel in a chain",
    "empty-kernel-graph": "an event pair around a graph of one empty kernel, for graph forms",
    "empty-kernel": "an event pair around an empty kernel, for eager calls",
    "empty-call": "a clock pair around an empty call",
}
_OTHER_KERNELS = "equal sources and packages ran other kernels (autotuning chose differently): this says nothing of the sources"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """NEW against BASE: `ratio` = NEW / BASE of the medians, below 1 is faster. `floors` is the difference of the medians in
    units of the sessions' `floor_ms`; both are None where no floor was measured. `rests_on`: samples or summaries."""

    comparison: stats.Comparison
    rests_on: str
    floor: str | None
    floor_ms: float | None
    floors: float | None


def compare_cell(key: CellKey, base: Report, new: Report) -> Compared:
    """Compares a cell that passed in both."""
    one, other = new.cells[key], base.cells[key]
    assert one.stream is not None and other.stream is not None, "both passed"
    steps = [report.step_ms for report in (base, new) if report.step_ms is not None]
    step_ms = max(steps, default=None)
    if one.samples is not None and other.samples is not None:
        rests_on = "samples"
        found = stats.compare_apart(one.samples.stream_ms, one.samples.process, other.samples.stream_ms, other.samples.process, step_ms)
    else:
        rests_on = "summaries"
        found = compare_summaries(one.stream, other.stream, step_ms)
    if found.verdict in (Verdict.FASTER, Verdict.SLOWER) and _other_kernels(one, other) and _same_sources(base, new, one, other):
        found = replace(found, verdict=Verdict.UNDECIDED, reason=_OTHER_KERNELS)
    name, floor_ms = _floor(one.record, base, new)
    floors = None if floor_ms is None else (one.stream.p50_ms - other.stream.p50_ms) / floor_ms
    if floors is not None and not math.isfinite(floors):
        name, floor_ms, floors = None, None, None
    return Compared(comparison=found, rests_on=rests_on, floor=name, floor_ms=floor_ms, floors=floors)


def compare_summaries(one: Summary, other: Summary, step_ms: float | None) -> stats.Comparison:
    """How `one` stands to `other` where nothing but summaries is known, neither how many processes nor how they differed.

    The interval of the ratio is the wider one of what the bands from min to p95 allow and of what two single processes may
    differ by (stats.unseen_ratio). FASTER or SLOWER only where it does not hold 1; SAME never.
    """
    if min(each for side in (one, other) for each in (side.min_ms, side.p50_ms, side.p95_ms)) <= 0:
        return stats.Comparison(verdict=Verdict.UNDECIDED, ratio=1.0, low=0.0, high=_LARGEST, reason="a time is zero")
    ratio, unseen = min(one.p50_ms / other.p50_ms, _LARGEST), stats.unseen_ratio()
    low, high = min(one.min_ms / other.p95_ms, ratio / unseen), min(max(one.p95_ms / other.min_ms, ratio * unseen), _LARGEST)
    verdict, reason = Verdict.FASTER if ratio < 1 else Verdict.SLOWER, None
    if step_ms is not None and within_a_step(one.p50_ms, other.p50_ms, step_ms):
        reason = f"the medians differ by no more than one step of the clock ({step_ms * 1e3:.3g} us)"
    elif low <= 1 <= high:
        reason = f"summaries alone: decided only where min to p95 of both lie apart and the medians by more than {unseen:.2f}x"
    return stats.Comparison(verdict=Verdict.UNDECIDED if reason else verdict, ratio=ratio, low=low, high=high, reason=reason)


_LARGEST = math.nextafter(math.inf, 0)


def _other_kernels(one: Cell, other: Cell) -> bool:
    nodes = [cell.record.get("nodes") for cell in (one, other)]
    return None not in nodes and nodes[0] != nodes[1]


def _same_sources(base: Report, new: Report, one: Cell, other: Cell) -> bool:
    """Whether nothing that was written by people tells the two apart."""
    documents = all(base.document[name] == new.document[name] for name in ("source_sha256", "packages"))
    return documents and all(one.record.get(name) == other.record.get(name) for name in ("implementation", "options"))


def _floor(record: Mapping[str, Any], base: Report, new: Report) -> tuple[str | None, float | None]:
    """The first floor for such a cell that both sessions measured on the stream clock: its median over their processes."""
    for name in _FLOORS.get("slope" if _is_slope(new) else record.get("form", ""), ()):
        sides = [
            [
                floor["summary"]["p50_ms"]
                for floor in report.block["timing"]["floors"]
                if (floor["name"], floor["clock"]) == (name, "stream")
            ]
            for report in (base, new)
            if report.block
        ]
        if len(sides) == 2 and all(sides) and (value := median([*sides[0], *sides[1]])) > 0:
            return name, float(value)
    return None, None


def _is_slope(report: Report) -> bool:
    """Whether a sample is the slope between two chains of calls."""
    protocol = report.document.get("timing")
    return protocol == "unrolled" or (protocol == "cold" and report.timing_option("method") == "rotate")
