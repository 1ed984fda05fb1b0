"""Reports for the tests of compare: the conditions of a published one, cells and samples of one's own."""

import copy
import io
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkframe import stats
from mkframe.canonical import digest, sha256

PUBLISHED = Path(__file__).resolve().parents[2] / "outputs/published/residual-mlp-baselines-h200-per-call/report.json"
TEMPLATE: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
for _cell in TEMPLATE["mkframe"]["cells"]:
    for _key in ("rates", "twin", "kernels"):  # they belong to the samples of the published report
        _cell.pop(_key, None)
TEMPLATE["mkframe"]["device"].pop("peaks", None)
_OLD = ("mkframe/__init__.py", "mkframe/__main__.py", "mkframe/canonical.py")  # others came with the rates, or after them
TEMPLATE["source_sha256"] = {
    name: digest for name, digest in TEMPLATE["source_sha256"].items() if name in _OLD or name.startswith("mkframe_plugins/")
}
SHAPES = ({"rows": 33, "channels": 32, "hidden": 64}, {"rows": 257, "channels": 64, "hidden": 128})
THREE = (0, 0, 1, 1, 2, 2)
STEP_MS = 3.2e-05  # that of `samples`
TEMPLATE["mkframe"]["timing"]["timer_step_ms"] = STEP_MS
TIMES = ("min_ms", "p50_ms", "p95_ms", "max_ms", "mean_ms")
_SLOPES = {"k1": 20, "slope_us": 200.0, "sets": 4}
_OF_PROTOCOL: dict[str, dict[str, Any]] = {
    "per_call": {},
    "replay": {"replays": 100},
    "unrolled": _SLOPES,
    "cold": {**_SLOPES, "method": "evict", "footprint": 5.0},
}
_KEYS_OF_PROTOCOLS = ("replays", "k1", "slope_us", "sets", "method", "footprint")
Document = dict[str, Any]
Edit = Callable[[Document], None]
Cells = Mapping[tuple[int, str], "stats.Samples | str"]
"""(index of the shape, engine) -> samples (rounds, samples per round) in ms, or the outcome of a cell that did not pass."""


def samples(median_us: float, seed: int, *, process: Sequence[int] = THREE, spread: float = 0.002, per_round: int = 50) -> "stats.Samples":
    """Samples in ms on a clock of 32 ns: a level of its own for each process, a little for each round, 1 % of noise."""
    generator = np.random.default_rng(seed)
    owner = np.asarray(process)
    levels = spread * generator.standard_normal(owner.max() + 1)[owner] + 0.001 * generator.standard_normal(owner.size)
    times = median_us / 1e3 * np.exp(levels)[:, None] * (1 + 0.01 * generator.standard_normal((owner.size, per_round)))
    return on_events(np.rint(times / 32e-6) * 32e-6)


def on_events(times_ms: "stats.Samples") -> "stats.Samples":
    """Times as CUDA tells them between two events: float32."""
    return times_ms.astype(np.float32).astype(np.float64)


def on_host(times_ms: "stats.Samples") -> "stats.Samples":
    """The same calls by the clock of the host: whole nanoseconds, none below the time."""
    return np.ceil(times_ms * 1e6) / 1e6


_REASONS = {
    "crashed": "ValueError while timing round 0: no such tile",
    "oom": "the worker ended while checking after timing: out of memory",
    "timeout": "the worker ended while timing round 1: no sign of life for 600 s",
    "incomplete": "0 of {rounds} rounds were measured",
}
NEVER_READY: Document = dict.fromkeys(("check", "bind_s", "check_s", "capture_s", "nodes", "late_samples")) | {
    "checks": [],
    "facts": {},
}
"""What an unsupported cell says of checks, buffers and graphs."""


def reason_of(outcome: str, rounds: int = len(THREE)) -> str:
    """What a run of so many rounds could say of a cell that ended so."""
    return _REASONS.get(outcome, f"it was {outcome} here").format(rounds=rounds)


