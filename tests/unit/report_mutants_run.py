"""Kinds of mutants: what a run always writes."""

from random import Random

from own_mutants import index_of, own, own_doubt, rehash
from report_generator import hexadecimal
from report_mutants import COMPARISON, Document, Places, cell_of, kind


def _scaled(summary: Document, factor: float) -> None:
    summary |= {name: value * factor for name, value in summary.items() if name != "count"}


@own
def _no_version_of_torch(document: Document, _: Document, __: Random) -> Places:
    del document["packages"]["torch"]
    return ("/packages",)


@own
def _energy_that_nothing_measured(_: Document, block: Document, __: Random) -> Places:
    block["energy"]["net_mj"] = 1.0
    return ("/mkframe/energy",)


@own
def _warm_ups_that_nobody_asked_for(document: Document, block: Document, __: Random) -> Places:
    document["limitations"] = [text.replace(f"{block['timing']['warmups']} warm-up", "0 warm-up") for text in document["limitations"]]
    block["timing"]["warmups"] = 0
    return ("/mkframe/timing/warmups",)


@own
def _seed_of_another_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["seed"] = 5
    rehash(block)
    return ("/mkframe/seeds",)


@own
def _another_workload_in_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["workload"]["id"] = "gemm"
    rehash(block)
    return ("/mkframe/workload",)


@own
def _a_card_of_another_device(_: Document, block: Document, __: Random) -> Places | None:
    if not block["config"]["device"]["card"]:
        return None
    block["device"]["multiprocessors"] = 1
    return ("/mkframe/device/card",)


