"""Kinds of mutants: doubt in comparison reports, and what a report of ours says in two places."""

import copy
from random import Random

from own_mutants import block_of, own
from report_generator import hexadecimal
from report_mutants import COMPARISON, Document, Places, cell_of, kind, sets_of, token

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
    if block_of(document):
        return None
    document["operator_remark"] = "at night"
    return ("/operator_remark",)


@kind(COMPARISON)
def _unknown_key_in_our_report(document: Document, _: Random) -> Places | None:
    if not block_of(document):
        return None
    document["operator_remark"] = "at night"
    return ("/operator_remark",)


# Reports of ours ------------------------------------------------------------------------------------------------------------------


@own
def _samples_of_another_plan(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["samples_per_round"] += 1
    return ("/samples_per_round", "/mkframe/timing/samples_per_round")


@own
def _another_protocol_than_above(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["protocol"] = "unrolled"
    return ("/timing", "/mkframe/timing/protocol")


@own
def _configuration_changed_afterwards(_: Document, block: Document, __: Random) -> Places:
    block["config"]["timing"]["cell_timeout_s"] += 1
    return ("/mkframe/config_sha256", "/mkframe/config")


@own
def _samples_file_of_another_name(_: Document, block: Document, random: Random) -> Places:
    block["samples"]["file"] = f"samples-{hexadecimal(random)}.npz"
    return ("/mkframe/samples/file",)


@own
def _samples_file_elsewhere(_: Document, block: Document, __: Random) -> Places:
    block["samples"]["file"] = f"../{block['samples']['file']}"
    return ("/mkframe/samples/file",)


@own
def _rounds_of_other_processes(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["round_process"].reverse()
    return ("/mkframe/timing/round_process",)


@own
def _protocol_that_no_limitation_names(document: Document, block: Document, _: Random) -> Places:
    document["limitations"] = [text for text in document["limitations"] if block["timing"]["protocol"] not in text]
    return ("/limitations",)


@own
def _incomplete_and_not_said(_: Document, block: Document, __: Random) -> Places:
    block["cells"][0]["outcome"] = "incomplete"
    return ("/mkframe/incomplete",)


@own
def _one_cell_twice(_: Document, block: Document, __: Random) -> Places:
    block["cells"].append(copy.deepcopy(block["cells"][-1]))
    return (f"/mkframe/cells/{len(block['cells']) - 1}",)


@own
def _a_cell_without_results(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    cell = block["cells"][index]
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    del engines[cell["engine"]]
    if "rates" in cell:
        cell["rates"] = None  # else they follow from no time, which another rule finds
    return (f"/mkframe/cells/{index}",)


@own
def _a_reason_for_passing(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["reason"] = "it looked right"
    return (f"/mkframe/cells/{index}/reason",)


@own
def _violations_in_a_cell_that_passed(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"]["violations"] = 1
    return (f"/mkframe/cells/{index}/check",)


@own
def _replay_flag_the_other_way_round(document: Document, _: Document, random: Random) -> Places | None:
    found = cell_of(document, random)
    if found is None:
        return None
    found[1]["replay_changed_input"] = not found[1]["replay_changed_input"]
    return (f"{found[0]}/replay_changed_input",)


@own
def _a_verdict_is_missing(_: Document, block: Document, random: Random) -> Places:
    block["verdicts"].pop(random.randrange(len(block["verdicts"])))
    return ("/mkframe/verdicts",)


@own
def _a_ratio_of_other_medians(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["verdicts"]))
    block["verdicts"][index]["ratio"] *= 1 + 1e-6
    return (f"/mkframe/verdicts/{index}/ratio",)


@own
def _slower_called_faster(_: Document, block: Document, random: Random) -> Places:
    index = random.choice([index for index, verdict in enumerate(block["verdicts"]) if verdict["verdict"] in ("FASTER", "SLOWER")])
    verdict = block["verdicts"][index]
    verdict["verdict"] = "SLOWER" if verdict["verdict"] == "FASTER" else "FASTER"
    return (f"/mkframe/verdicts/{index}/verdict",)


def _loss(block: Document) -> int:
    return next(index for index, verdict in enumerate(block["verdicts"]) if verdict["verdict"] == "SLOWER")


@own
def _a_loss_called_undecided(_: Document, block: Document, __: Random) -> Places:
    index = _loss(block)
    block["verdicts"][index] |= {"verdict": "UNDECIDED", "reason": "the intervals of the medians overlap"}
    return (f"/mkframe/verdicts/{index}",)


@own
def _ranked_while_the_intervals_overlap(_: Document, block: Document, __: Random) -> Places:
    index = _loss(block)
    verdict = block["verdicts"][index]
    for cell in block["cells"]:
        if (cell["set"], cell["case"], cell["engine"]) == (verdict["set"], verdict["case"], verdict["baseline"]):
            cell["interval"]["high_ms"] *= 100
    return (f"/mkframe/verdicts/{index}",)


@own
def _unknown_key_in_the_block(_: Document, block: Document, __: Random) -> Places:
    block["surprise"] = 1
    return ("/mkframe/surprise",)