def document(cells: Cells, process: Sequence[int] = THREE) -> Document:
    """A report of ours over the shape set `development`. Rounds are those of the first cell with samples. Every engine is a baseline."""
    made = copy.deepcopy(TEMPLATE)
    block = made["mkframe"]
    graph, eager = (next(cell for cell in block["cells"] if cell["engine"] == name) for name in ("torch-cublas-graph", "torch-cublas"))
    rounds, per_round = next(value.shape for value in cells.values() if not isinstance(value, str))
    made |= {"rounds": rounds, "samples_per_round": per_round}
    block["timing"] |= {"rounds": rounds, "samples_per_round": per_round, "round_process": list(process), "processes": len(set(process))}
    block |= {"cells": [], "rounds": [], "verdicts": []}
    results: dict[int, Document] = {}
    for (case, engine), value in cells.items():
        record = copy.deepcopy(graph if engine.endswith("-graph") else eager)
        outcome = value if isinstance(value, str) else "passed"
        reason = None if outcome == "passed" else reason_of(outcome, rounds)
        block["cells"].append(
            record
            | {"set": "development", "case": case, "shape": dict(SHAPES[case]), "engine": engine}
            | {"outcome": outcome, "reason": reason, "interval": None if isinstance(value, str) else _interval(value, process)}
            | (NEVER_READY if outcome == "unsupported" else {})
        )
        if outcome != "unsupported":
            results.setdefault(case, {})[engine] = {"passed": outcome == "passed", "replay_changed_input": outcome == "passed"}
        if not isinstance(value, str):
            results[case][engine] |= {"stream_summary": _summary(value), "host_summary": _summary(on_host(value))}
    made["development"] = [{"shape": dict(SHAPES[case]), "engines": engines} for case, engines in sorted(results.items())]
    del made["assessment"]
    block["verdicts"] = list(_verdicts(cells, process))
    block["incomplete"] = "incomplete" in [cell["outcome"] for cell in block["cells"]]
    return settle(made)


def _summary(times_ms: "stats.Samples") -> Document:
    return {name: getattr(stats.summarize(times_ms), name) for name in ("count", *TIMES)}


def settle(made: Document) -> Document:
    """What follows from the rest of a report is made to follow: configuration, floors of every process, costs, rates and sentences."""
    block = made["mkframe"]
    cells, timing, device = block["cells"], block["timing"], block["device"]
    floors = {(floor["name"], floor["clock"]): floor for floor in timing["floors"]}
    timing["floors"] = [copy.deepcopy(floor) | {"process": process} for process in range(timing["processes"]) for floor in floors.values()]
    if not block["rounds"]:
        block["rounds"] = [
            {"set": name, "case": case, "process": process, "round": index, "before": _clocks(), "after": _clocks()}
            for name, case in sorted({(cell["set"], cell["case"]) for cell in cells})
            for index, process in enumerate(timing["round_process"])
        ]
    for cell in cells:
        sizes = list(cell["shape"].values())
        cell["cost"] = None if cell["outcome"] == "unsupported" else {"bytes": 2 * sum(sizes), "flops": 2 * sizes[0]}
        if cell["check"]:
            cell["check"]["elements"] = sizes[0] * sizes[1]
        if "rates" in cell:
            cell["rates"] = _rates(made, cell)
    if device["kind"] == "cpu":
        device["card"] = None
    config = block["config"]
    config["workload"], config["precision"], config["energy"] = {"id": block["workload"]}, dict(block["precision"]), {"protocol": "none"}
    config["timing"] |= {name: timing[name] for name in ("protocol", "rounds", "samples_per_round", "processes", "warmups", "hold")}
    own = _OF_PROTOCOL[timing["protocol"]]
    for name in _KEYS_OF_PROTOCOLS:
        found = config["timing"].get(name)
        config["timing"][name] = own.get(name) if name not in own or found is None else found
    config["device"] |= {"kind": device["kind"], "card": None}
    config["engine"] = {cell["engine"]: {"options": dict(cell["options"])} for cell in cells}
    block["seeds"] = {cell["set"]: block["seeds"].get(cell["set"], 1) for cell in cells}
    shapes = {(cell["set"], cell["case"]): cell["shape"] for cell in cells}
    config["shape"] = {
        name: {"seed": seed, "cases": [dict(shape) for (of, _), shape in sorted(shapes.items(), key=lambda item: item[0]) if of == name]}
        for name, seed in block["seeds"].items()
    }
    block["config_sha256"] = digest(config)
    made["limitations"], made["source_replay_checks"] = _sentences(block)
    return made


