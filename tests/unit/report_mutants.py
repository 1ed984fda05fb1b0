"""Faults planted into honest reports: each kind says where a validator must find it. Written from the published rules.

A kind changes a document in place and returns the pointers at or below one of which the finding must stand, or None where the document
has no place for it. With = in front a pointer means that place alone; so does "", the whole document.
"""

import copy
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from report_generator import energy_summary, hexadecimal, manifest_sha256, seed_sha256

Document = dict[str, Any]
Places = tuple[str, ...]
Change = Callable[[Document, Random], Places | None]

COMPARISON, ENERGY = "comparison", "energy"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`severity` is that of the finding that must stand at one of `places`."""

    kind: str
    base: str
    document: Document
    places: Places
    severity: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.base}"

    def holds(self, pointer: str) -> bool:
        """Whether a finding at `pointer` is at a place where this one must be found."""
        return any(_within(pointer, place) for place in self.places)


def _within(pointer: str, place: str) -> bool:
    if place == "" or place.startswith("="):
        return pointer == place.removeprefix("=")
    return pointer == place or pointer.startswith(f"{place}/")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`format` is that of the documents that it changes, None for both."""

    name: str
    format: str | None
    severity: str
    change: Change


KINDS: list[Kind] = []


def kind(format: str | None, severity: str = "E") -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        name = change.__name__.strip("_").replace("_", " ")
        KINDS.append(Kind(name=name, format=format, severity=severity, change=change))
        return change

    return add


def mutants(bases: dict[str, Document], seed: int) -> Iterator[Mutant]:
    """One mutant of each kind that fits for each base."""
    for base, document in bases.items():
        format = ENERGY if "validation" in document else COMPARISON
        for one in KINDS:
            if one.format not in (None, format):
                continue
            changed = copy.deepcopy(document)
            places = one.change(changed, Random(f"{seed} {base} {one.name}"))
            if places is not None:
                yield Mutant(kind=one.name, base=base, document=changed, places=places, severity=one.severity)


# Where things stand ---------------------------------------------------------------------------------------------------------------


def sets_of(document: Document) -> dict[str, list[Document]]:
    return {
        name: value
        for name, value in document.items()
        if isinstance(value, list) and any(isinstance(item, dict) and "engines" in item for item in value)
    }


def token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _cells(document: Document, passed: bool = True) -> list[tuple[str, Document]]:
    return [
        (f"/{token(name)}/{index}/engines/{token(engine)}", result)
        for name, cases in sets_of(document).items()
        for index, case in enumerate(cases)
        for engine, result in case["engines"].items()
        if result["passed"] is passed
    ]


def cell_of(document: Document, random: Random) -> tuple[str, Document] | None:
    cells = _cells(document)
    return random.choice(cells) if cells else None


def _of_summary(change: Callable[[Document, Document, Random], bool]) -> Change:
    """A fault within one summary of one cell."""

    def changed(document: Document, random: Random) -> Places | None:
        found = cell_of(document, random)
        if found is None:
            return None
        clock = random.choice(["stream_summary", "host_summary"])
        where, result = found
        return (f"{where}/{clock}",) if change(document, result[clock], random) else None

    return changed


def summary_kind(change: Callable[[Document, Document, Random], bool]) -> None:
    changed = _of_summary(change)
    changed.__name__ = change.__name__
    kind(COMPARISON)(changed)


# One summary ----------------------------------------------------------------------------------------------------------------------


@summary_kind
def _count_too_large(_: Document, summary: Document, random: Random) -> bool:
    summary["count"] += random.randint(1, 9)
    return True


@summary_kind
def _count_of_one_round(document: Document, summary: Document, _: Random) -> bool:
    summary["count"] = document["samples_per_round"]
    return bool(document["rounds"] > 1)


@summary_kind
def _p50_above_p95(_: Document, summary: Document, random: Random) -> bool:
    summary["p50_ms"] = summary["p95_ms"] * random.uniform(1.01, 3)
    return True


@summary_kind
def _min_above_p50(_: Document, summary: Document, random: Random) -> bool:
    summary["min_ms"] = summary["p50_ms"] * random.uniform(1.01, 3)
    return True


@summary_kind
def _max_below_p95(_: Document, summary: Document, random: Random) -> bool:
    summary["max_ms"] = summary["p95_ms"] * random.uniform(0.1, 0.99)
    return True


