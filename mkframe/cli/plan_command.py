"""`python -m mkframe plan`: what a run would do, and with --estimate how long it would take. Nothing runs."""

import json
import os
from collections.abc import Iterator
from typing import Any

from mkframe.config.one_job import one_job
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import UsageError
from mkframe.model.plan import CasePlan, RunPlan
from mkframe.plan import memory
from mkframe.plan.budget import seconds
from mkframe.plan.build import build_plan
from mkframe.plan.choice import device_for
from mkframe.plan.engines import Selected, select
from mkframe.plan.estimate import Estimate, estimate
from mkframe.plan.history import load_history
from mkframe.plan.host import measure_host
from mkframe.plugin.loader import load_registry
from mkframe.plugin.workload import Workload
from mkframe.settings.nodes import Config

_HELP = """usage: mkframe plan [--estimate] [--format text|json] [overrides]

Prints the plan of the run that the same overrides would start: cells, what cannot run and why, blocks, memory.

  --estimate     the seconds that each part of the run is expected to take, from the times of earlier runs where there are any
  --format FORM  text for people (default), or one JSON document"""
_SHOWN_CASES = 40
_SAMPLE_BYTES = 16  # two clocks in float64
_MEANING = {
    "start": "imports, device, floors",
    "draw": "inputs and references",
    "bind": "binding, compiling, capture",
    "check": "checks before and after timing",
    "warm-up": "untimed calls",
    "timing": "samples and journal",
    "statistics": "intervals and verdicts",
}


def main(argv: list[str]) -> int:
    """Exit code 0, or 2 where the run would not start."""
    words, wanted, form = _options(argv)
    if form is None:
        print(_HELP)
        return 0
    plugin_paths, rest = split_plugin_paths(words, os.environ)
    registry = load_registry(plugin_paths)
    config = one_job(rest, "plan", registry, plugin_paths)
    resolved = device_for(config, registry)
    plan = build_plan(config, registry, resolved.device)
    workload = registry.workload(plan.workload)
    engines = select(config.engine, workload.id, registry, resolved.device)
    expected = estimate(plan, workload, load_history(), measure_host()) if wanted else None
    document = _document(plan, config, workload, engines, expected)
    document["notes"] = [note for note in (resolved.note, *plan.notes) if note is not None]
    if form == "json":
        print(json.dumps(document, indent=2))
    else:
        print("\n".join(_lines(document)))
    return 0


def _options(argv: list[str]) -> tuple[list[str], bool, str | None]:
    """(overrides and Hydra's flags, whether to estimate, the form or None for --help). Raises UsageError."""
    words, wanted, form = [], False, "text"
    rest = iter(argv)
    for word in rest:
        name, _, attached = word.partition("=")
        if word in ("-h", "--help"):
            return [], False, None
        if word == "--estimate":
            wanted = True
        elif name == "--format":
            form = attached or next(rest, "")
            if form not in ("text", "json"):
                raise UsageError(f"--format takes text or json, not {form!r}")
        else:
            words.append(word)
    return words, wanted, form


def _document(
    plan: RunPlan, config: Config, workload: Workload, engines: tuple[Selected, ...], expected: Estimate | None
) -> dict[str, Any]:
    timing = plan.timing
    cells = sum(len(case.cells) for case in plan.cases)
    runnable = sum(len(case.runnable) for case in plan.cases)
    cases = [_case(plan, case, workload, engines) for case in plan.cases]
    document: dict[str, Any] = {
        "workload": plan.workload,
        "precision": plan.precision.id,
        "device": plan.device.name,
        "timing": {
            "protocol": timing.protocol,
            "rounds": timing.rounds,
            "samples_per_round": timing.samples_per_round,
            "processes": timing.processes,
            "warmups": timing.warmups,
            "hold": timing.hold,
        },
        "cells": cells,
        "runnable_cells": runnable,
        "blocks": runnable * timing.rounds,
        "memory": {
            "device_bytes": max((case["device_bytes"] for case in cases), default=0),
            "host_bytes": max((case["host_bytes"] for case in cases), default=0),
            "samples_file_bytes": runnable
            * (memory.samples_bytes(timing.rounds) + timing.rounds * timing.samples_per_round * _SAMPLE_BYTES),
        },
        "cases": cases,
    }
    if expected is not None:
        document["estimate"] = _estimate(expected)
        for case, cost in _costs(cases, expected):
            case["expected_s"] = cost
    return document