def _clocks() -> Document:
    """Of which nothing is known."""
    return dict.fromkeys(("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons", "other_processes"))


def _rates(made: Document, cell: Document) -> Document | None:
    case = next((case for case in made.get(cell["set"], []) if case["shape"] == cell["shape"]), {"engines": {}})
    p50_ms = case["engines"].get(cell["engine"], {}).get("stream_summary", {}).get("p50_ms")
    if not p50_ms or cell["outcome"] != "passed":
        return None
    of_cost = {f"{name}_per_s": cell["cost"][name] / (p50_ms / 1e3) for name in ("bytes", "flops")}
    return of_cost | dict.fromkeys(("compute_share", "memory_share", "read_share"))


def _sentences(block: Document) -> tuple[list[str], str]:
    cells, timing, seeds = block["cells"], block["timing"], block["seeds"]
    count = Counter(cell["outcome"] for cell in cells)
    passed, missing, late = count.pop("passed", 0), count.pop("incomplete", 0), sum(cell["late_samples"] or 0 for cell in cells)
    ended = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items()))
    several = f"Rounds are spread over {timing['processes']} processes; intervals are Student's t over the processes' medians."
    schedules = sorted({cell["engine"] for cell in cells if cell["outcome"] == "passed" and not cell["baseline"]})
    counts = f"{timing['rounds']} rounds of {timing['samples_per_round']} samples, {timing['warmups']} warm-ups before each"
    on_cpu = block["device"]["kind"] == "cpu"
    told = (
        block["incomplete"] and f"INCOMPLETE: the run ended early, {missing} cells lack some of their blocks and have no numbers.",
        f"Random inputs and weights of workload {block['workload']} (seeds: {', '.join(f'{n} {seeds[n]}' for n in seeds)}); {_CLAIM}",
        f"Timing protocol {timing['protocol']}: {counts}, {_ROTATED}; one sample is {_SAMPLES[timing['protocol']]}.",
        _CLOCKS["cpu" if on_cpu else "held" if timing["hold"] else "bare"],
        late and f"{late} held samples were reached by the GPU before the host had enqueued them; they are kept, and counted per cell.",
        "All rounds share one process: differences below 5 % are not decided." if timing["processes"] == 1 else several,
        _CACHES["cold" if timing["cache_state"] == "cold" else timing["protocol"]],
        "assessment" in seeds
        and "Assessment shapes and their seed are apart from development; they are a fixed set, no proof for other shapes.",
        on_cpu
        and schedules
        and f"On this CPU {', '.join(schedules)} ran as CPU implementations; their times say nothing of GPU kernels of the same name.",
        ended and f"Cells without numbers: {ended}.",
        block["energy"]["status"] == "not_measured" and "Energy was not measured.",
    )
    done = {check for cell in cells if cell["outcome"] == "passed" for check in cell["checks"]}
    checked = [text for name, text in _CHECKED.items() if name in done]
    return [text for text in told if text], f"{passed} of {len(cells) - count['unsupported']} cells passed. {' '.join(checked)}"


