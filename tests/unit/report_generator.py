"""Honest reports of both formats from a seed: everything varies that may, every derived figure is computed, nothing is an error.

Written from the formats and rules as they are published, not from the rules' code: statistics by their definitions, hashes by hashlib.
"""

import hashlib
import json
import math
import statistics
import struct
from collections.abc import Sequence
from random import Random
from typing import Any

Document = dict[str, Any]

_ENGINES = ("conventional", "persistent", "torch-cublas", "torch-cublas-graph", "triton", "naïve", "a/b", "x~y", "engine 7", "0")
_SETS = ("development", "assessment", "decode", "größer", "set 1")
_AXES = ("rows", "channels", "hidden", "depth", "batch", "K")
_TIMINGS = (None, None, "per_call", "per_call, held", "replay", "unrolled", "cold")
_SLOPES = ("unrolled", "cold")
_WORDS = ("Only one board.", "Clocks were not locked; see above.", "no sanitizer \u2014 by hand", "100 % synthetic inputs")


def hexadecimal(random: Random, digits: int = 64) -> str:
    return f"{random.getrandbits(4 * digits):0{digits}x}"


def shuffled(random: Random, document: Document) -> Document:
    """The keys of an object in another order: JSON has none."""
    keys = list(document)
    random.shuffle(keys)
    return {key: document[key] for key in keys}


# Comparison reports ---------------------------------------------------------------------------------------------------------------


def quantile(ordered: Sequence[float], q: float) -> float:
    """The inclusive linear quantile: h = q (n - 1)."""
    h = q * (len(ordered) - 1)
    low = math.floor(h)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (h - low) * (ordered[high] - ordered[low])


def summary(samples: Sequence[float]) -> Document:
    ordered = sorted(samples)
    return {
        "count": len(ordered),
        "p50_ms": statistics.median(ordered),
        "p95_ms": quantile(ordered, 0.95),
        "min_ms": ordered[0],
        "max_ms": ordered[-1],
        "mean_ms": math.fsum(ordered) / len(ordered),
    }


def _samples(random: Random, count: int) -> list[float]:
    """Times of one clock in ms: on a grid or not, even or with a tail."""
    scale = 10 ** random.uniform(-3, 2)
    kind = random.randrange(4)
    if kind == 0:
        return [scale] * count
    if kind == 1:
        return [scale * random.lognormvariate(0, 0.3) for _ in range(count)]
    if kind == 2:
        return [scale * (1 + random.random() + (20 if random.random() < 0.03 else 0)) for _ in range(count)]
    step = 32e-6 * 2 ** random.randrange(6)
    first = random.randrange(10, 1000)
    return [step * (first + random.randrange(5)) for _ in range(count)]


def _engine(random: Random, count: int, timing: str | None) -> Document:
    replay = random.random() < 0.9
    if random.random() < 0.1:
        return {"passed": False, "replay_changed_input": replay}
    stream = _samples(random, count)
    if timing in _SLOPES and random.random() < 0.5:
        host = [time * random.uniform(0.9, 1.1) for time in stream]
    else:
        extra = random.choice([0.0, 0.004, 0.5])
        host = [time + extra * (1 + random.random()) for time in stream]
    return shuffled(
        random, {"passed": True, "replay_changed_input": replay, "stream_summary": summary(stream), "host_summary": summary(host)}
    )


def _shapes(random: Random, count: int) -> list[dict[str, int]]:
    """Different ones, also by their numbers alone."""
    axes = random.sample(_AXES, random.randint(1, 4))
    firsts = random.sample(range(1, 5000), count)
    return [{axis: first if index == 0 else random.randint(1, 512) for index, axis in enumerate(axes)} for first in firsts]


def gpu_output(random: Random) -> Document:
    elements = random.randint(1, 10**6)
    violations = random.choice([0, 0, 0, random.randint(1, elements)])
    worst = random.choice([0.0, random.random() * 1e-3])
    found: Document = {"passed": violations == 0, "max_abs_error": worst, "mean_abs_error": worst * random.random()}
    return found | {"violations": violations, "elements": elements} | random.choice([{}, {"rtol": 1e-4, "atol": 0.0}])