def _case(plan: RunPlan, case: CasePlan, workload: Workload, engines: tuple[Selected, ...]) -> dict[str, Any]:
    running = {cell.engine.id for cell in case.runnable}
    needed = memory.need(workload, case.case, plan.precision, [item for item in engines if item.plan.id in running])
    return {
        "set": case.set,
        "case": case.index,
        "shape": dict(case.shape),
        "engines": sorted(running, key=[cell.engine.id for cell in case.cells].index),
        "unsupported": {cell.engine.id: cell.unsupported for cell in case.cells if cell.unsupported is not None},
        "blocks": len(running) * plan.timing.rounds,
        "device_bytes": needed.device_bytes,
        "host_bytes": needed.host_bytes,
    }


def _estimate(expected: Estimate) -> dict[str, Any]:
    cells = [cell for case in expected.cases for cell in case.cells]
    return {
        "total_s": expected.total_s,
        "parts_s": {part.value: value for part, value in expected.parts.items()},
        "cells_seen_before": sum(cell.known for cell in cells),
        "cells": len(cells),
    }


def _costs(cases: list[dict[str, Any]], expected: Estimate) -> Iterator[tuple[dict[str, Any], float]]:
    by_key = {cost.case.key: cost for cost in expected.cases}
    for case in cases:
        cost = by_key.get((case["set"], case["case"]))
        once = 0.0 if cost is None else cost.draw_s + sum(cell.bind_s + cell.check_s for cell in cost.cells)
        each = 0.0 if cost is None else sum(cell.warm_up_s + cell.timing_s + cell.statistics_s for cell in cost.cells)
        yield case, expected.processes * once + expected.rounds * each


def _lines(document: dict[str, Any]) -> Iterator[str]:
    timing, needed = document["timing"], document["memory"]
    yield f"{document['workload']} in {document['precision']} on {document['device']}"
    yield (
        f"{timing['protocol']}: {timing['rounds']} rounds x {timing['samples_per_round']} samples over {timing['processes']} processes, "
        f"{timing['warmups']} warm-up calls a block"
    )
    yield f"{document['runnable_cells']} of {document['cells']} cells can run, {document['blocks']} blocks"
    yield (
        f"memory: {memory.amount(needed['device_bytes'])} on the device and {memory.amount(needed['host_bytes'])} on the host for the "
        f"largest case; samples file {memory.amount(needed['samples_file_bytes'])}"
    )
    yield from (f"note: {note}" for note in document["notes"])
    yield ""
    yield from _case_lines(document["cases"])
    if "estimate" in document:
        yield ""
        yield from _estimate_lines(document["estimate"])


def _case_lines(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases[:_SHOWN_CASES]:
        shape = "x".join(str(size) for size in case["shape"].values())
        expected = f", {seconds(case['expected_s'])} expected" if "expected_s" in case else ""
        yield f"{case['set']}[{case['case']}] {shape}: {', '.join(case['engines']) or 'nothing'}; {case['blocks']} blocks{expected}"
        yield from (f"    {engine} cannot: {reason}" for engine, reason in case["unsupported"].items())
    if len(cases) > _SHOWN_CASES:
        yield f"... and {len(cases) - _SHOWN_CASES} cases more; --format json lists all"


def _estimate_lines(found: dict[str, Any]) -> Iterator[str]:
    for part, value in found["parts_s"].items():
        yield f"{part:<12} {value:>10.2f} s  {_MEANING[part]}"
    yield f"{'total':<12} {found['total_s']:>10.2f} s  {seconds(found['total_s'])}"
    seen, cells = found["cells_seen_before"], found["cells"]
    rest = "" if seen == cells else "; the others are guessed, on the slow side; a run of one small shape set makes them known"
    yield f"{seen} of {cells} cells were timed by an earlier run under the same conditions{rest}"