_CLAIM = "nothing is claimed of trained models or whole applications."
_ROTATED = "engines rotated by one position per round"
_SAMPLES = {
    "per_call": "one call",
    "replay": "a number of graph replays back to back, divided by that number",
    "unrolled": "the slope between two graphs of chained calls, per call",
    "cold": "the slope between two graphs of chained calls over more buffers than L2 holds, or one call after L2 was evicted, as the "
    "configuration says",
}
_CLOCKS = {
    "cpu": "CPU run: the stream time is a clock pair right around the call, the host time a pair outside of it; no GPU took part.",
    "held": "Inputs and outputs stay on the device. Everything timed was enqueued behind a delay kernel: the stream time between two CUDA "
    "events does not hold the host's pace, while the host time holds what was left of the delay.",
    "bare": "Inputs and outputs stay on the device; the stream time between two CUDA events may include idle gaps of the dispatch.",
}
_SAME_BUFFERS = "Every call reads the same buffers: caches are warm, and no rate here is a memory bandwidth."
_CACHES = {
    "cold": "L2 is cold for every call; the instruction cache, kernel parameters and the TLB stay warm.",
    "unrolled": "Calls rotate over distinct inputs and outputs and share their weights: caches are warm, and no rate here is a memory "
    "bandwidth.",
    "per_call": _SAME_BUFFERS,
    "replay": _SAME_BUFFERS,
}
_CHECKED = {
    "poison nan": "Each output and scratch buffer was poisoned (NaN, then a finite pattern) before each validated call.",
    "input negated": "The input was changed in place, by negation and by a fresh draw, and the same binding or capture followed it.",
    "shifted buffers": "A second binding or capture on buffers at other addresses gave the right result.",
    "inputs intact": "Inputs and weights were unchanged afterwards.",
    "producer": "Each engine was right behind a kernel that wrote its input late, in one captured graph.",
    "after timing": "The output of the last timed call was checked.",
    "joined": "After the timings the output was right at the moment at which a call had ended, on its stream.",
    "fresh input": "No call was faster on the input and output of the timed loop than on new ones (10 %, three repeats).",
}


def _interval(values: "stats.Samples", process: Sequence[int]) -> Document:
    return dict(zip(("low_ms", "high_ms"), stats.median_interval(values, tuple(process), STEP_MS, 0), strict=True))


def _verdicts(cells: Cells, process: Sequence[int]) -> Iterator[Document]:
    """Every engine against the fastest of its form in its case."""
    passed = {key: value for key, value in cells.items() if not isinstance(value, str)}
    for (case, engine), value in passed.items():
        rivals = [key for key in passed if key[0] == case and key[1].endswith("-graph") is engine.endswith("-graph")]
        fastest = min(rivals, key=lambda key: float(np.median(passed[key])))
        if fastest != (case, engine):
            found = stats.compare(value, passed[fastest], tuple(process), STEP_MS, 0)
            yield {
                "set": "development",
                "case": case,
                "engine": engine,
                "baseline": fastest[1],
                "verdict": str(found.verdict),
                "ratio": found.ratio,
                "ratio_low": found.low,
                "ratio_high": found.high,
                "reason": found.reason,
            }


def npz(cells: Cells, process: Sequence[int] = THREE, *, workers: bool = True) -> bytes:
    """The samples file of `document(cells, process)`."""
    arrays: dict[str, Any] = {}
    for (case, engine), value in cells.items():
        if not isinstance(value, str):
            place = f"development/{case}/{engine}"
            arrays |= {f"{place}/stream_ms": value, f"{place}/host_ms": on_host(value), f"{place}/rounds": np.arange(len(value))}
            if workers:
                arrays[f"{place}/workers"] = np.asarray(process)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def write(folder: Path, made: Document, data: bytes | None, name: str | None = None) -> Path:
    """Writes a report and, where `data` is not None, the samples file that it names. `name`: what the report calls it instead.
    Returns the path of the report."""
    folder.mkdir(parents=True, exist_ok=True)
    hash_of_file = sha256(data or b"")
    made["mkframe"]["samples"] = {"file": name or f"samples-{hash_of_file}.npz", "sha256": hash_of_file}
    settle(made)
    if data is not None:
        (folder / f"samples-{hash_of_file}.npz").write_bytes(data)
    path = folder / "report.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def report(folder: Path, cells: Cells, process: Sequence[int] = THREE, *, edit: Edit | None = None, with_samples: bool = True) -> Path:
    """A report in `folder`, changed by `edit` before it is written, with its samples file unless told otherwise."""
    made = document(cells, process)
    if edit is not None:
        edit(made)
    return write(folder, made, npz(cells, process) if with_samples else None)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of raw members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def array(values: Any) -> bytes:
    """One .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(values))
    return buffer.getvalue()


def foreign(made: Document) -> None:
    """Turns a report into one of somebody else: no `mkframe` block, no protocol."""
    del made["mkframe"], made["timing"]
