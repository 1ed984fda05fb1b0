"""Reports as other systems write them who know the two schemas and nothing else: no block, odd clocks, free names, keys of their own.

Written from the descriptions in the schemas. Beside what report_generator.py varies: figures that are zero, rounded or whole, integers
with a point, one sample, nothing that passed, counters in fractions, rounds that are missing or numbered downward, and how JSON is
written.
"""

import hashlib
import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

from report_generator import Document, energy_summary, float32, gpu_output, hexadecimal, seed_sha256, shuffled, summary, watts

_TIMINGS = (None, "per_call", "replay", "host_pair", "MTLCommandBuffer.GPUStartTime", "BenchmarkTools, @elapsed", "événements")
_SETS = ("development", "assessment", "gemm", "sort_sizes", "resnet_blöcke", "prod-2026", "爱")
_ENGINES = ("std::sort", "llama.cpp", "our.persistent", "sell-c-σ", "torch-graph", "F(2×2,3×3)", "metal-radix", " ", "1")
_OWN_KEYS: tuple[tuple[str, Any], ...] = (
    ("team", {"name": "perf ☂", "contact": None}),
    ("tags", ["spmv", "csr"]),
    ("numbers", [1, 2.5, None, {"shape": [3, 4]}]),
    ("plots", [{"engines": 3}, {"shape": "round"}]),
    ("shape", "not a set"),
    ("engines", {"ginkgo": "1.9"}),
    ("format", "of our own, version 3"),
    ("summary", None),
    ("empty", []),
)


# Comparison reports ---------------------------------------------------------------------------------------------------------------


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _rounded(figures: Document, random: Random) -> Document:
    """A summary with the five digits that it needs, or with all."""
    digits = random.choice([5, 6, 17, 17])
    return {name: value if name == "count" else _digits(value, digits) for name, value in figures.items()}


def _pair(random: Random, count: int) -> Document:
    """Both summaries of one engine; the host's clock stands outside."""
    kind, scale = random.randrange(4), 10 ** random.uniform(-4, 3)
    if kind == 0:  # a clock that sees nothing of such short calls, or sometimes a step
        stream = [float(random.choice([0, 0, 0, 1])) * 0.015625 for _ in range(count)]
    elif kind == 1:
        stream = [float(random.randint(1, 9)) for _ in range(count)]
    else:
        stream = [scale * random.lognormvariate(0, 0.2) for _ in range(count)]
    host = [time + random.choice([0.0, 0.25 * scale * random.random()]) for time in stream]
    digits = random.getrandbits(32)  # both are rounded alike, so that their order stays
    found = {name: _rounded(summary(times), Random(digits)) for name, times in (("stream_summary", stream), ("host_summary", host))}
    for figures in found.values():
        if kind == 1 and random.random() < 0.5:
            figures |= {name: int(value) for name, value in figures.items() if float(value).is_integer()}
        if random.random() < 0.2:
            figures["p99_ms"] = figures["max_ms"]
    return found


def _result(random: Random, count: int, share_passed: float) -> Document:
    if random.random() >= share_passed:
        failed: Document = {"passed": False, "replay_changed_input": random.random() < 0.5}
        return failed | random.choice([{}, {"error": "segmentation fault"}, {"violations": 12}])
    return {"passed": True, "replay_changed_input": random.random() < 0.9, **_pair(random, count)}


