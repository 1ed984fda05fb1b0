"""More kinds of mutants (report_mutants.py): what a report of ours says twice, and what is no error and must be told.

Importing this module adds them to KINDS.
"""

import copy
import json
from hashlib import sha256
from math import ceil
from random import Random
from typing import Any

from report_generator import hexadecimal
from report_mutants import COMPARISON, ENERGY, Document, Places, cell_of, kind, sets_of, token

from mkframe.model.checks import all_checks


def _block(document: Document) -> Document:
    block: Document = document.get("mkframe", {})
    return block


# Doubt in comparison reports ------------------------------------------------------------------------------------------------------


@kind(COMPARISON, "W")
def _no_commit(document: Document, _: Random) -> Places | None:
    if document["source_commit"] is None:
        return None
    document["source_commit"] = None
    return ("/source_commit",)


@kind(COMPARISON, "W")
def _an_engine_that_one_shape_lacks(document: Document, random: Random) -> Places | None:
    cases = [(name, index, case) for name, found in sets_of(document).items() for index, case in enumerate(found)]
    if len({tuple(sorted(case["engines"])) for _, _, case in cases}) > 1 or len(cases) < 3 or len(cases[0][2]["engines"]) < 2:
        return None
    name, index, case = random.choice(cases)
    del case["engines"][random.choice(list(case["engines"]))]
    return (f"/{token(name)}/{index}",)


@kind(COMPARISON, "W")
def _medians_closer_than_a_step_of_the_clock(document: Document, _: Random) -> Places | None:
    if document["device"] != "NVIDIA GeForce RTX 3090" or len(document.get("development", ())) < 5:  # the recorded report
        return None
    one, other = (document["development"][1]["engines"][name]["stream_summary"] for name in ("persistent", "conventional"))
    other |= one | {"p50_ms": one["p50_ms"] + 5e-6}
    return ("/development/1",)


@kind(COMPARISON, "W")
def _unknown_key(document: Document, _: Random) -> Places | None:
    if _block(document):
        return None
    document["operator_remark"] = "at night"
    return ("/operator_remark",)


@kind(COMPARISON)
def _unknown_key_in_our_report(document: Document, _: Random) -> Places | None:
    if not _block(document):
        return None
    document["operator_remark"] = "at night"
    return ("/operator_remark",)


# Reports of ours ------------------------------------------------------------------------------------------------------------------


def _own(change: Any) -> None:
    """A fault in the block of a comparison report of ours. `change` gets document, block and random."""

    def changed(document: Document, random: Random) -> Places | None:
        block = _block(document)
        found: Places | None = change(document, block, random) if block else None
        return found

    changed.__name__ = change.__name__
    kind(COMPARISON)(changed)