def comparison_report(random: Random) -> Document:
    """A comparison report of somebody else: without an error, with warnings where the rules say."""
    rounds, per_round = random.randint(1, 6), random.randint(1, 40)
    timing = random.choice(_TIMINGS)
    document: Document = {
        "recorded_on": f"20{random.randint(20, 39)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
        "device": random.choice(["NVIDIA GeForce RTX 3090", "AMD EPYC 7B13", "Grafikkarte Ü1"]),
        "precision": random.choice(["FP16 input; FP32 accumulation", "BF16 everywhere", "TF32"]),
        "packages": dict.fromkeys(random.sample(["torch", "numpy", "triton", "a/b"], random.randint(0, 4)), "1.2.3+cu128"),
        "rounds": rounds,
        "samples_per_round": per_round,
        "source_sha256": {f"file{index}.py": hexadecimal(random) for index in range(random.randint(1, 4))},
        "source_commit": random.choice([None, hexadecimal(random, 40)]),
        "limitations": random.sample(_WORDS, random.randint(0, len(_WORDS))),
    }
    names = random.sample(_SETS, random.randint(1, 3))
    shapes = iter(_shapes(random, 4 * len(names)))
    engines = random.sample(_ENGINES, random.randint(1, 5))
    for name in names:
        document[name] = []
        for _ in range(random.randint(1, 4)):
            here = engines if random.random() < 0.9 else random.sample(engines, random.randint(1, len(engines)))
            results = {engine: _engine(random, rounds * per_round, timing) for engine in here}
            document[name].append({"shape": next(shapes), "engines": results})
    if timing is not None:
        document["timing"] = timing
    if random.random() < 0.5:
        document["sanitizers"] = random.choice(["not run", {"memcheck": 0, "racecheck": "zero hazards", "tool": {"version": "2026.1"}}])
    if random.random() < 0.5:
        document["compiler"] = {"source_commit": random.choice([None, hexadecimal(random, 40)]), "small_gpu_output": gpu_output(random)}
        if random.random() < 0.5:
            document["compiler"] |= {"big_gpu_output": gpu_output(random), "tests": "passed"}
    if random.random() < 0.5:
        document["source_replay_checks"] = "Outputs poisoned before each call."
    if random.random() < 0.2:
        document[random.choice(["operator_note", "x", "Notiz"])] = random.choice(["at night", 7, None, [1, 2], {"a": []}])
    return shuffled(random, document)


# Energy reports -------------------------------------------------------------------------------------------------------------------


def manifest_sha256(manifest: Document) -> str:
    return hashlib.sha256((json.dumps(manifest, indent=2) + "\n").encode()).hexdigest()


def seed_sha256(seed: int) -> str:
    return hashlib.sha256(struct.pack("<q", seed)).hexdigest()


def _manifest(random: Random) -> Document:
    seeds = random.sample(range(1, 2**62), random.randint(1, 4))
    draws = []
    for index, seed in enumerate(seeds):
        arrays = {"dataset_seed": {"shape": [], "dtype": "int64", "sha256": seed_sha256(seed)}}
        for name in random.sample(["x", "labels", "q"], random.randint(0, 3)):
            shape = [random.randint(1, 1000) for _ in range(random.randint(1, 3))]
            arrays[name] = {"shape": shape, "dtype": random.choice(["float32", "int64", "bool"]), "sha256": hexadecimal(random)}
        draw: Document = {"draw": index, "dataset_seed": seed, "path": f"draw-{index:02}.npz", "sha256": hexadecimal(random)}
        draws.append(draw | {"arrays": shuffled(random, arrays)})
        if random.random() < 0.5:
            draws[-1] |= {"frozen_prediction_path": f"predictions/draw-{index:02}.npy", "frozen_prediction_sha256": hexadecimal(random)}
    manifest: Document = {"seeds": seeds, "draws": draws, "source_sha256": {"run.py": hexadecimal(random)}}
    return manifest | random.choice([{}, {"prediction_manifest_sha256": None, "draw_manifest_sha256": hexadecimal(random)}])


def _label_draws(random: Random, manifest: Document, perfect: bool) -> list[Document]:
    found = []
    for draw in manifest["draws"]:
        total = random.randint(1, 1000)
        agrees = total if perfect else random.randint(0, total)
        cpu = random.randint(0, total)
        # A prediction that differs can change the number of right ones by one at most.
        wrong = total - agrees
        gpu = cpu if not wrong else random.randint(max(0, cpu - wrong), min(total, cpu + wrong))
        replays = [perfect or random.random() < 0.8 for _ in range(random.randint(1, 3))]
        found.append(
            {
                "draw": draw["draw"],
                "dataset_seed": draw["dataset_seed"],
                "payload_sha256": draw["sha256"],
                "gpu_agrees_with_frozen_cpu_predictions": agrees,
                "total": total,
                "gpu_correct": gpu,
                "cpu_correct": cpu,
                "gpu_predictions_int32_sha256": random.choice([None, hexadecimal(random)]),
                "mismatching_prediction_indices": sorted(random.sample(range(total), total - agrees)),
                "graph_replays_equal_eager": replays,
                "scratch_poisoned_before_eager_and_each_replay": True,
            }
        )
    return found