def foreign_comparison(random: Random) -> Document:
    """A comparison report of another system: no errors, whatever is odd about it."""
    rounds, per_round = random.choice([(1, 1), (1, 7), (20, 3), (random.randint(2, 5), random.randint(1, 30))])
    share_passed = random.choice([0.0, 0.8, 1.0])
    integer: Callable[[int], Any] = random.choice([int, float])
    document: Document = {
        "recorded_on": random.choice(["2024-02-29", "2025-12-31", "1999-01-01"]),
        "device": random.choice(["x", "Ampere® Altra Max M128-30", "Apple M3 Max (40 cores GPU)", "TPU v5e"]),
        "precision": random.choice(["f64", "double, ½ ULP 🙂", "nvfp4 weights / bf16 activations", "BF16: as stored"]),
        "packages": random.choice([{}, {"Julia": "1.11.2", "爱": "1"}, {"mkframe": "not ours"}]),
        "rounds": integer(rounds),
        "samples_per_round": integer(per_round),
        "source_sha256": {"läufe/run.jl": hexadecimal(random)},
        "source_commit": random.choice([None, hexadecimal(random, 40)]),
        "limitations": random.choice([[], ["One machine, one day."]]),
    }
    if (timing := random.choice(_TIMINGS)) is not None:
        document["timing"] = timing
    engines = random.sample(_ENGINES, random.randint(1, 4))
    sizes = iter(random.sample(range(1, 10**6), 12))
    for name in random.sample(_SETS, random.randint(1, 3)):
        document[name] = []
        for _ in range(random.randint(1, 3)):
            shape = {"m": integer(next(sizes)), "größe": 1} | random.choice([{}, {"depth": 1}, {"depth": 3}])
            case = {"shape": shape, "engines": {engine: _result(random, rounds * per_round, share_passed) for engine in engines}}
            if random.random() < 0.3:
                case["name"] = "suitesparse/cant"
            for result in case["engines"].values():
                for figures in (result.get("stream_summary"), result.get("host_summary")):
                    if figures:
                        figures["count"] = integer(figures["count"])
            document[name].append(case)
    if random.random() < 0.5:
        document["compiler"] = random.choice([{}, {"driver_version": 3}, {"_gpu_output": gpu_output(random), "opt_level": "O3"}])
    if random.random() < 0.5:
        document["sanitizers"] = random.choice([{}, "ASan: keine Funde.", {"by_kernel": {"a": 0}, "synccheck": None, "race": 2}])
    document |= dict(random.sample(_OWN_KEYS, random.choice([0, 0, 1, 4])))
    return shuffled(random, document)


# Energy reports -------------------------------------------------------------------------------------------------------------------


def _manifest(random: Random, labels: bool) -> Document:
    draws = []
    for draw in sorted(random.sample(range(20), random.randint(1, 4)), reverse=random.random() < 0.3):
        seed = random.choice([random.randrange(100), random.randrange(2**62), 2**63 - 1])
        arrays: Document = {"x": {"shape": [3, 5], "dtype": "float16", "sha256": hexadecimal(random)}}
        if random.random() < 0.7:
            arrays["dataset_seed"] = {"shape": [], "dtype": "int64", "sha256": seed_sha256(seed)}
        total = random.randint(1, 40)
        if labels:
            arrays["test_labels"] = {"shape": [total, 1][: random.randint(1, 2)], "dtype": "int32", "sha256": hexadecimal(random)}
        path = random.choice([f"ziehung_{draw}ä.npz", f"{draw}.npz", f"données/{draw}.npz"])
        draws.append({"draw": draw, "dataset_seed": seed, "path": path, "sha256": hexadecimal(random), "arrays": arrays, "note": []})
    names = random.choice(["gen.py", "générer.py"])
    return {"seeds": [draw["dataset_seed"] for draw in draws], "draws": draws, "source_sha256": {names: hexadecimal(random)}, "more": {}}


def _manifest_sha256(random: Random, manifest: Document) -> str:
    """Other alphabets escaped, or as they are."""
    return hashlib.sha256((json.dumps(manifest, indent=2, ensure_ascii=random.random() < 0.5) + "\n").encode()).hexdigest()