@own
def _a_case_that_was_left_out(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["cases"].append({"rows": 9, "channels": 9, "hidden": 9})
    rehash(block)
    return ("/mkframe/cells",)


@own
def _other_shapes_in_the_configuration(_: Document, block: Document, __: Random) -> Places:
    block["config"]["shape"]["development"]["cases"][0]["rows"] = 4096
    rehash(block)
    return ("/mkframe/cells/0/shape",)


@own
def _a_baseline_in_all_cases_but_one(_: Document, block: Document, __: Random) -> Places:
    block["cells"][-1]["baseline"] = not block["cells"][-1]["baseline"]
    return (f"/mkframe/cells/{len(block['cells']) - 1}/baseline",)


@own
def _passed_without_a_check(document: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    cell = block["cells"][index]
    cell["checks"] = []
    engines = next(case["engines"] for case in document[cell["set"]] if case["shape"] == cell["shape"])
    engines[cell["engine"]]["replay_changed_input"] = False
    return (f"/mkframe/cells/{index}/checks",)


@own
def _passed_without_a_comparison(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"] = None
    return (f"/mkframe/cells/{index}/check",)


@own
def _another_tolerance_for_one_engine(_: Document, block: Document, __: Random) -> Places:
    block["cells"][1]["check"]["rtol"] *= 2
    return ("/mkframe/cells/1/check",)


@own_doubt
def _a_tolerance_that_forgives_everything(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["check"] |= {"rtol": 1e9, "atol": 1e9}
    return ("/mkframe/cells/0/check",)


@own_doubt
def _an_error_of_huge_references(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["check"]["max_abs_error"] = 1e30
    return (f"/mkframe/cells/{index}/check",)


@own
def _nodes_of_an_eager_call(_: Document, block: Document, __: Random) -> Places:
    index = index_of(block, "eager")
    block["cells"][index]["nodes"] = ["a", "b"]
    return (f"/mkframe/cells/{index}/nodes",)


@own
def _a_graph_without_nodes(_: Document, block: Document, __: Random) -> Places:
    index = index_of(block, "graph")
    block["cells"][index] |= {"nodes": [], "kernels": []}
    return (f"/mkframe/cells/{index}/nodes",)


@own
def _a_block_of_too_many_threads(_: Document, block: Document, __: Random) -> Places:
    index = index_of(block, "graph")
    block["cells"][index]["kernels"][0]["block"] = [9999, 1, 1]
    return (f"/mkframe/cells/{index}/kernels",)


@own
def _more_late_samples_than_samples(document: Document, block: Document, __: Random) -> Places:
    before = sum(cell["late_samples"] for cell in block["cells"])
    block["cells"][0]["late_samples"] += 10**9
    document["limitations"] = [text.replace(f"{before} held", f"{before + 10**9} held") for text in document["limitations"]]
    return ("/mkframe/cells/0/late_samples",)


@own
def _an_interval_far_from_its_samples(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["cells"]))
    block["cells"][index]["interval"] = {"low_ms": 1e-9, "high_ms": 2e-9}
    return (f"/mkframe/cells/{index}/interval",)


@own
def _keys_of_two_versions(_: Document, block: Document, random: Random) -> Places | None:
    index = random.randrange(len(block["cells"]))
    if block["cells"][index].pop("kernels", "absent") == "absent":
        return None
    return (f"=/mkframe/cells/{index}",)


@own
def _passed_on_a_throttled_device(_: Document, block: Document, __: Random) -> Places:
    block["rounds"][0]["after"]["throttle_reasons"] = 0x40
    return ("/mkframe/cells/0/outcome",)


@own
def _a_round_of_no_case(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["rounds"]))
    block["rounds"][index]["set"] = "elsewhere"
    return (f"/mkframe/rounds/{index}",)


@own_doubt
def _rounds_without_clocks(_: Document, block: Document, __: Random) -> Places:
    del block["rounds"][::2]
    return ("/mkframe/rounds",)


@own
def _a_floor_by_no_clock(_: Document, block: Document, random: Random) -> Places:
    index = random.randrange(len(block["timing"]["floors"]))
    block["timing"]["floors"][index]["clock"] = "sundial"
    return (f"/mkframe/timing/floors/{index}/clock",)


@own
def _floors_of_one_process(_: Document, block: Document, __: Random) -> Places:
    block["timing"]["floors"] = [floor for floor in block["timing"]["floors"] if floor["process"] == 0]
    return ("/mkframe/timing/floors",)


@own
def _a_floor_whose_host_is_inside(_: Document, block: Document, __: Random) -> Places:
    index = next(i for i, floor in enumerate(block["timing"]["floors"]) if floor["clock"] == "host")
    _scaled(block["timing"]["floors"][index]["summary"], 1e-3)
    return (f"/mkframe/timing/floors/{index}",)


@own
def _faster_than_nothing(_: Document, block: Document, __: Random) -> Places | None:
    if block["timing"]["protocol"] != "per_call":
        return None
    for floor in block["timing"]["floors"]:
        _scaled(floor["summary"], 1e3)
    return ("/development", "/assessment")


@own_doubt
def _faster_than_an_empty_kernel(_: Document, block: Document, __: Random) -> Places:
    for floor in block["timing"]["floors"]:
        if floor["name"] != "empty-pair":
            _scaled(floor["summary"], 1e3)
    return ("/development", "/assessment")


@own
def _prose_of_more_rounds(document: Document, block: Document, __: Random) -> Places:
    rounds = block["timing"]["rounds"]
    document["limitations"] = [text.replace(f"{rounds} rounds of", f"{10 * rounds} rounds of") for text in document["limitations"]]
    return ("/limitations",)


@own
def _more_cells_passed_than_there_are(document: Document, _: Document, __: Random) -> Places:
    document["source_replay_checks"] = "999 of 999 cells passed."
    return ("/source_replay_checks",)


@own_doubt
def _uncommitted_changes(_: Document, block: Document, __: Random) -> Places:
    block["environment"]["source_dirty"] = True
    return ("/mkframe/environment",)


@own_doubt
def _one_hash_for_every_file(document: Document, _: Document, random: Random) -> Places:
    document["source_sha256"] = dict.fromkeys(document["source_sha256"], hexadecimal(random))
    return ("/source_sha256",)


@own_doubt
def _nothing_to_be_ranked_against(_: Document, block: Document, __: Random) -> Places:
    for cell in block["cells"]:
        cell["baseline"] = False
    block["verdicts"] = []
    return ("=/mkframe/verdicts",)


@own_doubt
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
