"""Comparison reports with one fault each: what was changed, which rule sees it, and where. Made from valid reports, never stored."""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from compare_reports import THREE, TIMES, Document, document, on_events, samples, settle

DATA = Path(__file__).resolve().parents[1] / "data" / "valid"
RECORDED: Document = json.loads((DATA / "residual-mlp-rtx3090.json").read_text(encoding="utf-8"))
GRAPH = "persistent-graph"


def odd(times_ms: Any) -> Any:
    """Times at odd multiples of 32 ns: with them in a run, its clock shows no longer step."""
    return on_events((2 * np.floor(times_ms / 64e-6) + 1) * 32e-6)


CELLS: Any = {
    (0, "torch-cublas"): odd(samples(20.0, 1)),
    (0, "persistent"): samples(15.0, 2),
    (0, "conventional"): samples(17.0, 3),
    (0, GRAPH): samples(9.0, 4),
    (0, "torch-cublas-graph"): samples(12.0, 5),
    (0, "torch-compile"): "unsupported",
    (1, "torch-cublas"): samples(40.0, 6),
    (1, "persistent"): "incorrect",
    (1, "conventional"): "crashed",
    (1, GRAPH): samples(30.0, 7),
    (1, "torch-cublas-graph"): samples(24.0, 8),
    (1, "torch-compile"): "unsupported",
}


_LAUNCH = {name: [1, 1, 1] for name in ("grid", "block", "cluster")} | {
    "shared_bytes": 0,
    "cooperative": False,
    "programmatic": False,
    "registers": 16,
    "local_bytes": 0,
}


def ours(cells: Any, process: Sequence[int] = THREE) -> Document:
    """A report of ours on schema 1.2, without peaks: that of a device of which no card is known."""
    made = document(cells, process)
    for cell in made["mkframe"]["cells"]:
        cell |= dict.fromkeys(("rates", "twin"))
        cell["kernels"] = None if cell["nodes"] is None else [_LAUNCH | {"name": name} for name in cell["nodes"]]
    block = made["mkframe"]
    block["device"] |= {"card": None, "peaks": None}
    return settle(made)