def _validation(random: Random, manifest: Document) -> Document:
    draws = _label_draws(random, manifest, random.random() < 0.7)
    sums = {
        key: sum(draw[key] for draw in draws) for key in ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct")
    }
    replays = all(all(draw["graph_replays_equal_eager"]) for draw in draws)
    return {
        "draws": draws,
        **sums,
        "all_graph_replays_equal_eager": replays,
        "intermediate_float_values_bitwise_equal_to_reference": random.choice([True, False, None]),
        "all_eleven_frozen_draws_checked": True,
        "one_captured_graph_reused_across_changed_inputs": random.choice([True, None]),
        "passed": replays and sums["total"] == sums["gpu_agrees_with_frozen_cpu_predictions"],
    }


class _Meter:
    """A counter of millijoules that only goes up, read at times that only go up."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.time_s = random.uniform(0, 1e7)
        self.energy_mj = random.randrange(10**12)

    def read(self, after_s: float, power_w: float) -> Document:
        self.time_s += after_s
        self.energy_mj += round(after_s * power_w * 1000)
        return {"energy_mj": self.energy_mj, "time_s": self.time_s, "read_duration_s": self.random.uniform(0.002, 0.004)}


def _idle(meter: _Meter, power_w: float) -> Document:
    start, end = meter.read(0.005, power_w), meter.read(meter.random.uniform(4.9, 5.1), power_w)
    return {"start": start, "end": end, "power_w": watts(start, end)}


def watts(start: Document, end: Document) -> float:
    power: float = (end["energy_mj"] - start["energy_mj"]) / 1000 / (end["time_s"] - start["time_s"])
    return power


def float32(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def _round(random: Random, meter: _Meter, index: int, on_gpu: bool) -> Document:
    idle_w = random.uniform(30, 130)
    before = _idle(meter, idle_w)
    start = meter.read(0.005, idle_w)
    end = meter.read(random.uniform(1, 20), idle_w * random.choice([1.0, 1.02, 3.0]))
    after = _idle(meter, idle_w * random.uniform(0.98, 1.02))
    repeats = random.choice([1, 10, 1000, 1_000_000])
    energy_mj, time_s = end["energy_mj"] - start["energy_mj"], end["time_s"] - start["time_s"]
    return {
        "round": index,
        "repeats": repeats,
        "cuda_ms": float32(time_s * 1000 * random.uniform(0.9, 0.999)) / repeats if on_gpu else None,
        "wall_ms": time_s * 1000 / repeats,
        "gross_mj": energy_mj / repeats,
        "adjusted_mj": (energy_mj - 0.5 * (before["power_w"] + after["power_w"]) * time_s * 1000) / repeats,
        "idle_before_w": before["power_w"],
        "idle_after_w": after["power_w"],
        "average_power_w": watts(start, end),
        "measurement_start": start,
        "measurement_end": end,
        "idle_before": before,
        "idle_after": after,
    }


def energy_summary(rounds: Sequence[Document]) -> Document | None:
    """The summary that follows from rounds; None without any."""
    if not rounds:
        return None
    adjusted = [entry["adjusted_mj"] for entry in rounds]
    on_gpu = rounds[0]["cuda_ms"] is not None
    medians = {f"{key}_median": statistics.median([entry[key] for entry in rounds]) for key in ("wall_ms", "gross_mj", "adjusted_mj")}
    return {
        "cuda_ms_median": statistics.median([entry["cuda_ms"] for entry in rounds]) if on_gpu else None,
        **medians,
        "adjusted_mj_min": min(adjusted),
        "adjusted_mj_max": max(adjusted),
        "adjusted_mj_sample_sd": statistics.stdev(adjusted) if len(adjusted) > 1 else None,
        "negative_adjusted_rounds": sum(value < 0 for value in adjusted),
        "energy_interpretation": "Idle subtraction measures a small difference between much larger totals.",
    }


def with_rounds(document: Document, random: Random, count: int) -> Document:
    """An energy report with `count` new rounds and the summary that follows from them."""
    meter = _Meter(random)
    rounds = [_round(random, meter, index, on_gpu=True) for index in range(count)]
    return document | {"rounds": rounds, "summary": energy_summary(rounds)}


def energy_report(random: Random) -> Document:
    """An energy report of somebody else: with rounds, with none finished, or verify-only."""
    manifest, on_gpu = _manifest(random), random.random() < 0.8
    timed = random.choice(manifest["draws"])
    hour = random.randint(0, 22)
    document: Document = {
        "verified_at_utc": f"2026-09-15T{hour:02}:52:24Z",
        "hardware": {
            "name": "NVIDIA A100-SXM4-40GB" if on_gpu else "A CPU",
            "uuid": "GPU-98d97ad6" if on_gpu else None,
            "memory_total_bytes": random.randint(1, 2**38),
            "multiprocessors": 108 if on_gpu else None,
            "compute_capability": [8, 0] if on_gpu else None,
        },
        "versions": {"python": "3.11.10", "cuda": "12.4" if on_gpu else None},
        "provenance": {
            "payload_manifest_sha256": manifest_sha256(manifest),
            "payload_manifest": manifest,
            "runner_sha256": hexadecimal(random),
            "ptx_sha256": hexadecimal(random) if on_gpu else None,
            "benchmark_dataset_seed": timed["dataset_seed"],
            "benchmark_payload_sha256": timed["sha256"],
        },
        "validation": _validation(random, manifest),
        "kernel": {
            "launches": random.randint(1, 9) if on_gpu else None,
            "mode": random.choice(["redundant", None]),
            "fp16_inputs": random.choice([True, False, None]),
            "stats": random.choice([None, {"grid": 8, "block": 512, "samples_per_block": 125}]),
            "score": random.choice([None, {"grid": 32, "block": 320, "queries_per_block": 32}]),
            "ptx_lines": random.randint(1, 5000) if on_gpu else None,
        },
        "scope": "Graph replays of complete training; excludes transfers.",
    }
    if random.random() < 0.8:
        meter = _Meter(random)
        rounds = [_round(random, meter, index, on_gpu) for index in range(random.choice([0, 1, 2, 3, 5, 7]))]
        completed = f"2026-09-15T{hour + random.randint(0, 1):02}:{random.randint(53, 59)}:29Z"
        document |= {"rounds": rounds, "summary": energy_summary(rounds), "completed_at_utc": completed}
    if random.random() < 0.2:
        document["operator_note"] = "at night"
    return shuffled(random, document)


def reports(seed: int, count: int) -> list[Document]:
    """`count` reports, half of each format."""
    random = Random(seed)
    return [(comparison_report, energy_report)[index % 2](random) for index in range(count)]


def own_energy_report(random: Random, *, on_edges: bool = False) -> Document:
    """An energy report with a `mkframe` block: a load well above idle, held against a sham and a reference. `on_edges`: windows hold
    edges of the counter, neighbours share an idle window, and the runs have wall times of their own."""
    document = energy_report(random)
    document = {key: value for key, value in document.items() if key != "operator_note"}
    meter, count = _Meter(random), random.randint(2, 4)
    on_gpu = document["hardware"]["multiprocessors"] is not None
    rounds: list[Document] = []
    runs: list[Document] = []
    idle = _idle(meter, 60.0)
    for index in range(count):
        start = meter.read(0.01, 60.0)
        end = meter.read(random.uniform(10, 12), 300.0)
        after = _idle(meter, 60.1)
        repeats = 100_000
        window_s = end["time_s"] - start["time_s"]
        run_s = window_s + 0.003 if on_edges else window_s
        wall_ms, power_w = run_s * 1000 / repeats, watts(start, end)
        idle_w = 0.5 * (idle["power_w"] + after["power_w"])
        energy_mj = end["energy_mj"] - start["energy_mj"]
        rounds.append(
            {
                "round": index,
                "repeats": repeats,
                "cuda_ms": float32(run_s * 1000 * 0.99) / repeats if on_gpu else None,
                "wall_ms": wall_ms,
                "gross_mj": power_w * wall_ms if on_edges else energy_mj / repeats,
                "adjusted_mj": (power_w - idle_w) * wall_ms if on_edges else (energy_mj - idle_w * window_s * 1000) / repeats,
                "idle_before_w": idle["power_w"],
                "idle_after_w": after["power_w"],
                "average_power_w": power_w,
                "measurement_start": start,
                "measurement_end": end,
                "idle_before": idle,
                "idle_after": after,
            }
        )
        runs.append({"run_s": run_s})
        idle = after if on_edges else _idle(meter, 60.0)
    net_mj = math.fsum(entry["adjusted_mj"] for entry in rounds) / count
    samples = [time * 1e-3 for time in _samples(random, 12)]
    document |= {"rounds": rounds, "summary": energy_summary(rounds), "completed_at_utc": "2026-09-16T00:00:00Z"}
    document["mkframe"] = {
        "timing": {
            "protocol": "per_call",
            "rounds": 3,
            "samples_per_round": 4,
            "stream_summary": summary(samples),
            "host_summary": summary([time + 0.002 for time in samples]),
        },
        "energy": {
            "protocol": "nvml_edge_aligned" if on_edges else "nvml_paired_idle",
            "verdict": "unverified",
            "net_mj": net_mj,
            "u_mj": None,
            "sham_mj": 0.001,
            "reference": "passed",
            "rounds": runs if on_edges else None,
        },
        "invalid_rounds": [{"round": count, "why": "the counter went back"}],
    }
    return document