def _labels(random: Random, manifest: Document) -> Document:
    draws: list[Document] = []
    for entry in manifest["draws"]:
        total = entry["arrays"]["test_labels"]["shape"][0]
        wrong, cpu = random.choice([0, 0, min(2, total)]), random.randint(0, total)
        gpu = random.randint(max(0, cpu - wrong), min(total, cpu + wrong))
        draw: Document = {
            "draw": entry["draw"],
            "dataset_seed": entry["dataset_seed"],
            "payload_sha256": entry["sha256"],
            "graph_replays_equal_eager": [random.random() < 0.95 for _ in range(random.randint(1, 4))],
            "total": total,
            "gpu_agrees_with_frozen_cpu_predictions": total - wrong,
            "gpu_correct": gpu,
            "cpu_correct": cpu,
            "gpu_predictions_int32_sha256": None,
            "mismatching_prediction_indices": random.sample(range(total), wrong),
            "scratch_poisoned_before_eager_and_each_replay": random.random() < 0.5,
        }
        draws.append(draw | random.choice([{}, {"ties": wrong}, {"ties": 0}]))
    names = ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct")
    if len(draws) > 1 and random.random() < 0.3:
        draws.pop()
    random.shuffle(draws)
    equal = all(all(draw["graph_replays_equal_eager"]) for draw in draws)
    sums = {name: sum(draw[name] for draw in draws) for name in names}
    excused = sum(draw.get("ties", 0) for draw in draws)
    return {
        "draws": draws,
        **sums,
        "intermediate_float_values_bitwise_equal_to_reference": random.choice([True, False, None]),
        "all_eleven_frozen_draws_checked": len(draws) == len(manifest["draws"]),
        "one_captured_graph_reused_across_changed_inputs": random.choice([True, None]),
        "all_graph_replays_equal_eager": equal,
        "passed": equal and sums["total"] - sums["gpu_agrees_with_frozen_cpu_predictions"] <= excused,
    }


def _values(random: Random, manifest: Document) -> Document:
    """With or without draws, and with or without a total of the replays."""
    errors = [random.choice([0, 0.5 * random.random()]) for _ in manifest["draws"]]
    violations = [random.choice([0, 0, 0, 3]) for _ in errors]
    draws: list[Document] = [
        {
            "draw": entry["draw"],
            "dataset_seed": entry["dataset_seed"],
            "payload_sha256": entry["sha256"],
            "max_abs_error": largest,
            "mean_abs_error": largest / 3,
            "violations": beyond,
            "elements": 100,
            "rtol": 0,
            "atol": 1e-5,
        }
        for entry, largest, beyond in zip(manifest["draws"], errors, violations, strict=True)
    ]
    found: Document = {"max_abs_error": max(errors), "mean_abs_error": math.fsum(errors) / 3 / len(errors), "violations": sum(violations)}
    found |= {"elements": 100 * len(errors), "rtol": 0, "atol": 1e-5}
    equal = random.random() < 0.8
    with_draws = random.random() < 0.7
    if with_draws:
        for draw in draws:
            draw["graph_replays_equal_eager"] = [True, equal]
        found["draws"] = draws
    if not with_draws or random.random() < 0.5:
        found["all_graph_replays_equal_eager"] = equal
    return found | {"passed": equal and not sum(violations)}


class _Meter:
    """Any counter: of whole or broken millijoules, with whole times or others, from 0 or from anywhere."""

    def __init__(self, random: Random) -> None:
        self.random, self.whole = random, random.random() < 0.3
        self.fractions = not self.whole and random.random() < 0.5
        self.time_s: float = random.choice([0, 100]) if self.whole else random.uniform(0, 1e6)
        self.energy_mj: float = random.choice([0, 5000, 10**11])

    def read(self, after_s: int, power_w: int) -> Document:
        length: float = after_s if self.whole else after_s * self.random.uniform(0.9, 1.1)
        moved = length * power_w * 1000
        self.time_s += length
        self.energy_mj += moved if self.whole or self.fractions else round(moved)
        duration = 0 if self.whole else self.random.uniform(0, 1e-3)
        return {"energy_mj": self.energy_mj, "time_s": self.time_s, "read_duration_s": duration}

    def idle(self, power_w: int) -> Document:
        start, end = self.read(1, power_w), self.read(4, power_w)
        return {"start": start, "end": end, "power_w": watts(start, end)}


