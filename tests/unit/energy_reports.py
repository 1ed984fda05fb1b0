"""Energy reports from a paper meter: valid ones of every kind, computed here by other means than the validator's.

The meter's counter is the energy so far at its last update, in mJ. Its updates have a period and a phase.
"""

import copy
import hashlib
import json
import statistics
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

Document = dict[str, Any]

HASH = "ab" * 32


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a report is made of. Times in s, powers in W."""

    seed: int = 0
    rounds: int = 3
    repeats: int = 10_000
    draws: int = 2
    labels: int = 50
    differing: int = 0
    ties: int = 0
    run_s: float = 2.0
    idle_s: float = 5.0
    idle_w: float = 40.0
    net_w: float = 60.0
    period_s: float = 0.0992
    values: bool = False
    cpu: bool = False
    ours: bool = False
    edges: bool = False
    finished: bool = True
    verify_only: bool = False


class Meter:
    """A counter that moves in steps."""

    def __init__(self, plan: Plan, random: Random) -> None:
        self.plan = plan
        self.phase = random.uniform(0, plan.period_s)
        self.runs: list[tuple[float, float]] = []

    def energy_mj(self, time_s: float) -> float:
        updated = self.phase + (time_s - self.phase) // self.plan.period_s * self.plan.period_s
        busy = sum(max(min(end, updated) - start, 0.0) for start, end in self.runs)
        return round(1e9 + 1000 * (self.plan.idle_w * updated + self.plan.net_w * busy))

    def edge_after(self, time_s: float) -> float:
        return self.phase + ((time_s - self.phase) // self.plan.period_s + 1) * self.plan.period_s + 1e-6


def report(plan: Plan | None = None, **choices: Any) -> Document:
    """A valid report."""
    plan = Plan(**choices) if plan is None else plan
    random = Random(plan.seed)
    manifest = _manifest(plan, random)
    document: Document = {
        "verified_at_utc": "2026-02-28T23:59:59Z",
        "hardware": {
            "name": "Paper 9000",
            "uuid": None if plan.cpu else "GPU-0",
            "memory_total_bytes": 2**34,
            "multiprocessors": None if plan.cpu else 4,
            "compute_capability": None if plan.cpu else [9, 0],
        },
        "versions": {"numpy": "2.0", "cuda": None if plan.cpu else "13.0"},
        "provenance": {
            "payload_manifest_sha256": hashlib.sha256((json.dumps(manifest, indent=2) + "\n").encode()).hexdigest(),
            "payload_manifest": manifest,
            "runner_sha256": HASH,
            "ptx_sha256": None if plan.cpu else HASH,
            "benchmark_dataset_seed": manifest["draws"][-1]["dataset_seed"],
            "benchmark_payload_sha256": manifest["draws"][-1]["sha256"],
        },
        "validation": _validation(plan, manifest),
        "kernel": dict.fromkeys(("launches", "mode", "fp16_inputs", "stats", "score", "ptx_lines")),
        "scope": "Calls on paper.",
    }
    if not plan.verify_only:
        rounds, lengths = _rounds(plan, random)
        document["rounds"] = rounds if plan.finished else []
        document["summary"] = summary(rounds) if plan.finished else None
        document["completed_at_utc"] = "2026-03-01T00:00:00Z"
        if plan.ours or plan.edges:
            document["mkframe"] = _block(plan, rounds if plan.finished else [], lengths)
    elif plan.ours:
        nothing = dict.fromkeys(("verdict", "net_mj", "u_mj", "sham_mj", "reference", "rounds"))
        document["mkframe"] = {"energy": {"protocol": "none", "status": "not_measured", **nothing}}
    return document


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _manifest(plan: Plan, random: Random) -> Document:
    seeds = random.sample(range(10**6), plan.draws)
    draws = []
    for draw, seed in enumerate(seeds):
        arrays = {
            "dataset_seed": {"shape": [], "dtype": "int64", "sha256": hashlib.sha256(np.int64(seed).tobytes()).hexdigest()},
            "x": {"shape": [plan.labels, 9], "dtype": "float32", "sha256": HASH},
        }
        if not plan.values:
            arrays["test_labels"] = {"shape": [plan.labels], "dtype": "int64", "sha256": HASH}
        draws.append({"draw": draw, "dataset_seed": seed, "path": f"{draw}.npz", "sha256": _sha256(str(seed)), "arrays": arrays})
    return {"seeds": seeds, "draws": draws, "source_sha256": {"größe.py" if plan.seed % 2 else "size.py": HASH}}


def _validation(plan: Plan, manifest: Document) -> Document:
    draws = []
    for entry in manifest["draws"]:
        draw = {"draw": entry["draw"], "dataset_seed": entry["dataset_seed"], "payload_sha256": entry["sha256"]}
        if plan.values:
            draw |= {"max_abs_error": 1e-5 * (1 + entry["draw"]), "mean_abs_error": 1e-6, "violations": 0, "elements": 9}
            draw |= {"rtol": 1e-4, "atol": 1e-5, "rounding_rows": 1}
        else:
            draw |= {
                "graph_replays_equal_eager": [True, True],
                "total": plan.labels,
                "gpu_agrees_with_frozen_cpu_predictions": plan.labels - plan.differing,
                "gpu_correct": plan.labels - plan.differing,
                "cpu_correct": plan.labels,
                "gpu_predictions_int32_sha256": None if plan.cpu else HASH,
                "mismatching_prediction_indices": list(range(plan.differing)),
                "scratch_poisoned_before_eager_and_each_replay": True,
            }
            if plan.ties:
                draw["ties"] = plan.ties
        draws.append(draw)
    if plan.values:
        largest = max(draw["max_abs_error"] for draw in draws)
        sums = {name: sum(draw[name] for draw in draws) for name in ("violations", "elements", "rounding_rows")}
        return {"draws": draws, "max_abs_error": largest, "mean_abs_error": 1e-6, **sums, "rtol": 1e-4, "atol": 1e-5, "passed": True}
    names = ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct")
    return {
        "draws": draws,
        **{name: sum(draw[name] for draw in draws) for name in names},
        "all_graph_replays_equal_eager": True,
        "intermediate_float_values_bitwise_equal_to_reference": None,
        "all_eleven_frozen_draws_checked": True,
        "one_captured_graph_reused_across_changed_inputs": None if plan.cpu else True,
        "passed": plan.differing <= plan.ties,
    }


def _rounds(plan: Plan, random: Random) -> tuple[list[Document], list[float]]:
    """The rounds, and the wall time of each run. On edges, neighbours share an idle window."""
    meter, time_s = Meter(plan, random), 1000.0
    made, lengths, shared = [], [], None
    for index in range(plan.rounds):
        before, time_s = _window(meter, time_s, plan.idle_s, random) if shared is None else (shared, time_s)
        wall_s = plan.run_s * random.uniform(0.9, 1.1)
        start_s = time_s + (0.0 if plan.edges else 0.0026)
        meter.runs.append((start_s, start_s + wall_s))
        run, time_s = _window(meter, time_s, wall_s, random)
        after, time_s = _window(meter, time_s, plan.idle_s, random)
        if not plan.edges:
            wall_s = run["end"]["time_s"] - run["start"]["time_s"]
        made.append(_round(plan, index, before, run, after, wall_s))
        lengths.append(wall_s)
        shared = copy.deepcopy(after) if plan.edges else None
    return made, lengths


def _window(meter: Meter, time_s: float, length_s: float, random: Random) -> tuple[Document, float]:
    """A window from `time_s` on, and when the next one begins: on edges cut at the first and the last one inside of it."""
    duration_s = random.uniform(0.0022, 0.0026)
    start, end = time_s + 0.0026, time_s + 0.0026 + length_s
    if meter.plan.edges:
        start, end = meter.edge_after(time_s), meter.edge_after(time_s + length_s) - meter.plan.period_s
    first, last = ({"energy_mj": meter.energy_mj(at), "time_s": at, "read_duration_s": duration_s} for at in (start, end))
    power = (last["energy_mj"] - first["energy_mj"]) / 1000 / (last["time_s"] - first["time_s"])
    return {"start": first, "end": last, "power_w": power}, time_s + length_s if meter.plan.edges else end


def _round(plan: Plan, index: int, before: Document, run: Document, after: Document, wall_s: float) -> Document:
    moved = run["end"]["energy_mj"] - run["start"]["energy_mj"]
    length = run["end"]["time_s"] - run["start"]["time_s"]
    wall_ms, idle_w = wall_s * 1000 / plan.repeats, 0.5 * (before["power_w"] + after["power_w"])
    gross, adjusted = moved / plan.repeats, (moved - idle_w * length * 1000) / plan.repeats
    if plan.edges:
        gross, adjusted = run["power_w"] * wall_ms, (run["power_w"] - idle_w) * wall_ms
    return {
        "round": index,
        "repeats": plan.repeats,
        "cuda_ms": None if plan.cpu else float(np.float32(wall_s * 999.9)) / plan.repeats,
        "wall_ms": wall_ms,
        "gross_mj": gross,
        "adjusted_mj": adjusted,
        "idle_before_w": before["power_w"],
        "idle_after_w": after["power_w"],
        "average_power_w": run["power_w"],
        "measurement_start": run["start"],
        "measurement_end": run["end"],
        "idle_before": before,
        "idle_after": after,
    }


def summary(rounds: list[Document]) -> Document:
    adjusted = [one["adjusted_mj"] for one in rounds]
    times = [one["cuda_ms"] for one in rounds]
    return {
        "cuda_ms_median": None if None in times else statistics.median(times),
        "wall_ms_median": statistics.median(one["wall_ms"] for one in rounds),
        "gross_mj_median": statistics.median(one["gross_mj"] for one in rounds),
        "adjusted_mj_median": float(np.median(adjusted)),
        "adjusted_mj_min": min(adjusted),
        "adjusted_mj_max": max(adjusted),
        "adjusted_mj_sample_sd": statistics.stdev(adjusted) if len(rounds) > 1 else None,
        "negative_adjusted_rounds": sum(value < 0 for value in adjusted),
        "energy_interpretation": "On paper.",
    }


def _block(plan: Plan, rounds: list[Document], lengths: list[float]) -> Document:
    times = {"count": 8, "p50_ms": 1.0, "p95_ms": 2.0, "min_ms": 0.5, "max_ms": 3.0, "mean_ms": 1.2}
    net = statistics.fmean(one["adjusted_mj"] for one in rounds) if rounds else None
    return {
        "timing": {
            "protocol": "replay",
            "rounds": 2,
            "samples_per_round": 4,
            "stream_summary": times,
            "host_summary": {name: value if name == "count" else value + 0.25 for name, value in times.items()},
        },
        "energy": {
            "protocol": "nvml_edge_aligned" if plan.edges else "nvml_paired_idle",
            "verdict": "unverified" if rounds else None,
            "net_mj": net,
            "u_mj": None,
            "sham_mj": None,
            "reference": "passed",
            "rounds": [{"run_s": length} for length in lengths] if plan.edges and rounds else None,
        },
        "session": {"order": ["a"]},
        "invalid_rounds": [{"round": plan.rounds, "why": "the counter went back", "gross_mj": -1}],
    }