@summary_kind
def _mean_above_max(_: Document, summary: Document, random: Random) -> bool:
    summary["mean_ms"] = summary["max_ms"] * random.uniform(1.01, 2)
    return True


@summary_kind
def _mean_below_min(_: Document, summary: Document, random: Random) -> bool:
    summary["mean_ms"] = summary["min_ms"] * random.uniform(0.1, 0.99)
    return True


@summary_kind
def _mean_that_the_quantiles_forbid(_: Document, summary: Document, random: Random) -> bool:
    p50, p95, high = (summary[f"{name}_ms"] for name in ("p50", "p95", "max"))
    most = 0.5 * p50 + 0.45 * p95 + 0.05 * high
    summary["mean_ms"] = most * 1.002 + random.uniform(0, 0.5) * (high - most)
    return bool(summary["mean_ms"] <= high)


@summary_kind
def _mean_too_small_for_the_quantiles(_: Document, summary: Document, random: Random) -> bool:
    low, p50, p95 = (summary[f"{name}_ms"] for name in ("min", "p50", "p95"))
    least = 0.5 * low + 0.45 * p50 + 0.05 * p95
    summary["mean_ms"] = least * 0.998 - random.uniform(0, 0.5) * (least - low)
    return bool(summary["mean_ms"] >= low)


@summary_kind
def _negative_time(_: Document, summary: Document, random: Random) -> bool:
    summary[random.choice(["min_ms", "p50_ms", "mean_ms"])] *= -1
    return summary["min_ms"] != 0


@summary_kind
def _time_as_text(_: Document, summary: Document, __: Random) -> bool:
    summary["p95_ms"] = str(summary["p95_ms"])
    return True


@summary_kind
def _count_as_fraction(_: Document, summary: Document, __: Random) -> bool:
    summary["count"] += 0.5
    return True


@summary_kind
def _missing_quantile(_: Document, summary: Document, random: Random) -> bool:
    del summary[random.choice(["p50_ms", "p95_ms", "min_ms", "max_ms", "mean_ms", "count"])]
    return True


# Cells, cases and sets ------------------------------------------------------------------------------------------------------------


@kind(COMPARISON)
def _host_below_stream(document: Document, random: Random) -> Places | None:
    if document.get("timing") in ("unrolled", "cold"):
        return None
    found = cell_of(document, random)
    if found is None:
        return None
    where, result = found
    stream = result["stream_summary"]
    # The host's summary stays one that can be.
    result["host_summary"] = {key: value if key == "count" else value * random.uniform(0.90, 0.91) for key, value in stream.items()}
    return None if stream["max_ms"] == stream["min_ms"] else (where,)