def _rounds(random: Random, count: int) -> list[Document]:
    meter, on_gpu, share = _Meter(random), random.random() < 0.5, random.random() < 0.3
    rounds: list[Document] = []
    for _ in range(count):
        before = rounds[-1]["idle_after"] if share and rounds else meter.idle(50)
        start, end = meter.read(1, 50), meter.read(10, random.choice([49, 52, 300]))
        after = meter.idle(random.choice([50, 51]))
        repeats = random.choice([1, 50, 5000])
        energy_mj, time_s = end["energy_mj"] - start["energy_mj"], end["time_s"] - start["time_s"]
        rounds.append(
            {
                "round": len(rounds),
                "repeats": repeats,
                "cuda_ms": float32(time_s * 990) / repeats if on_gpu else None,
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
        )
    numbers = random.choice([range(count), range(count - 1, -1, -1), [2 * index + 1 for index in range(count)]])
    for one, number in zip(rounds, numbers, strict=True):
        one["round"] = number
    if len(rounds) > 2 and not share and random.random() < 0.4:
        rounds.pop(1)  # one that could not count
    return rounds


def foreign_energy(random: Random) -> Document:
    """An energy report of another system: no errors, whatever is odd about it."""
    labels, kind = random.random() < 0.5, random.choice(["verified only", "nothing finished", "measured", "measured"])
    manifest = _manifest(random, labels)
    timed = random.choice(manifest["draws"])
    on_cpu = random.random() < 0.5
    document: Document = {
        "verified_at_utc": random.choice(["2024-02-29T00:00:00Z", "2025-01-20T23:59:58.25+00:00"]),
        "hardware": {
            "name": "AMD EPYC 9654" if on_cpu else "NVIDIA Jetson AGX Orin",
            "uuid": None,
            "memory_total_bytes": 64_000_000_000,
            "multiprocessors": None if on_cpu else 16,
            "compute_capability": None if on_cpu else [8, 7],
        },
        "versions": random.choice([{}, {"jetpack": "6.1", "cuda": None}]),
        "provenance": {
            "payload_manifest_sha256": _manifest_sha256(random, manifest),
            "payload_manifest": manifest,
            "runner_sha256": hexadecimal(random),
            "ptx_sha256": None,
            "benchmark_dataset_seed": timed["dataset_seed"],
            "benchmark_payload_sha256": timed["sha256"],
        },
        "validation": _labels(random, manifest) if labels else _values(random, manifest),
        "kernel": dict.fromkeys(("launches", "mode", "fp16_inputs", "stats", "score", "ptx_lines")) | random.choice([{}, {"stats": {}}]),
        "scope": "package-0 domain of RAPL",
    }
    if kind != "verified only":
        rounds = _rounds(random, random.choice([1, 2, 4])) if kind == "measured" else []
        document |= {"rounds": rounds, "summary": energy_summary(rounds), "completed_at_utc": "2025-01-20T23:59:58.250Z"}
        if rounds and random.random() < 0.3:
            rounds[0]["note"] = rounds[0]["measurement_start"]["raw"] = 7
    if random.random() < 0.3:
        document["hardware"]["board_part"] = "692-2G520"
    return shuffled(random, document)


# JSON -----------------------------------------------------------------------------------------------------------------------------


def _exponents(value: Any) -> str:
    """Compact, every number with a point in exponent form."""
    if isinstance(value, float):
        return f"{value:.17E}"
    if isinstance(value, list):
        return f"[{','.join(map(_exponents, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_exponents(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def written(document: Document, random: Random) -> bytes:
    """One document in one of the ways in which JSON is written."""
    way = random.randrange(4)
    if way == 0:
        return _exponents(document).encode()
    text = json.dumps(document, indent=random.choice([None, 1, 4, "\t"]), ensure_ascii=way == 1)
    if way == 2:
        text = text.replace("\n", "\r\n") + "\r\n\r\n"
    return text.encode()