@_own
def _samples_of_another_plan(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["samples_per_round"] += 1
    return ("/samples_per_round", "/mkframe/timing/samples_per_round")


@_own
def _another_protocol_than_above(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["protocol"] = "unrolled"
    return ("/timing", "/mkframe/timing/protocol")


@_own
def _configuration_changed_afterwards(_: Document, block: Document, __: Random) -> Places:
    block["config"]["timing"]["cell_timeout_s"] += 1
    return ("/mkframe/config_sha256", "/mkframe/config")


@_own
def _samples_file_of_another_name(_: Document, block: Document, random: Random) -> Places:
    block["samples"]["file"] = f"samples-{hexadecimal(random)}.npz"
    return ("/mkframe/samples/file",)


@_own
def _samples_file_elsewhere(_: Document, block: Document, __: Random) -> Places:
    block["samples"]["file"] = f"../{block['samples']['file']}"
    return ("/mkframe/samples/file",)


@_own
def _rounds_of_other_processes(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["round_process"].reverse()
    return ("/mkframe/timing/round_process",)


@_own
def _protocol_that_no_limitation_names(document: Document, block: Document, _: Random) -> Places:
    document["limitations"] = [text for text in document["limitations"] if block["timing"]["protocol"] not in text]
    return ("/limitations",)


@_own
def _incomplete_and_not_said(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["outcome"] = "incomplete"
    return ("/mkframe/incomplete",)


@_own
def _one_cell_twice(_: Document, block: Document, __: Random) -> Places:
    block["cells"].append(copy.deepcopy(block["cells"][-1]))
    return (f"/mkframe/cells/{len(block['cells']) - 1}",)


@_own
def _a_cell_without_results(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    cell = block["cells"][index]
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    del engines[cell["engine"]]
    if "rates" in cell:
        cell["rates"] = None  # else they follow from no time, which another rule finds
    return (f"/mkframe/cells/{index}",)


@_own
def _a_reason_for_passing(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["reason"] = "it looked right"
    return (f"/mkframe/cells/{index}/reason",)


@_own
def _violations_in_a_cell_that_passed(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"]["violations"] = 1
    return (f"/mkframe/cells/{index}/check",)


@_own
def _replay_flag_the_other_way_round(document: Document, _: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None:
        return None
    found[1]["replay_changed_input"] = not found[1]["replay_changed_input"]
    return (f"{found[0]}/replay_changed_input",)


@_own
def _a_verdict_is_missing(_: Document, block: Document, random: Random) -> Places:
    block["verdicts"].pop(random.randrange(len(block["verdicts"])))
    return ("/mkframe/verdicts",)


@_own
def _a_ratio_of_other_medians(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["verdicts"]))
    block["verdicts"][index]["ratio"] *= 1 + 1e-6
    return (f"/mkframe/verdicts/{index}/ratio",)


@_own
def _slower_called_faster(_: Document, block: Document, random: Random) -> Places:
    index = random.choice([index for index, verdict in enumerate(block["verdicts"]) if verdict["verdict"] in ("FASTER", "SLOWER")])
    verdict = block["verdicts"][index]
    verdict["verdict"] = "SLOWER" if verdict["verdict"] == "FASTER" else "FASTER"
    return (f"/mkframe/verdicts/{index}/verdict",)


def _loss(block: Document) -> int:
    return next(index for index, verdict in enumerate(block["verdicts"]) if verdict["verdict"] == "SLOWER")


@_own
def _a_loss_called_undecided(_: Document, block: Document, __: Random) -> Places:
    index = _loss(block)
    block["verdicts"][index] |= {"verdict": "UNDECIDED", "reason": "the intervals of the medians overlap"}
    return (f"/mkframe/verdicts/{index}",)


@_own
def _ranked_while_the_intervals_overlap(_: Document, block: Document, __: Random) -> Places:
    index = _loss(block)
    verdict = block["verdicts"][index]
    for cell in block["cells"]:
        if (cell["set"], cell["case"], cell["engine"]) == (verdict["set"], verdict["case"], verdict["baseline"]):
            cell["interval"]["high_ms"] *= 100
    return (f"/mkframe/verdicts/{index}",)


@_own
def _unknown_key_in_the_block(_: Document, block: Document, __: Random) -> Places:
    block["surprise"] = 1
    return ("/mkframe/surprise",)


# Rates and peaks ------------------------------------------------------------------------------------------------------------------


def rehash(block: Document) -> None:
    text = json.dumps(block["config"], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    block["config_sha256"] = sha256(text.encode()).hexdigest()


def with_rates(document: Document, *, cold: bool, peak_flops: float = 1e15, read_peak: float = 1e15) -> Document:
    """A report of ours with the peaks of its device and the rates that follow. `cold`: its caches were cold by rotation."""
    document = copy.deepcopy(document)
    block = document["mkframe"]
    if cold:
        document["timing"] = block["timing"]["protocol"] = block["timing"]["cache_state"] = "cold"
        block["config"]["timing"] = {
            **block["config"]["timing"],
            "protocol": "cold",
            "method": "rotate",
            "k1": 20,
            "slope_us": 200.0,
            "sets": 4,
            "footprint": 1.0,
        }
        document["limitations"] = [_told_cold(text) for text in document["limitations"]]
    block["config"]["device"]["card"] = None  # these peaks are of no card
    rehash(block)
    block["device"]["peaks"] = {
        "datasheet": {"memory_bytes_per_s": 1e15, "flops_per_s": peak_flops, "source": "a sheet"},
        "measured": {
            "card_sha256": "ab" * 32,
            "driver": None,
            "read_bytes_per_s": read_peak,
            "write_bytes_per_s": None,
            "copy_bytes_per_s": None,
        },
    }
    for cell in block["cells"]:
        engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
        seconds = engines[cell["engine"]]["stream_summary"]["p50_ms"] / 1e3
        moved, computed = cell["cost"]["bytes"] / seconds, cell["cost"]["flops"] / seconds
        cell["rates"] = {"bytes_per_s": moved, "flops_per_s": computed, "compute_share": computed / peak_flops}
        cell["rates"] |= {"memory_share": moved / 1e15 if cold else None, "read_share": moved / read_peak if cold else None}
        if cold:
            cell["checks"] = list(all_checks("cuda", chained=True))
            sets = max(4, ceil(block["device"]["l2_bytes"] / cell["cost"]["bytes"]))
            cell["facts"] = {**cell["facts"], "k1": 20, "k2": 20 + ceil(2e-4 / seconds), "sets": sets, "edges": "full"}
    return document


_COLD = {
    "protocol per_call:": "protocol cold:",
    "one sample is one call.": "one sample is the slope between two graphs of chained calls over more buffers than L2 holds, or one call "
    "after L2 was evicted, as the configuration says.",
    "Every call reads the same buffers: caches are warm, and no rate here is a memory bandwidth.": "L2 is cold for every call; the "
    "instruction cache, kernel parameters and the TLB stay warm.",
}
"""What the sentences of the published report say otherwise in a cold one."""


def _told_cold(text: str) -> str:
    for warm, cold in _COLD.items():
        text = text.replace(warm, cold)
    return text


def _cold(block: Document) -> bool:
    return bool(block["timing"]["protocol"] == "cold")


@_own
def _one_set_that_is_cold(_: Document, block: Document, random: Random) -> Places | None:
    if not _cold(block):
        return None
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["sets"] = 1
    return (f"/mkframe/cells/{index}/facts/sets",)


@_own
def _a_slope_of_one_chain(_: Document, block: Document, random: Random) -> Places | None:
    if not _cold(block):
        return None
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["k2"] = block["cells"][index]["facts"]["k1"]
    return (f"/mkframe/cells/{index}/facts/k2",)


@_own
def _an_error_larger_than_all_together(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    check = block["cells"][index]["check"]
    if check is None or not check["mean_abs_error"]:
        return None
    check["max_abs_error"] = 2 * check["mean_abs_error"] * check["elements"]
    return (f"/mkframe/cells/{index}/check/max_abs_error",)


@_own
def _an_anti_cheat_check_left_out(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if "fresh input" not in block["cells"][index]["checks"]:
        return None
    block["cells"][index]["checks"].remove("fresh input")
    return (f"/mkframe/cells/{index}/checks",)


@_own
def _a_rate_of_another_time(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if block["cells"][index].get("rates") is None:
        return None
    block["cells"][index]["rates"]["bytes_per_s"] *= 1.01
    return (f"/mkframe/cells/{index}/rates",)


@_own
def _more_operations_than_the_device_can(document: Document, block: Document, _: Random) -> Places | None:
    if block["device"].get("peaks") is None:
        return None
    document["mkframe"] = with_rates(document, cold=False, peak_flops=1.0)["mkframe"]
    return tuple(f"/mkframe/cells/{index}" for index in range(len(block["cells"])))


@kind(COMPARISON, "W")
def _colder_than_the_memory_reads(document: Document, _: Random) -> Places | None:
    block = _block(document)
    if block.get("device", {}).get("peaks") is None or block["timing"]["cache_state"] != "cold":
        return None
    document["mkframe"] = with_rates(document, cold=True, read_peak=1.0)["mkframe"]
    return tuple(f"/mkframe/cells/{index}" for index in range(len(block["cells"])))


# Energy: what is told, and our block ----------------------------------------------------------------------------------------------


@kind(ENERGY, "W")
def _unknown_key_in_an_energy_report(document: Document, _: Random) -> Places | None:
    if _block(document):
        return None
    document["operator_remark"] = "at night"
    return ("/operator_remark",)


@kind(ENERGY, "I")
def _hashes_of_things_outside(_: Document, __: Random) -> Places:
    return ("/provenance",)


@kind(ENERGY, "I")
def _a_net_energy(document: Document, _: Random) -> Places | None:
    return ("/rounds",) if document.get("rounds") else None


@kind(ENERGY, "W")
def _a_net_power_that_idle_hides(document: Document, _: Random) -> Places | None:
    if _block(document) or document["provenance"]["benchmark_dataset_seed"] != 20261201:  # the recorded report: 1.57 %
        return None
    energy = dict.fromkeys(("verdict", "net_mj", "u_mj", "rounds")) | {"sham_mj": 0.0, "reference": "passed"}
    document["mkframe"] = {"energy": {"protocol": "nvml_paired_idle", **energy}}
    return ("=/rounds",)


@kind(ENERGY, "W")
def _a_net_energy_below_one_step(document: Document, _: Random) -> Places | None:
    if document["provenance"]["benchmark_dataset_seed"] != 20261201 or not document.get("rounds"):
        return None
    document["rounds"][5]["adjusted_mj"] = 1e-6
    return ("/rounds/5/adjusted_mj",)


@kind(ENERGY, "W")
def _wall_time_a_little_short(document: Document, random: Random) -> Places | None:
    rounds = document.get("rounds")
    if not rounds or rounds[0]["cuda_ms"] is None:
        return None
    index = random.randrange(len(rounds))
    rounds[index]["cuda_ms"] = rounds[index]["wall_ms"] * (1 + 100e-6)
    return (f"/rounds/{index}",)


def _own_energy(severity: str) -> Any:
    def decorate(change: Any) -> None:
        def changed(document: Document, random: Random) -> Places | None:
            energy = _block(document).get("energy")
            if energy is None or not document.get("rounds"):
                return None
            found: Places | None = change(document, _block(document), random)
            return found

        changed.__name__ = change.__name__
        kind(ENERGY, severity)(changed)

    return decorate


@_own_energy("W")
def _no_sham(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["sham_mj"] = None
    return ("/rounds",)


@_own_energy("W")
def _no_reference(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["reference"] = None
    return ("/rounds",)


@_own_energy("W")
def _idle_windows_far_apart(document: Document, block: Document, random: Random) -> Places | None:
    if block["energy"]["protocol"] != "nvml_edge_aligned":
        return None
    index = random.randrange(len(document["rounds"]))
    document["rounds"][index]["idle_after"]["power_w"] += 20.0
    return (f"/rounds/{index}",)


@_own_energy("E")
def _net_energy_of_other_rounds(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["net_mj"] *= 1.01
    return ("/mkframe/energy/net_mj",)


@_own_energy("E")
def _verdict_without_an_uncertainty(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["verdict"] = "resolved"
    return ("/mkframe/energy/verdict",)


@_own_energy("E")
def _measured_and_not_measured(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["status"] = "not_measured"
    return ("/mkframe/energy/status",)


@_own_energy("E")
def _a_round_valid_and_invalid(_: Document, block: Document, __: Random) -> Places:
    block["invalid_rounds"][0]["round"] = 0
    return ("/mkframe/invalid_rounds/0",)


@_own_energy("E")
def _times_of_more_samples(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["host_summary"]["count"] += 1
    return ("/mkframe/timing/host_summary",)


@_own_energy("E")
def _a_run_without_its_wall_time(document: Document, block: Document, random: Random) -> Places | None:
    if not block["energy"]["rounds"]:
        return None
    index = random.randrange(len(document["rounds"]))
    del block["energy"]["rounds"][index]["run_s"]
    return (f"/rounds/{index}", f"/mkframe/energy/rounds/{index}")


@kind(ENERGY)
def _rounds_in_another_order(document: Document, _: Random) -> Places | None:
    if len(document.get("rounds", ())) < 2 or _block(document):
        return None
    document["rounds"][:2] = document["rounds"][1::-1]
    return ("/rounds/0", "/rounds/1")


@kind(ENERGY)
def _fewer_labels_than_there_are(document: Document, random: Random) -> Places | None:
    draws = document["validation"].get("draws", [{}])
    listed = document["provenance"]["payload_manifest"]["draws"]
    index = random.randrange(len(draws))
    if "labels" not in listed[index]["arrays"] or [draws[index].get("total")] != listed[index]["arrays"]["labels"]["shape"]:
        return None
    for key in ("total", "gpu_agrees_with_frozen_cpu_predictions"):
        draws[index][key] -= 1
        document["validation"][key] -= 1
    return (f"/validation/draws/{index}",)


@kind(ENERGY)
def _values_with_a_mean_error_above_the_largest(document: Document, _: Random) -> Places:
    values = {"max_abs_error": 1e-6, "mean_abs_error": 1e-3, "violations": 0, "elements": 10, "rtol": 0.0, "atol": 1e-3}
    document["validation"] = {"passed": True, **values}
    return ("/validation",)


# What a run always writes ----------------------------------------------------------------------------------------------------------


def _own_doubt(change: Any) -> None:
    """A doubt about a comparison report of ours."""

    def changed(document: Document, random: Random) -> Places | None:
        block = _block(document)
        found: Places | None = change(document, block, random) if block else None
        return found

    changed.__name__ = change.__name__
    kind(COMPARISON, "W")(changed)


def _scaled(summary: Document, factor: float) -> None:
    summary |= {name: value * factor for name, value in summary.items() if name != "count"}


@_own
def _no_version_of_torch(document: Document, _: Document, __: Random) -> Places:
    del document["packages"]["torch"]
    return ("/packages",)


@_own
def _energy_that_nothing_measured(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["net_mj"] = 1.0
    return ("/mkframe/energy",)


@_own
def _warm_ups_that_nobody_asked_for(document: Document, block: Document, __: Random) -> Places:
    document["limitations"] = [text.replace(f"{block['timing']['warmups']} warm-up", "0 warm-up") for text in document["limitations"]]
    block["timing"]["warmups"] = 0
    return ("/mkframe/timing/warmups",)


@_own
def _seed_of_another_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["seed"] = 5
    rehash(block)
    return ("/mkframe/seeds",)


@_own
def _another_workload_in_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["workload"]["id"] = "gemm"
    rehash(block)
    return ("/mkframe/workload",)


@_own
def _a_card_of_another_device(_: Document, block: Document, __: Random) -> Places | None:
    if not block["config"]["device"]["card"]:
        return None
    block["device"]["multiprocessors"] = 1
    return ("/mkframe/device/card",)


@_own
def _a_case_that_was_left_out(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["cases"].append({"rows": 9, "channels": 9, "hidden": 9})
    rehash(block)
    return ("/mkframe/cells",)


@_own
def _other_shapes_in_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["cases"][0]["rows"] = 4096
    rehash(block)
    return ("/mkframe/cells/0/shape",)


@_own
def _a_baseline_in_all_cases_but_one(_: Document, block: Document, __: Random) -> Places:
    block["cells"][-1]["baseline"] = not block["cells"][-1]["baseline"]
    return (f"/mkframe/cells/{len(block['cells']) - 1}/baseline",)


@_own
def _passed_without_a_check(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    cell = block["cells"][index]
    cell["checks"] = []
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    engines[cell["engine"]]["replay_changed_input"] = False
    return (f"/mkframe/cells/{index}/checks",)


@_own
def _passed_without_a_comparison(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"] = None
    return (f"/mkframe/cells/{index}/check",)


@_own
def _another_tolerance_for_one_engine(_: Document, block: Document, __: Random) -> Places:
    block["cells"][1]["check"]["rtol"] *= 2
    return ("/mkframe/cells/1/check",)


@_own_doubt
def _a_tolerance_that_forgives_everything(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["check"] |= {"rtol": 1e9, "atol": 1e9}
    return ("/mkframe/cells/0/check",)


@_own_doubt
def _an_error_of_huge_references(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"]["max_abs_error"] = 1e30
    return (f"/mkframe/cells/{index}/check",)


def _index(block: Document, form: str) -> int:
    return next(index for index, cell in enumerate(block["cells"]) if cell["form"] == form)


@_own
def _nodes_of_an_eager_call(_: Document, block: Document, __: Random) -> Places:
    index = _index(block, "eager")
    block["cells"][index]["nodes"] = ["a", "b"]
    return (f"/mkframe/cells/{index}/nodes",)


@_own
def _a_graph_without_nodes(_: Document, block: Document, __: Random) -> Places:
    index = _index(block, "graph")
    block["cells"][index] |= {"nodes": [], "kernels": []}
    return (f"/mkframe/cells/{index}/nodes",)


@_own
def _a_block_of_too_many_threads(_: Document, block: Document, __: Random) -> Places:
    index = _index(block, "graph")
    block["cells"][index]["kernels"][0]["block"] = [9999, 1, 1]
    return (f"/mkframe/cells/{index}/kernels",)


@_own
def _more_late_samples_than_samples(document: Document, block: Document, __: Random) -> Places:
    before = sum(cell["late_samples"] for cell in block["cells"])
    block["cells"][0]["late_samples"] += 10**9
    document["limitations"] = [text.replace(f"{before} held", f"{before + 10**9} held") for text in document["limitations"]]
    return ("/mkframe/cells/0/late_samples",)


@_own
def _an_interval_far_from_its_samples(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["interval"] = {"low_ms": 1e-9, "high_ms": 2e-9}
    return (f"/mkframe/cells/{index}/interval",)


@_own
def _keys_of_two_versions(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if block["cells"][index].pop("kernels", "absent") == "absent":
        return None
    return (f"=/mkframe/cells/{index}",)


@_own
def _passed_on_a_throttled_device(_: Document, block: Document, __: Random) -> Places:
    block["rounds"][0]["after"]["throttle_reasons"] = 0x40
    return ("/mkframe/cells/0/outcome",)


@_own
def _a_round_of_no_case(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["rounds"]))
    block["rounds"][index]["set"] = "elsewhere"
    return (f"/mkframe/rounds/{index}",)


@_own_doubt
def _rounds_without_clocks(_: Document, block: Document, __: Random) -> Places:
    del block["rounds"][::2]
    return ("/mkframe/rounds",)


@_own
def _a_floor_by_no_clock(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["timing"]["floors"]))
    block["timing"]["floors"][index]["clock"] = "sundial"
    return (f"/mkframe/timing/floors/{index}/clock",)


@_own
def _floors_of_one_process(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["floors"] = [floor for floor in block["timing"]["floors"] if floor["process"] == 0]
    return ("/mkframe/timing/floors",)


@_own
def _a_floor_whose_host_is_inside(_: Document, block: Document, __: Random) -> Places:
    index = next(i for i, floor in enumerate(block["timing"]["floors"]) if floor["clock"] == "host")
    _scaled(block["timing"]["floors"][index]["summary"], 1e-3)
    return (f"/mkframe/timing/floors/{index}",)


@_own
def _faster_than_nothing(_: Document, block: Document, __: Random) -> Places | None:
    if block["timing"]["protocol"] != "per_call":
        return None
    for floor in block["timing"]["floors"]:
        _scaled(floor["summary"], 1e3)
    return ("/development", "/assessment")


@_own_doubt
def _faster_than_an_empty_kernel(_: Document, block: Document, __: Random) -> Places:
    for floor in block["timing"]["floors"]:
        if floor["name"] != "empty-pair":
            _scaled(floor["summary"], 1e3)
    return ("/development", "/assessment")


@_own
def _prose_of_more_rounds(document: Document, block: Document, __: Random) -> Places:
    rounds = block["timing"]["rounds"]
    document["limitations"] = [text.replace(f"{rounds} rounds of", f"{10 * rounds} rounds of") for text in document["limitations"]]
    return ("/limitations",)


@_own
def _more_cells_passed_than_there_are(document: Document, _: Document, __: Random) -> Places:
    document["source_replay_checks"] = "999 of 999 cells passed."
    return ("/source_replay_checks",)


@_own_doubt
def _uncommitted_changes(_: Document, block: Document, __: Random) -> Places:
    block["environment"]["source_dirty"] = True
    return ("/mkframe/environment",)


@_own_doubt
def _one_hash_for_every_file(document: Document, _: Document, random: Random) -> Places:
    document["source_sha256"] = dict.fromkeys(document["source_sha256"], hexadecimal(random))
    return ("/source_sha256",)


@_own_doubt
def _nothing_to_be_ranked_against(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["baseline"] = False
    block["verdicts"] = []
    return ("=/mkframe/verdicts",)


@_own_doubt
def _ended_early_with_nothing_missing(document: Document, block: Document, __: Random) -> Places:
    block["incomplete"] = True
    document["limitations"].insert(0, "INCOMPLETE: the run ended early, 0 cells lack some of their blocks and have no numbers.")
    return ("/mkframe/incomplete",)


@kind(COMPARISON, "W")
def _a_host_a_little_behind_its_stream(document: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None or document.get("timing", "per_call") not in ("per_call", "replay"):
        return None
    stream = found[1]["stream_summary"]
    found[1]["host_summary"] = {name: value if name == "count" else value * (1 - 1e-4) for name, value in stream.items()}
    return (f"={found[0]}",)


# Facts that stand twice -------------------------------------------------------------------------------------------------------------


@_own
def _another_torch_in_a_cell(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["facts"]["torch"] = "1.0"
    return ("=/mkframe/cells/0/facts/torch",)


@_own
def _another_torch_in_the_packages(document: Document, _: Document, __: Random) -> Places:
    document["packages"]["torch"] = "1.0"
    return ("/mkframe/cells/0/facts/torch",)


@_own
def _another_cuda_than_the_device(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["facts"]["cuda"] = "1.0"
    return (f"=/mkframe/cells/{index}/facts/cuda",)


@_own
def _another_triton_in_a_cell(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["facts"]["triton"] = "1.0"
    return ("=/mkframe/cells/0/facts/triton",)


@_own
def _peaks_of_another_driver(_: Document, block: Document, __: Random) -> Places | None:
    if (block["device"].get("peaks") or {}).get("measured") is None:
        return None
    block["device"]["peaks"]["measured"]["driver"] = "1.0"
    return ("=/mkframe/device/peaks/measured/driver",)


def _compiled(block: Document, **changes: Any) -> Places:
    """A graph with an entry of its first launch among its compiled kernels, and `changes` to it."""
    index = _index(block, "graph")
    launch = (block["cells"][index].get("kernels") or [{"registers": 32, "shared_bytes": 0}])[0]
    entry = {"name": "mlp", "arch": "sm_90a", "registers": launch["registers"], "shared_bytes": launch["shared_bytes"]}
    block["cells"][index]["facts"]["compiled"] = [entry | changes]
    return (f"=/mkframe/cells/{index}/facts/compiled/0",)


@_own
def _a_kernel_for_another_architecture(_: Document, block: Document, __: Random) -> Places:
    return _compiled(block, arch="sm_80")


@_own
def _a_kernel_with_registers_of_no_launch(_: Document, block: Document, __: Random) -> Places | None:
    return _compiled(block, registers=254) if block["cells"][_index(block, "graph")].get("kernels") else None


@_own
def _a_kernel_with_more_shared_memory_than_its_launch(_: Document, block: Document, __: Random) -> Places | None:
    return _compiled(block, shared_bytes=2**30) if block["cells"][_index(block, "graph")].get("kernels") else None


@_own
def _an_implementation_without_a_file(document: Document, block: Document, __: Random) -> Places:
    del document["source_sha256"]["mkframe_plugins/torch_engines.py"]
    return ("=/mkframe/cells/0/implementation",)


@_own
def _a_folder_without_its_file(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["implementation"] = "mkframe_folder_0123456789ab.gone:Engine"
        cell["facts"].pop("compiled", None)
    return ("=/mkframe/cells/0/implementation",)


# Values of the configuration that no run accepts ------------------------------------------------------------------------------------


def _setting(part: str, name: str, value: Any) -> None:
    """A value of the configuration that no run accepts."""

    def changed(_: Document, block: Document, __: Random) -> Places:
        block["config"][part][name] = value
        rehash(block)
        return (f"=/mkframe/config/{part}/{name}",)

    changed.__name__ = f"_{part}_{name}_{value}"
    _own(changed)


for _part, _name, _value in (
    ("timing", "hold", "autox"),
    ("timing", "cell_timeout_s", -1.0),
    ("timing", "cell_timeout_s", "never"),
    ("timing", "replays", 50),
    ("timing", "spin_up_s", -0.5),
    ("timing", "budget_s", 0),
    ("timing", "surprise", 1),
    ("device", "index", "lie"),
    ("device", "index", -1),
    ("device", "uuid", "GPU-0"),
    ("workload", "surprise", 1),
    ("energy", "surprise", 1),
):
    _setting(_part, _name, _value)


@_own
def _a_seed_that_is_no_number(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["seed"] = "lie"
    rehash(block)
    return ("=/mkframe/config/shape/development/seed",)


@_own
def _a_precision_of_other_types(_: Document, block: Document, __: Random) -> Places:
    for precision in (block["precision"], block["config"]["precision"]):
        precision["hidden"] = "float32"
    rehash(block)
    return ("=/mkframe/config/precision/hidden",)


@_own
def _a_card_without_rates(_: Document, block: Document, __: Random) -> Places | None:
    if not block["config"]["device"]["card"]:
        return None
    block["config"]["device"]["card"]["fp32_flops"] = 0.0
    rehash(block)
    return ("=/mkframe/config/device/card/fp32_flops",)


@_own
def _no_targets(_: Document, block: Document, __: Random) -> Places:
    del block["config"]["targets"]
    rehash(block)
    return ("=/mkframe/config",)


@_own
def _an_unknown_part_of_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["afterwards"] = 1
    rehash(block)
    return ("=/mkframe/config/afterwards",)


# The device ---------------------------------------------------------------------------------------------------------------------------


def _of_device(name: str, value: Any) -> None:
    """A field of the device that no device of its kind has so."""

    def changed(_: Document, block: Document, __: Random) -> Places:
        block["device"][name] = value
        return (f"=/mkframe/device/{name}",)

    changed.__name__ = f"_device_{name}_{value}"
    _own(changed)


_FIELDS: tuple[tuple[str, Any], ...] = (
    ("uuid", None),
    ("driver", None),
    ("cuda", None),
    ("multiprocessors", None),
    ("threads", 4),
    ("kind", "tpu"),
)
for _name, _value in _FIELDS:
    _of_device(_name, _value)


@_own
def _a_processor_with_multiprocessors(_: Document, block: Document, __: Random) -> Places:
    block["device"] |= {"kind": "cpu", "threads": 8}
    return tuple(f"=/mkframe/device/{name}" for name in ("uuid", "compute_capability", "multiprocessors", "l2_bytes", "driver", "cuda"))


# Tolerances, chains and their sets ------------------------------------------------------------------------------------------------------


@_own
def _another_tolerance_for_one_case(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        if (cell["set"], cell["case"]) == ("development", 0):
            cell["check"]["atol"] *= 2
    return ("=/mkframe/cells/0/check/atol",)


def _chain(change: Any, key: str) -> None:
    """A fault in the facts of one chain, at `key`. `change` gets block and cell."""

    def changed(_: Document, block: Document, random: Random) -> Places | None:
        if not _cold(block):
            return None
        index = random.randrange(len(block["cells"]))
        change(block, block["cells"][index])
        return (f"=/mkframe/cells/{index}/facts/{key}",)

    changed.__name__ = change.__name__
    _own(changed)


def _another_k1(_: Document, cell: Document) -> None:
    cell["facts"]["k1"] -= 1


def _a_difference_too_short(_: Document, cell: Document) -> None:
    cell["facts"]["k2"] = cell["facts"]["k1"] + 1


def _a_set_too_many(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] += 1


def _a_set_too_few(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] -= 1


def _sets_that_are_no_number(_: Document, cell: Document) -> None:
    cell["facts"]["sets"] = "many"


def _edges_of_overlapping_calls(_: Document, cell: Document) -> None:
    cell["facts"]["edges"] = "programmatic"


def _edges_of_no_kind(_: Document, cell: Document) -> None:
    cell["facts"]["edges"] = "loose"


for _change, _key in (
    (_another_k1, "k1"),
    (_a_difference_too_short, "k2"),
    (_a_set_too_many, "sets"),
    (_a_set_too_few, "sets"),
    (_sets_that_are_no_number, "sets"),
    (_edges_of_overlapping_calls, "edges"),
    (_edges_of_no_kind, "edges"),
):
    _chain(_change, _key)


@_own
def _a_larger_cache_than_the_sets_fill(_: Document, block: Document, __: Random) -> Places | None:
    if not _cold(block):
        return None
    block["device"]["l2_bytes"] *= 2
    return ("=/mkframe/cells/0/facts/sets",)


@_own
def _full_edges_of_launches_that_may_overlap(_: Document, block: Document, __: Random) -> Places | None:
    if not _cold(block):
        return None
    index = _index(block, "graph")
    for launch in block["cells"][index].get("kernels") or ():
        launch["programmatic"] = True
    return (f"=/mkframe/cells/{index}/facts/edges",) if block["cells"][index].get("kernels") else None


@_own_doubt
def _calls_of_a_third_partys_engine_that_overlap(_: Document, block: Document, __: Random) -> Places | None:
    if not _cold(block):
        return None
    for cell in block["cells"]:
        cell["implementation"] = "elsewhere.engines:Overlapping"
        cell["facts"]["edges"] = "programmatic"
    return ("=/mkframe/cells/0/facts/edges",)


# What a run always says ------------------------------------------------------------------------------------------------------------


@_own
def _no_word_on_caches(document: Document, _: Document, __: Random) -> Places:
    document["limitations"] = [text for text in document["limitations"] if "warm" not in text or "warm-ups" in text]
    return ("=/limitations",)


@_own
def _everything_is_claimed(document: Document, _: Document, __: Random) -> Places:
    index = next(i for i, text in enumerate(document["limitations"]) if "nothing is claimed" in text)
    document["limitations"][index] = document["limitations"][index].replace("nothing is claimed", "everything is claimed")
    return (f"=/limitations/{index}",)


@_own
def _a_sentence_that_no_run_writes(document: Document, _: Document, random: Random) -> Places:
    index = random.randrange(len(document["limitations"]) + 1)
    document["limitations"].insert(index, "An independent laboratory confirmed these times.")
    return (f"=/limitations/{index}",)


@_own
def _a_sentence_twice(document: Document, _: Document, random: Random) -> Places:
    document["limitations"].append(random.choice(document["limitations"]))
    return (f"=/limitations/{len(document['limitations']) - 1}",)


@_own
def _sentences_in_another_order(document: Document, _: Document, __: Random) -> Places:
    document["limitations"].reverse()
    return ("/limitations",)


@_own
def _checks_that_were_not_told(document: Document, _: Document, __: Random) -> Places:
    told = document["source_replay_checks"]
    document["source_replay_checks"] = told[: told.index("passed.") + len("passed.")]
    return ("=/source_replay_checks",)


@_own
def _checks_turned_round(document: Document, _: Document, __: Random) -> Places:
    document["source_replay_checks"] = document["source_replay_checks"].replace("gave the right result", "was not tried")
    return ("=/source_replay_checks",)


@_own
def _another_precision_behind_its_name(document: Document, _: Document, __: Random) -> Places:
    document["precision"] = document["precision"].replace("FP32 accumulation", "FP16 accumulation")
    return ("=/precision",)


@_own
def _a_contract_under_the_name_of_another(document: Document, block: Document, __: Random) -> Places:
    block["precision"]["accumulate"] = block["config"]["precision"]["accumulate"] = "float16"
    rehash(block)
    document["precision"] = document["precision"].replace("FP32 accumulation", "FP16 accumulation")
    return ("=/mkframe/config/precision/accumulate",)


# Older than it is ------------------------------------------------------------------------------------------------------------------


def _aged(document: Document, block: Document, *keys: str) -> None:
    """Without what schema 1.2 brought: rules are milder to reports before it."""
    for key in keys:
        for cell in block["cells"]:
            cell.pop(key, None)
    if "peaks" in keys:
        block["device"].pop("peaks", None)
    if "sources" in keys:
        old = ("mkframe/__init__.py", "mkframe/canonical.py")
        found = document["source_sha256"]
        document["source_sha256"] = {name: found[name] for name in found if name in old or name.startswith("mkframe_plugins/")}


def _without_a_check(block: Document, index: int) -> None:
    block["cells"][index]["checks"].remove("fresh input")


@_own
def _no_rates_and_a_check_less(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(_, block, "rates")
    return (f"=/mkframe/cells/{index}",)


@_own
def _one_cell_without_rates_and_a_check_less(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    del block["cells"][index]["rates"]
    return (f"=/mkframe/cells/{index}",)


@_own
def _older_in_all_but_its_sources(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(document, block, "rates", "kernels", "twin", "peaks")
    return (f"=/mkframe/cells/{index}",)


@_own
def _older_in_all_but_its_day(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    _without_a_check(block, index)
    _aged(document, block, "rates", "kernels", "twin", "peaks", "sources")
    document["recorded_on"] = "2026-12-01"
    return (f"=/mkframe/cells/{index}",)


@_own
def _older_in_all_but_the_peaks_of_its_device(document: Document, block: Document, random: Random) -> Places:
    _aged(document, block, "rates", "kernels", "twin", "sources")
    return (f"=/mkframe/cells/{random.randrange(len(block['cells']))}",)


@_own
def _no_peaks_beside_rates(document: Document, block: Document, _: Random) -> Places:
    _aged(document, block, "sources")
    block["device"].pop("peaks", None)
    return ("=/mkframe/device",)


@_own
def _a_reading_that_counts_no_other_processes(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["rounds"]))
    del block["rounds"][index]["after"]["other_processes"]
    return (f"=/mkframe/rounds/{index}/after",)


@_own
def _chains_that_nobody_asked_for(_: Document, block: Document, __: Random) -> Places:
    for key in ("k1", "slope_us", "footprint"):
        del block["config"]["timing"][key]
    rehash(block)
    return ("=/mkframe/config",)