@kind(COMPARISON)
def _failed_with_times(document: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None:
        return None
    found[1]["passed"] = False
    return (found[0],)


def _without(key: str) -> Change:
    def change(document: Document, random: Random) -> Places | None:
        found = cell_of(document, random)
        if found is None:
            return None
        del found[1][key]
        return (found[0],)

    change.__name__ = f"cell_without_{key}"
    return change


for _key in ("stream_summary", "host_summary", "passed", "replay_changed_input"):
    kind(COMPARISON)(_without(_key))


@kind(COMPARISON)
def _summary_null(document: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None:
        return None
    found[1]["host_summary"] = None
    return (f"{found[0]}/host_summary",)


@kind(COMPARISON)
def _shape_twice_in_its_set(document: Document, random: Random) -> Places | None:
    name, cases = random.choice(list(sets_of(document).items()))
    cases.append(copy.deepcopy(cases[0]))
    return (f"/{token(name)}",)


@kind(COMPARISON)
def _shape_in_both_sets(document: Document, random: Random) -> Places | None:
    if not {"development", "assessment"} <= sets_of(document).keys():
        return None
    shape = random.choice(document["development"])["shape"]
    items = list(shape.items())
    random.shuffle(items)  # the same shape, whatever the order of its keys
    document["assessment"][-1]["shape"] = dict(items)
    return ("/development", "/assessment")


@kind(COMPARISON)
def _size_zero(document: Document, random: Random) -> Places | None:
    name, cases = random.choice(list(sets_of(document).items()))
    shape = cases[0]["shape"]
    axis = random.choice(list(shape))
    shape[axis] = random.choice([0, -1, True, 1.5, "8"])
    return (f"/{token(name)}/0/shape",)


@kind(COMPARISON)
def _no_engines(document: Document, random: Random) -> Places | None:
    name, cases = random.choice(list(sets_of(document).items()))
    cases[-1]["engines"] = {}
    return (f"/{token(name)}/{len(cases) - 1}/engines",)


@kind(COMPARISON)
def _passed_as_number(document: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None:
        return None
    found[1]["passed"] = 1
    return (found[0],)


# Compiler -------------------------------------------------------------------------------------------------------------------------


def compiler_kind(change: Callable[[Document, Random], bool]) -> None:
    def changed(document: Document, random: Random) -> Places | None:
        outputs = [key for key in document.get("compiler", {}) if key.endswith("_gpu_output")]
        if not outputs:
            return None
        key = random.choice(outputs)
        return (f"/compiler/{key}",) if change(document["compiler"][key], random) else None

    changed.__name__ = change.__name__
    kind(COMPARISON)(changed)


@compiler_kind
def _passed_with_violations(output: Document, random: Random) -> bool:
    output |= {"passed": True, "violations": random.randint(1, output["elements"])}
    return True


@compiler_kind
def _failed_without_violations(output: Document, _: Random) -> bool:
    output |= {"passed": False, "violations": 0}
    return True


@compiler_kind
def _more_violations_than_elements(output: Document, _: Random) -> bool:
    output |= {"passed": False, "violations": output["elements"] + 1}
    return True


@compiler_kind
def _mean_error_above_max(output: Document, _: Random) -> bool:
    output["mean_abs_error"] = output["max_abs_error"] + 1e-3
    return True


# The top of a comparison report ---------------------------------------------------------------------------------------------------


def _set_to(format: str | None, key: str, name: str, *values: Any) -> None:
    def change(document: Document, random: Random) -> Places | None:
        if key not in document:
            return None
        document[key] = random.choice(values)
        return (f"/{key}",)

    change.__name__ = name
    kind(format)(change)


_set_to(COMPARISON, "recorded_on", "date_that_does_not_exist", "2026-02-30", "2025-02-29", "2026-11-31")
_set_to(COMPARISON, "recorded_on", "date_in_other_words", "5 October 2026", "2026-10-05\n", "2026-1-5", 20261005)
_set_to(COMPARISON, "rounds", "rounds_no_count", True, 0, -5, 5.5, "5", None)
_set_to(COMPARISON, "samples_per_round", "samples_no_count", True, 0, "200", [200])
_set_to(COMPARISON, "source_commit", "commit_no_commit", "a" * 39, "A" * 40, "a" * 41, "a" * 40 + "\n", "HEAD", 7)
_set_to(COMPARISON, "device", "device_empty", "", None, {})
_set_to(COMPARISON, "limitations", "limitations_no_list", "none", None, [1], [""])
_set_to(COMPARISON, "packages", "packages_no_map", [], None, {"torch": 2})
_set_to(COMPARISON, "source_sha256", "no_sources", {}, None, [])


@kind(None)
def _missing_key(document: Document, random: Random) -> Places | None:
    needed = ("scope", "kernel", "hardware", "versions") if "validation" in document else ("device", "precision", "rounds", "packages")
    del document[random.choice(needed)]
    return ("",)


@kind(COMPARISON)
def _other_rounds_than_counts(document: Document, _: Random) -> Places | None:
    document["rounds"] += 1
    return tuple(f"{where}/stream_summary" for where, _ in _cells(document)) or None


def _hash_kind(name: str, spoil: Callable[[str], str]) -> None:
    def change(document: Document, random: Random) -> Places | None:
        manifest = document.get("provenance", {}).get("payload_manifest", {})
        here, where = (manifest, "/provenance/payload_manifest") if manifest else (document, "")
        file = random.choice(list(here["source_sha256"]))
        here["source_sha256"][file] = spoil(here["source_sha256"][file])
        return (f"{where}/source_sha256/{token(file)}",)

    change.__name__ = name
    kind(None)(change)


_hash_kind("short_hash", lambda text: text[:-1])
_hash_kind("hash_in_capitals", lambda text: "A" + text[1:].upper())
_hash_kind("hash_with_line_end", lambda text: text + "\n")
_hash_kind("hash_with_other_letters", lambda text: "g" + text[1:])


# Energy: rounds -------------------------------------------------------------------------------------------------------------------


def round_kind(change: Callable[[Document, Random], str | None]) -> None:
    """A fault within one round; `change` returns the key at which it must be found, "" for the round."""

    def changed(document: Document, random: Random) -> Places | None:
        if not document.get("rounds"):
            return None
        index = random.randrange(len(document["rounds"]))
        key = change(document["rounds"][index], random)
        return None if key is None else (f"/rounds/{index}" + (f"/{key}" if key else ""),)

    changed.__name__ = change.__name__
    kind(ENERGY)(changed)


def _scaled(key: str) -> None:
    def change(entry: Document, random: Random) -> str | None:
        if not entry[key]:
            return None
        entry[key] *= 1 + random.choice([1e-9, -1e-6, 0.01])
        return key

    change.__name__ = f"another_{key}"
    round_kind(change)


for _key in ("gross_mj", "wall_ms", "average_power_w"):
    _scaled(_key)


@round_kind
def _another_adjusted_mj(entry: Document, random: Random) -> str:
    entry["adjusted_mj"] += entry["gross_mj"] * random.choice([1e-6, -0.01])
    return "adjusted_mj"


@round_kind
def _adjusted_with_the_other_sign(entry: Document, _: Random) -> str | None:
    entry["adjusted_mj"] *= -1
    return "adjusted_mj" if abs(entry["adjusted_mj"]) > 1e-9 * entry["gross_mj"] else None


@round_kind
def _idle_power_of_nothing(entry: Document, random: Random) -> str:
    key = random.choice(["idle_before", "idle_after"])
    entry[key]["power_w"] = entry[f"{key}_w"] = entry[key]["power_w"] * 1.01
    return f"{key}/power_w"


@round_kind
def _idle_before_that_is_no_copy(entry: Document, _: Random) -> str:
    entry["idle_before_w"] = entry["idle_before_w"] * 1.001
    return "idle_before_w"


@round_kind
def _idle_after_that_is_no_copy(entry: Document, _: Random) -> str | None:
    entry["idle_after_w"] = entry["idle_before_w"]
    return "idle_after_w" if entry["idle_before"]["power_w"] != entry["idle_after"]["power_w"] else None


@round_kind
def _gpu_time_beyond_wall_time(entry: Document, _: Random) -> str | None:
    if entry["cuda_ms"] is None:
        return None
    total: float = struct.unpack("<f", struct.pack("<f", entry["wall_ms"] * entry["repeats"] * 1.01))[0]
    entry["cuda_ms"] = total / entry["repeats"]
    return ""


@round_kind
def _gpu_time_that_no_event_gives(entry: Document, _: Random) -> str | None:
    if entry["cuda_ms"] is None:
        return None
    entry["cuda_ms"] *= 1 - 1e-9
    return "cuda_ms"


@round_kind
def _repeats_no_count(entry: Document, random: Random) -> str:
    entry["repeats"] = random.choice([0, True, -1, 1.5, "7", None])
    return "repeats"


@round_kind
def _other_repeats(entry: Document, _: Random) -> str:
    entry["repeats"] *= 2
    return ""


@round_kind
def _clock_goes_back(entry: Document, _: Random) -> str:
    entry["measurement_end"]["time_s"] = entry["measurement_start"]["time_s"] - 1
    return ""


@round_kind
def _counter_goes_back(entry: Document, _: Random) -> str:
    entry["idle_after"]["start"]["energy_mj"] = entry["measurement_end"]["energy_mj"] - 1
    return "idle_after"


@round_kind
def _negative_read_duration(entry: Document, _: Random) -> str:
    entry["measurement_start"]["read_duration_s"] = -0.001
    return "measurement_start/read_duration_s"


@round_kind
def _reads_that_overlap(entry: Document, _: Random) -> str:
    entry["measurement_end"]["read_duration_s"] = 100.0
    return ""


@round_kind
def _missing_idle_window(entry: Document, random: Random) -> str:
    del entry[random.choice(["idle_before", "idle_after", "measurement_start"])]
    return ""


# Energy: summary ------------------------------------------------------------------------------------------------------------------


def _summary_value(key: str) -> None:
    def change(document: Document, random: Random) -> Places | None:
        summary = document.get("summary")
        if not summary or summary[key] is None or not summary[key]:
            return None
        summary[key] *= 1 + random.choice([1e-9, 0.01])
        return (f"/summary/{key}",)

    change.__name__ = f"summary_with_another_{key}"
    kind(ENERGY)(change)


for _key in ("cuda_ms", "wall_ms", "gross_mj", "adjusted_mj"):
    _summary_value(f"{_key}_median")
for _key in ("min", "max", "sample_sd"):
    _summary_value(f"adjusted_mj_{_key}")


@kind(ENERGY)
def _population_deviation(document: Document, _: Random) -> Places | None:
    summary, count = document.get("summary"), len(document.get("rounds", ()))
    if not summary or not summary["adjusted_mj_sample_sd"]:
        return None
    summary["adjusted_mj_sample_sd"] *= math.sqrt((count - 1) / count)
    return ("/summary/adjusted_mj_sample_sd",)


@kind(ENERGY)
def _another_number_of_negative_rounds(document: Document, _: Random) -> Places | None:
    if not document.get("summary"):
        return None
    document["summary"]["negative_adjusted_rounds"] += 1
    return ("/summary/negative_adjusted_rounds",)


@kind(ENERGY)
def _no_summary_of_rounds(document: Document, _: Random) -> Places | None:
    if not document.get("rounds"):
        return None
    document["summary"] = None
    return ("/summary",)


@kind(ENERGY)
def _summary_of_no_rounds(document: Document, _: Random) -> Places | None:
    if not document.get("rounds"):
        return None
    document["rounds"] = []
    return ("/summary", "/rounds")


@kind(ENERGY)
def _a_round_left_out_of_the_summary(document: Document, _: Random) -> Places | None:
    if len(document.get("rounds", ())) < 3:
        return None
    document["summary"] = energy_summary(document["rounds"][1:])
    return ("/summary",)


# Energy: validation ---------------------------------------------------------------------------------------------------------------


def _has_labels(document: Document) -> bool:
    return "total" in document["validation"]


def _total_kind(key: str) -> None:
    def change(document: Document, random: Random) -> Places | None:
        if not _has_labels(document):
            return None
        document["validation"][key] += random.choice([-1, 1]) if document["validation"][key] > 1 else 1
        return (f"/validation/{key}",)

    change.__name__ = f"other_{key}_than_the_draws"
    kind(ENERGY)(change)


for _key in ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct"):
    _total_kind(_key)


@kind(ENERGY)
def _replays_that_are_not_all_equal(document: Document, random: Random) -> Places | None:
    validation = document["validation"]
    if not _has_labels(document) or not validation["all_graph_replays_equal_eager"]:
        return None
    random.choice(validation["draws"])["graph_replays_equal_eager"][-1] = False
    return ("/validation/all_graph_replays_equal_eager", "/validation/passed")


@kind(ENERGY)
def _draws_that_were_not_checked(document: Document, _: Random) -> Places | None:
    if not _has_labels(document) or len(document["validation"]["draws"]) < 2:
        return None
    dropped = document["validation"]["draws"].pop()
    for key in ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct"):
        document["validation"][key] -= dropped[key]
    return ("/validation/all_eleven_frozen_draws_checked", "/validation/draws")


@kind(ENERGY)
def _passed_the_other_way_round(document: Document, _: Random) -> Places | None:
    document["validation"]["passed"] = not document["validation"]["passed"]
    return ("/validation/passed",)


@kind(ENERGY)
def _mismatches_that_are_not_listed(document: Document, random: Random) -> Places | None:
    if not _has_labels(document):
        return None
    index = random.randrange(len(document["validation"]["draws"]))
    draw = document["validation"]["draws"][index]
    if draw["mismatching_prediction_indices"]:
        draw["mismatching_prediction_indices"].pop()
    else:
        draw["mismatching_prediction_indices"] = [0]
    return (f"/validation/draws/{index}",)


@kind(ENERGY)
def _full_agreement_with_other_counts(document: Document, random: Random) -> Places | None:
    if not _has_labels(document):
        return None
    full = [
        (index, draw)
        for index, draw in enumerate(document["validation"]["draws"])
        if draw["total"] == draw["gpu_agrees_with_frozen_cpu_predictions"] and 0 < draw["gpu_correct"] < draw["total"]
    ]
    if not full:
        return None
    index, draw = random.choice(full)
    draw["gpu_correct"] += 1
    document["validation"]["gpu_correct"] += 1
    return (f"/validation/draws/{index}",)


@kind(ENERGY)
def _draw_of_another_payload(document: Document, random: Random) -> Places | None:
    if not _has_labels(document):
        return None
    index = random.randrange(len(document["validation"]["draws"]))
    document["validation"]["draws"][index]["payload_sha256"] = hexadecimal(random)
    return (f"/validation/draws/{index}/payload_sha256",)


@kind(ENERGY)
def _draw_of_another_seed(document: Document, random: Random) -> Places | None:
    if not _has_labels(document):
        return None
    index = random.randrange(len(document["validation"]["draws"]))
    document["validation"]["draws"][index]["dataset_seed"] += 1
    return (f"/validation/draws/{index}/dataset_seed",)


# Energy: provenance ---------------------------------------------------------------------------------------------------------------

_MANIFEST = "/provenance/payload_manifest"


def _rehashed(document: Document) -> None:
    provenance = document["provenance"]
    provenance["payload_manifest_sha256"] = manifest_sha256(provenance["payload_manifest"])


@kind(ENERGY)
def _another_manifest_hash(document: Document, random: Random) -> Places:
    document["provenance"]["payload_manifest_sha256"] = hexadecimal(random)
    return ("/provenance/payload_manifest_sha256",)


@kind(ENERGY)
def _manifest_in_another_order(document: Document, _: Random) -> Places:
    manifest = document["provenance"]["payload_manifest"]
    document["provenance"]["payload_manifest"] = dict(reversed(manifest.items()))
    return ("/provenance",)


@kind(ENERGY)
def _manifest_changed_afterwards(document: Document, random: Random) -> Places:
    draw = random.choice(document["provenance"]["payload_manifest"]["draws"])
    draw["path"] = "other.npz"
    return ("/provenance",)


@kind(ENERGY)
def _hash_of_another_seed(document: Document, random: Random) -> Places:
    draws = document["provenance"]["payload_manifest"]["draws"]
    index = random.randrange(len(draws))
    draws[index]["arrays"]["dataset_seed"]["sha256"] = seed_sha256(draws[index]["dataset_seed"] + 1)
    _rehashed(document)
    return (f"{_MANIFEST}/draws/{index}/arrays/dataset_seed",)


@kind(ENERGY)
def _seeds_of_other_draws(document: Document, _: Random) -> Places:
    manifest = document["provenance"]["payload_manifest"]
    manifest["seeds"] = [*manifest["seeds"][:-1], manifest["seeds"][-1] + 1]
    _rehashed(document)
    return (f"{_MANIFEST}/seeds",)


@kind(ENERGY)
def _one_payload_for_two_draws(document: Document, _: Random) -> Places | None:
    draws = document["provenance"]["payload_manifest"]["draws"]
    if len(draws) < 2:
        return None
    draws[1]["sha256"] = draws[0]["sha256"]
    for draw in document["validation"].get("draws", ())[1:2]:
        draw["payload_sha256"] = draws[0]["sha256"]
    _rehashed(document)
    return (f"{_MANIFEST}/draws", "/validation/draws")


@kind(ENERGY)
def _dtype_that_numpy_does_not_name(document: Document, random: Random) -> Places:
    draws = document["provenance"]["payload_manifest"]["draws"]
    draws[0]["arrays"]["dataset_seed"]["dtype"] = random.choice(["float", "bf16", "<i8", "long"])
    _rehashed(document)
    return (f"{_MANIFEST}/draws/0/arrays/dataset_seed/dtype",)


@kind(ENERGY)
def _timed_seed_of_no_draw(document: Document, _: Random) -> Places:
    document["provenance"]["benchmark_dataset_seed"] = 3
    return ("/provenance",)


@kind(ENERGY)
def _timed_payload_of_no_draw(document: Document, random: Random) -> Places:
    document["provenance"]["benchmark_payload_sha256"] = hexadecimal(random)
    return ("/provenance",)


@kind(ENERGY)
def _completed_before_it_was_verified(document: Document, _: Random) -> Places | None:
    if "completed_at_utc" not in document:
        return None
    document["completed_at_utc"] = "2020-01-01T00:00:00Z"
    return ("/completed_at_utc",)


_set_to(ENERGY, "verified_at_utc", "moment_that_does_not_exist", "2026-02-30T10:00:00Z", "2026-04-31T00:00:00Z")
_set_to(ENERGY, "verified_at_utc", "moment_without_zone", "2026-02-03T10:00:00", "2026-02-03", "2026-02-03T10:00:00Z\n")
_set_to(ENERGY, "scope", "scope_empty", "", None, 1)


@kind(ENERGY)
def _memory_zero(document: Document, random: Random) -> Places:
    document["hardware"]["memory_total_bytes"] = random.choice([0, -1, True, None, 1.5])
    return ("/hardware/memory_total_bytes",)