OURS = ours(CELLS)
INCOMPLETE = ours({**CELLS, (1, "persistent"): "incomplete"})


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`base` changed by `edit`. Every finding that it has and its base has not is of `rule` and stands at `pointer`, except those
    of `besides`: rules that warn of the same change."""

    name: str
    rule: str
    base: Document
    edit: Callable[[Document], None]
    pointer: str
    besides: tuple[str, ...] = ()

    @property
    def document(self) -> Document:
        made = copy.deepcopy(self.base)
        self.edit(made)
        return made


def at(made: Any, path: str) -> tuple[Any, Any]:
    """(container, key) of a JSON Pointer."""
    *parents, last = [int(token) if token.isdecimal() else token for token in path.split("/")[1:]]
    for token in parents:
        made = made[token]
    return made, last


def put(path: str, value: Any) -> Callable[[Document], None]:
    def edit(made: Document) -> None:
        node, key = at(made, path)
        node[key] = copy.deepcopy(value)

    return edit


def drop(path: str) -> Callable[[Document], None]:
    def edit(made: Document) -> None:
        node, key = at(made, path)
        del node[key]

    return edit


def times(path: str, factor: float) -> Callable[[Document], None]:
    def edit(made: Document) -> None:
        node, key = at(made, path)
        node[key] *= factor

    return edit


def copied(source: str, target: str) -> Callable[[Document], None]:
    def edit(made: Document) -> None:
        node, key = at(made, source)
        put(target, node[key])(made)

    return edit


def appended(source: str, target: str) -> Callable[[Document], None]:
    def edit(made: Document) -> None:
        node, key = at(made, source)
        found, last = at(made, target)
        found[last].append(copy.deepcopy(node[key]))

    return edit


def _short_host(made: Document) -> None:
    entry = made["development"][0]["engines"]["persistent"]
    entry["host_summary"] = entry["stream_summary"] | {name: 0.98 * entry["stream_summary"][name] for name in TIMES}


def _without_protocol(made: Document) -> None:
    made["limitations"] = [text for text in made["limitations"] if "per_call" not in text]


def _not_said(made: Document) -> None:
    made["limitations"] = [text for text in made["limitations"] if not text.startswith("INCOMPLETE")]


def _ended_early(made: Document) -> None:
    made["mkframe"]["incomplete"] = True
    made["limitations"].insert(0, "INCOMPLETE: the run ended early, 0 cells lack some of their blocks and have no numbers.")


def _host_a_little_short(made: Document) -> None:
    entry = made["development"][0]["engines"]["persistent"]
    entry["host_summary"] = entry["stream_summary"] | {name: (1 - 1e-4) * entry["stream_summary"][name] for name in TIMES}


def index_of(made: Document, case: int, engine: str) -> int:
    """Where mkframe.cells has a cell."""
    keys = [(cell["case"], cell["engine"]) for cell in made["mkframe"]["cells"]]
    return keys.index((case, engine))


def verdict_of(made: Document, case: int, engine: str) -> int:
    keys = [(record["case"], record["engine"]) for record in made["mkframe"]["verdicts"]]
    return keys.index((case, engine))


ENGINE = "/development/0/engines/persistent"
OUTPUT = "/compiler/small_gpu_output"


def _everybody() -> Iterator[tuple[Any, ...]]:
    yield "count", "count of a stream", put(f"{ENGINE}/stream_summary/count", 999), f"{ENGINE}/stream_summary/count"
    yield "count", "count of a host", put(f"{ENGINE}/host_summary/count", 1001), f"{ENGINE}/host_summary/count"
    yield "count", "one more round", put("/rounds", 6), "any"
    yield "count", "one sample less", put("/samples_per_round", 199), "any"
    host = f"{ENGINE}/host_summary"
    other = "/assessment/2/engines/persistent/host_summary"
    yield "order", "p50 above p95", put(f"{other}/p50_ms", 0.2), other
    yield "order", "min above p50", times(f"{host}/min_ms", 1.1), host
    yield "order", "p95 above max", put(f"{host}/p95_ms", 1.0), host
    yield "order", "mean above max", put(f"{host}/mean_ms", 1.0), host
    yield "order", "mean below min", put(f"{host}/mean_ms", 0.001), host
    yield "mean", "mean near min", put(f"{ENGINE}/stream_summary/mean_ms", 0.02049), f"{ENGINE}/stream_summary/mean_ms"
    yield "mean", "mean near max", put(f"{ENGINE}/stream_summary/mean_ms", 0.0294), f"{ENGINE}/stream_summary/mean_ms"
    yield "host-stream", "host inside stream", _short_host, ENGINE
    yield "host-stream", "two clocks", _host_a_little_short, ENGINE
    yield "duplicate-shape", "same shape", copied("/development/1/shape", "/development/3/shape"), "/development/3/shape"
    yield "shape-in-both", "tuned shape", copied("/development/1/shape", "/assessment/0/shape"), "/assessment/0/shape"
    yield "gpu-output", "more violations than elements", put(f"{OUTPUT}/violations", 2000), OUTPUT
    yield "gpu-output", "mean error above max", put(f"{OUTPUT}/mean_abs_error", 1e-3), OUTPUT
    yield "gpu-output", "failed without violations", put(f"{OUTPUT}/passed", False), OUTPUT
    yield "gpu-output", "passed with violations", put(f"{OUTPUT}/violations", 3), OUTPUT
    yield "engine-set", "engine left out", drop("/assessment/1/engines/persistent"), "/assessment/1/engines"
    yield "engine-set", "engine added", copied("/assessment/1/engines/torch-cublas", "/assessment/1/engines/new"), "/assessment/1/engines"
    yield (
        "timer-step",
        "equal medians",
        copied("/development/1/engines/conventional", "/development/1/engines/persistent"),
        "/development/1",
    )
    yield "source-commit", "no commit", put("/source_commit", None), "/source_commit"
    yield "date", "30 February", put("/recorded_on", "2026-02-30"), "/recorded_on"
    yield "date", "no leap year", put("/recorded_on", "2026-02-29"), "/recorded_on"
    for place in ("", "/development/0", ENGINE, f"{ENGINE}/host_summary", OUTPUT):
        yield "unknown-key", f"key in {place or 'report'}", put(f"{place}/operator_note", 1), f"{place}/operator_note"


def _of_ours() -> Iterator[tuple[Any, ...]]:
    def cell(case: int, engine: str) -> str:
        return f"/mkframe/cells/{index_of(OURS, case, engine)}"

    def verdict(case: int, engine: str) -> str:
        return f"/mkframe/verdicts/{verdict_of(OURS, case, engine)}"

    timing = "/mkframe/timing"
    yield "unknown-key", "key in a report of ours", put("/operator_note", 1), "/operator_note"
    yield "order", "floor out of order", times(f"{timing}/floors/0/summary/p50_ms", 100.0), f"{timing}/floors/0/summary"
    yield "stated-twice", "another protocol", put("/timing", "replay"), "/timing"
    yield "stated-twice", "another number of samples", put(f"{timing}/samples_per_round", 49), "/samples_per_round"
    yield "stated-twice", "another device", put("/device", "NVIDIA A100"), "/device"
    yield "stated-twice", "another version", put("/mkframe/version", "9.9"), "/packages/mkframe"
    yield "stated-twice", "another precision", put("/precision", "FP32 everywhere"), "/precision"
    yield "stated-twice", "cold per_call", put(f"{timing}/cache_state", "cold"), f"{timing}/cache_state"
    yield "config-hash", "another configuration", put("/mkframe/config/timing/cell_timeout_s", 1.0), "/mkframe/config_sha256"
    yield "energy", "energy of nothing", put("/mkframe/energy/net_mj", 1.0), "/mkframe/energy/net_mj"
    yield "samples-name", "another file", put("/mkframe/samples/file", f"samples-{'0' * 64}.npz"), "/mkframe/samples/file"
    yield "round-process", "dealt in turn", put(f"{timing}/round_process", [0, 1, 2, 0, 1, 2]), f"{timing}/round_process"
    yield "round-process", "a round too few", drop(f"{timing}/round_process/5"), f"{timing}/round_process"
    yield "round-process", "more processes", put(f"{timing}/processes", 6), f"{timing}/round_process"
    yield "round-process", "round of another process", put("/mkframe/rounds/3/process", 0), "/mkframe/rounds/3/process"
    yield "round-process", "round that is not", put("/mkframe/rounds/3/round", 6), "/mkframe/rounds/3/round"
    yield "limitations", "protocol not named", _without_protocol, "/limitations"
    accumulated = OURS["precision"].replace("FP32 accumulation", "FP16 accumulation")
    yield "precision", "another accumulation", put("/precision", accumulated), "/precision"
    yield "cells", "cell twice", appended(cell(0, "persistent"), "/mkframe/cells"), f"/mkframe/cells/{len(OURS['mkframe']['cells'])}"
    yield "cells", "two shapes of a case", put(f"{cell(0, 'torch-compile')}/shape/rows", 99), f"{cell(0, 'torch-compile')}/shape"
    yield "cells", "a shape under two numbers", put(f"{cell(0, 'torch-compile')}/case", 7), f"{cell(0, 'torch-compile')}/case"
    yield "cells", "no seed", drop("/mkframe/seeds/development"), "/mkframe/seeds"
    failed = "/development/1/engines/persistent"
    yield "cell-results", "unsupported with an entry", put(f"{cell(1, 'persistent')}/outcome", "unsupported"), failed
    yield "cell-results", "entry without a cell", drop(cell(1, "persistent")), failed
    yield "cell-results", "cell without an entry", put(f"{cell(1, 'torch-compile')}/outcome", "oom"), cell(1, "torch-compile")
    for name, value in (("reason", "slow"), ("interval", None), ("form", "graph")):
        place = f"{cell(0, 'conventional')}/{name}"
        yield "cell-outcome", f"passed with {name} {value}", put(place, value), place
    yield "cell-outcome", "failed without a reason", put(f"{cell(1, 'persistent')}/reason", None), f"{cell(1, 'persistent')}/reason"
    yield "cell-outcome", "interval backwards", times(f"{cell(0, GRAPH)}/interval/low_ms", 2.0), f"{cell(0, GRAPH)}/interval"
    yield "cell-outcome", "late without hold", put(f"{timing}/hold", False), "any"
    yield "cell-outcome", "passed with violations", put(f"{cell(0, GRAPH)}/check/violations", 1), f"{cell(0, GRAPH)}/check"
    yield (
        "replay-flag",
        "flag without its checks",
        drop(f"{cell(0, GRAPH)}/checks/3"),
        f"/development/0/engines/{GRAPH}/replay_changed_input",
    )
    flag = f"{failed}/replay_changed_input"
    yield "replay-flag", "flag of a failed cell", put(flag, True), flag
    slower = verdict(0, "torch-cublas")
    yield "verdict-cells", "no verdict", drop(slower), "/mkframe/verdicts"
    yield "verdict-cells", "two verdicts", appended(slower, "/mkframe/verdicts"), f"/mkframe/verdicts/{len(OURS['mkframe']['verdicts'])}"
    yield "verdict-cells", "no such baseline", put(f"{slower}/baseline", "nobody"), slower
    yield "verdict-cells", "failed engine", put(f"{verdict(1, GRAPH)}/engine", "persistent"), "any"
    yield "verdict-cells", "another form", _other_form, slower
    yield "verdict-cells", "slower baseline", _slower_baseline, slower
    yield "verdict-cells", "no baseline", put(f"{cell(1, 'torch-cublas-graph')}/baseline", False), "any"
    yield "verdict-ratio", "another ratio", times(f"{slower}/ratio", 1 + 1e-6), f"{slower}/ratio"
    yield "verdict-ratio", "ratio outside its interval", times(f"{slower}/ratio_low", 1.2), slower
    yield "verdict-word", "the other word", put(f"{slower}/verdict", "FASTER"), f"{slower}/verdict"
    yield "verdict-word", "same", put(f"{slower}/verdict", "SAME"), f"{slower}/verdict"
    yield "verdict-word", "undecided without a reason", put(f"{slower}/verdict", "UNDECIDED"), f"{slower}/reason"
    yield "verdict-word", "interval around 1", put(f"{slower}/ratio_low", 0.99), f"{slower}/verdict"
    yield "verdict-word", "nearer than a step", put(f"{timing}/timer_step_ms", 0.0049), "any"
    yield "verdict-word", "exactly a step apart", _a_step_apart, "any"


def _a_step_apart(made: Document) -> None:
    """A ranked pair, and the step as long as their difference."""
    record = made["mkframe"]["verdicts"][verdict_of(made, 0, "torch-cublas")]
    entries = made["development"][0]["engines"]
    one, other = (entries[record[name]]["stream_summary"]["p50_ms"] for name in ("engine", "baseline"))
    made["mkframe"]["timing"]["timer_step_ms"] = abs(one - other)


def _other_form(made: Document) -> None:
    record = made["mkframe"]["verdicts"][verdict_of(made, 0, "torch-cublas")]
    entries = made["development"][0]["engines"]
    record["baseline"] = GRAPH
    record["ratio"] = ratio = entries["torch-cublas"]["stream_summary"]["p50_ms"] / entries[GRAPH]["stream_summary"]["p50_ms"]
    record |= {"ratio_low": 0.99 * ratio, "ratio_high": 1.01 * ratio}


def _slower_baseline(made: Document) -> None:
    record = made["mkframe"]["verdicts"][verdict_of(made, 0, "torch-cublas")]
    entries = made["development"][0]["engines"]
    record["baseline"] = "conventional"
    record["ratio"] = ratio = entries["torch-cublas"]["stream_summary"]["p50_ms"] / entries["conventional"]["stream_summary"]["p50_ms"]
    record |= {"ratio_low": 0.99 * ratio, "ratio_high": 1.01 * ratio}


_FOLLOWS = {
    "another precision": ("precision",),
    "floor out of order": ("floors",),
    "cold per_call": ("limitations",),
    "another number of samples": ("config", "limitations"),
    "more processes": ("config", "floors", "limitations"),
    "round that is not": ("round-clocks",),
    "cell twice": ("limitations",),
    "a shape under two numbers": ("planned",),
    "two shapes of a case": ("planned", "acceptance"),
    "no seed": ("config", "limitations"),
    "unsupported with an entry": ("limitations", "captures"),
    "entry without a cell": ("limitations", "planned"),
    "cell without an entry": ("evidence", "failures", "limitations"),
    "late without hold": ("config", "limitations"),
    "flag without its checks": ("evidence",),
    "no baseline": ("planned",),
    "nearer than a step": ("floors", "form", "verdict-ratio"),
    "exactly a step apart": ("floors", "form", "verdict-ratio"),
    "incomplete, and it does not say so": ("limitations",),
}
"""What one fault contradicts besides: sentences and configuration tell many figures a second time."""
_BESIDES = {"engine-set": ("timer-step",), "cell-results": ("engine-set",), "verdict-word": ("timer-step",)}


def _mutants() -> Iterator[Mutant]:
    for base, found in ((RECORDED, _everybody()), (OURS, _of_ours())):
        for rule, name, edit, pointer in found:
            yield Mutant(
                name=name, rule=rule, base=base, edit=edit, pointer=pointer, besides=_BESIDES.get(rule, ()) + _FOLLOWS.get(name, ())
            )
    yield Mutant(
        name="incomplete, and it does not say so",
        rule="incomplete",
        base=INCOMPLETE,
        edit=put("/mkframe/incomplete", False),
        pointer="/mkframe/incomplete",
        besides=_FOLLOWS["incomplete, and it does not say so"],
    )
    yield Mutant(name="incomplete for nothing", rule="incomplete", base=OURS, edit=_ended_early, pointer="/mkframe/incomplete")
    yield Mutant(name="no sentence", rule="limitations", base=INCOMPLETE, edit=_not_said, pointer="/limitations")


MUTANTS = tuple(_mutants())
