"""Kinds of mutants: what is told of energy reports, and our block in them."""

from random import Random
from typing import Any

from own_mutants import block_of
from report_mutants import ENERGY, Document, Places, kind


@kind(ENERGY, "W")
def _unknown_key_in_an_energy_report(document: Document, _: Random) -> Places | None:
    if block_of(document):
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
    if block_of(document) or document["provenance"]["benchmark_dataset_seed"] != 20261201:  # the recorded report: 1.57 %
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
            energy = block_of(document).get("energy")
            if energy is None or not document.get("rounds"):
                return None
            found: Places | None = change(document, block_of(document), random)
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
    if len(document.get("rounds", ())) < 2 or block_of(document):
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
