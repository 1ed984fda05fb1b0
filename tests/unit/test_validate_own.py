"""What a report of ours is held to beyond the planted faults."""

import copy
import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import pytest
from compare_reports import samples, settle
from comparison_mutants import GRAPH, ours
from hypothesis import given
from hypothesis import strategies as st
from own_mutants import with_rates
from plan_fakes import GPU

from mkframe.canonical import digest, is_digest
from mkframe.errors import ConfigError
from mkframe.model.checks import all_checks
from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import ITEM_BYTES
from mkframe.plan.timing import timing_plan
from mkframe.plugin.loader import load_registry
from mkframe.settings.nodes import Config, TimingConfig
from mkframe.settings.typed import typed
from mkframe.validate import check_document

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "outputs" / "published"
Document = dict[str, Any]


def _published(name: str = "residual-mlp-baselines-h200-per-call") -> Document:
    loaded: Document = json.loads((PUBLISHED / name / "report.json").read_text(encoding="utf-8"))
    return loaded


def _errors(document: Document) -> list[tuple[str, str]]:
    return [(found.rule, found.pointer) for found in check_document(document).findings if found.severity == "E"]


# Shapes ---------------------------------------------------------------------------------------------------------------------------


def _with_depth(shape: Document) -> Document:
    return shape | {"depth": 1}


def _as_float(shape: Document) -> Document:
    return {name: float(size) for name, size in shape.items()}


@pytest.mark.parametrize("write", [_with_depth, _as_float])
@pytest.mark.parametrize("where", ["lists", "cells"])
def test_a_shape_written_in_another_way_is_the_same_shape(write: Any, where: str) -> None:
    honest = with_rates(_published(), cold=False)
    impossible = with_rates(_published(), cold=False, peak_flops=1.0)
    for document in (honest, impossible):
        for item in (*document["development"], *document["assessment"]) if where == "lists" else document["mkframe"]["cells"]:
            item["shape"] = write(item["shape"])
    assert _errors(honest) == []
    assert len([rule for rule, _ in _errors(impossible) if rule == "impossible-rate"]) == len(impossible["mkframe"]["cells"])


class _Counted(int):
    """A size that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        _Counted.hashed += 1
        return super().__hash__()


def _hashes(engines: int) -> int:
    """How often a size is hashed where a case has so many engines, and the block one cell."""
    document = _published()
    case = document["development"][0]
    engine, result = next(iter(case["engines"].items()))
    case["shape"] = {"rows": _Counted(3)}
    case["engines"] = {engine: result} | {f"e{index}": result for index in range(engines)}
    document["development"], document["mkframe"]["cells"] = [case], document["mkframe"]["cells"][:1]
    _Counted.hashed = 0
    check_document(document, without={"schema", "samples", "rates", "impossible-rate", "above-measured-peak"})
    return _Counted.hashed


def test_a_shape_is_looked_at_once_for_its_case_and_not_for_each_engine() -> None:
    assert 0 < _hashes(200) == _hashes(2)


# Verdicts -------------------------------------------------------------------------------------------------------------------------


def _one_process(ratio: float, low: float, high: float, word: str, reason: str | None) -> list[tuple[str, str]]:
    """The errors of verdicts where one process measured, and the first loss has this ratio."""
    document = _published()
    block = document["mkframe"]
    block["timing"] |= {"processes": 1, "round_process": [0] * 6}
    block["timing"]["floors"] = [floor for floor in block["timing"]["floors"] if floor["process"] == 0]
    verdict = block["verdicts"][0]
    engines = document[verdict["set"]][verdict["case"]]["engines"]
    p50_ms = engines[verdict["baseline"]]["stream_summary"]["p50_ms"] * ratio
    engines[verdict["engine"]]["stream_summary"]["p50_ms"] = p50_ms
    cell = next(c for c in block["cells"] if (c["set"], c["case"], c["engine"]) == tuple(verdict[k] for k in ("set", "case", "engine")))
    cell["interval"] = {"low_ms": p50_ms * (1 - 1e-4), "high_ms": p50_ms * (1 + 1e-4)}
    base = next(c for c in block["cells"] if (c["set"], c["case"], c["engine"]) == tuple(verdict[k] for k in ("set", "case", "baseline")))
    base["interval"] = {"low_ms": p50_ms / ratio * (1 - 1e-4), "high_ms": p50_ms / ratio * (1 + 1e-4)}
    verdict |= {"verdict": word, "reason": reason, "ratio": ratio, "ratio_low": low, "ratio_high": high}
    return [(rule, pointer) for rule, pointer in _errors(document) if rule == "verdict-word" and pointer.startswith("/mkframe/verdicts/0")]


_ONE = "one process decides nothing below 5 %"


@pytest.mark.parametrize(
    ("ratio", "word", "reason", "holds"),
    [
        (1.2, "SLOWER", None, True),
        (1.2, "UNDECIDED", "the intervals of the medians overlap", False),
        (1.04, "SLOWER", None, False),
        (1.04, "UNDECIDED", _ONE, True),
        (1.2, "UNDECIDED", _ONE, False),
        (1.0005, "SAME", None, False),
    ],
)
def test_one_process_ranks_nothing_below_five_percent(ratio: float, word: str, reason: str | None, holds: bool) -> None:
    assert (_one_process(ratio, ratio * 0.9995, ratio * 1.0005, word, reason) == []) is holds


# The hash of the configuration ----------------------------------------------------------------------------------------------------


def _rounded(node: Any) -> Any:
    """As jq 1.6 and others write numbers: whole ones without a point."""
    if isinstance(node, dict):
        return {key: _rounded(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_rounded(value) for value in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node


@pytest.mark.parametrize("name", [path.parent.name for path in sorted(PUBLISHED.glob("*/report.json"))])
def test_a_report_that_another_program_wrote_again_is_the_same(name: str) -> None:
    document = _rounded(_published(name))
    assert document["mkframe"]["config"]["timing"]["cell_timeout_s"].__class__ is int
    assert _errors(document) == []
    document["mkframe"]["config"]["device"]["index"] = 7
    assert _errors(document) == [("config-hash", "/mkframe/config_sha256")]


def test_equal_numbers_are_equal_to_the_hash_whichever_was_hashed() -> None:
    for one, other in itertools.product(({"a_s": 1}, {"a_s": 1.0}), repeat=2):
        assert is_digest(digest(one), other)
    assert is_digest(digest({"tiles": [1, 2]}), {"tiles": [1.0, 2.0]})
    assert not is_digest(digest({"a": 1}), {"a": True})
    assert not is_digest(digest({"a_s": 1}), {"a_s": 1.5})


@given(
    st.dictionaries(st.sampled_from([*"abcdefgh", "delay_us", "warm_s"]), st.integers(-3, 10**9) | st.floats(-3, 3).map(round).map(float)),
    st.sampled_from([2, 4.0]),
    st.sampled_from([int, float]),
)
def test_options_are_equal_whatever_their_types(options: dict[str, float], factor: float, spelt: type) -> None:
    rows = {"start": 1, "stop": 16, "factor": factor}
    config = {"engine": {"mine": {"options": options}}, "shape": {"grid": {"rows": rows}}, "k1": 20}
    stated = digest(config)
    config = json.loads(json.dumps(config), parse_int=float if spelt is float else int)
    if spelt is int:
        config = _rounded(config)
    assert is_digest(stated, config)
    config["k1"] = 21
    assert not is_digest(stated, config)


# Facts ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_90a", "9.0", True),
        ("sm_90", "9.0", True),
        ("sm_86", "8.7", True),
        ("sm_80", "8.9", True),
        ("sm_89", "8.6", False),
        ("sm_90a", "9.1", False),
        ("sm_80", "9.0", False),
        ("sm_100a", "10.0", True),
        ("sm_100a", "12.0", False),
        ("sm_120a", "12.0", True),
        ("sm_12", "1.2", True),
        ("sm_12", "12.0", False),
        ("sm_", "9.0", False),
        ("sm_90a", "nine", False),
        ("sm_90a", "9." + "0" * 5000, False),
        (90, "9.0", False),
    ],
)
def test_a_kernel_is_for_an_architecture_that_the_device_runs(arch: Any, capability: str, runs: bool) -> None:
    document = _published()
    block = document["mkframe"]
    block["device"]["compute_capability"] = capability
    cell = next(cell for cell in block["cells"] if cell["kernels"])
    launch = cell["kernels"][0]
    cell["facts"]["compiled"] = [{"arch": arch, "registers": launch["registers"], "shared_bytes": launch["shared_bytes"]}]
    assert ("facts" in [rule for rule, _ in _errors(document)]) is not runs


def test_facts_and_files_of_third_parties_engines_are_free() -> None:
    document = _published()
    for cell in document["mkframe"]["cells"]:
        cell["implementation"] = "elsewhere.engines:Fast"
        cell["facts"] |= {"torch": "mine", "compiled": "yes"}
    assert _errors(document) == []


# Chains ---------------------------------------------------------------------------------------------------------------------------


def test_what_ships_with_mkframe_is_as_the_rule_for_chains_takes_it() -> None:
    """No built-in engine lets calls overlap, and the cost of built-in workloads counts every byte of a set."""
    registry = load_registry()
    assert not any(loaded.plugin.overlaps for loaded in registry.engines.values() if loaded.origin == "built-in")
    workload = registry.workloads["residual_mlp"].plugin
    for sizes in ({"rows": 3, "channels": 7, "hidden": 13}, {"rows": 16, "channels": 64, "hidden": 128, "depth": 3}):
        for name in workload.precisions:
            case, precision = workload.Case(**sizes), PRECISIONS[name]
            assert workload.cost(case, precision).bytes == sum(spec.bytes for spec in workload.tensors(case, precision).values())


# Honest reports -------------------------------------------------------------------------------------------------------------------

_ENGINES = ("torch-cublas", "torch-cublas-graph", "persistent", GRAPH, "conventional")
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: not value.is_integer())
"""A report may write 3 as 3.0, and a configuration may not."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FRACTIONS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
LAUNCHES = [launch for cell in _published()["mkframe"]["cells"] for launch in cell["kernels"] or ()]
_OTHER_ENDS = ("unsupported", "incorrect", "crashed", "timeout", "oom", "incomplete")


def _honest(random: Random) -> Document:
    """A report of ours over one or two cases, with cells of every end, one to three processes, both devices, every protocol."""
    processes = random.randint(1, 3)
    process = [index * processes // 6 for index in range(6)]
    on_cpu = random.random() < 0.3
    protocol = "per_call" if on_cpu else random.choice(["per_call", "replay", "unrolled", "cold"])
    engines = [name for name in _ENGINES if random.random() < 0.8 and not (on_cpu and name.endswith("-graph"))] or ["persistent"]
    cells: dict[tuple[int, str], Any] = {}
    for case in range(random.randint(1, 2)):
        for engine in engines:
            times = samples(random.uniform(8, 40), random.randrange(2**30), process=process, spread=random.choice([0.0, 0.002, 0.03]))
            cells[case, engine] = times if random.random() < 0.8 else random.choice(_OTHER_ENDS)
    if all(isinstance(value, str) for value in cells.values()):
        cells[0, engines[0]] = samples(20.0, 1, process=process)
    made = ours(cells, process)
    block = made["mkframe"]
    made["timing"] = block["timing"]["protocol"] = protocol
    block["timing"]["cache_state"] = "cold" if protocol == "cold" else "warm"
    if on_cpu:
        block["device"] |= dict.fromkeys(("uuid", "compute_capability", "multiprocessors", "l2_bytes", "driver", "cuda"))
        block["device"] |= {"kind": "cpu", "card": None, "threads": 2}
        block["timing"]["hold"] = False
        block["timing"]["floors"] = [floor | {"name": "empty-call"} for floor in block["timing"]["floors"] if floor["name"] == "empty-pair"]
        for cell in block["cells"]:
            cell["late_samples"] = None
    chained = protocol == "unrolled"
    if chained:
        block["config"]["timing"] |= {"k1": 20, "slope_us": 200.0, "sets": 4}
    for cell in block["cells"]:
        if cell["engine"] == GRAPH and cell["outcome"] != "unsupported":
            launch = copy.deepcopy(random.choice(LAUNCHES))
            cell["kernels"], cell["nodes"] = [launch], [launch["name"]]
            code = {"name": "mlp", "arch": random.choice(["sm_90", "sm_90a"])}
            cell["facts"] = {**cell["facts"], "compiled": [code | {key: launch[key] for key in ("registers", "shared_bytes")}]}
        if cell["outcome"] != "unsupported":
            cell["checks"] = list(all_checks(block["device"]["kind"], chained=chained))
        if cell["outcome"] == "passed" and chained:
            cell["facts"] = {**cell["facts"], "k1": 20, "k2": 60, "sets": 4, "edges": "full"}
    if random.random() < 0.3:
        for key in ("rates", "kernels", "twin"):
            for cell in block["cells"]:
                del cell[key]
        del block["device"]["peaks"]
        made["recorded_on"] = "2026-11-30"
    return settle(made)


def test_honest_reports_of_ours_raise_no_alarm() -> None:
    random = Random(20261201)
    alarms = {}
    for index in range(120):
        made = _honest(random)
        if found := _errors(made):
            alarms[index] = found
    assert alarms == {}


def test_no_sentence_of_an_honest_report_can_be_left_out_changed_or_added() -> None:
    """One at a time, in reports of every protocol, device and end."""
    random = Random(20261202)
    tried = set()
    for made in filter(_is_newer, (_honest(random) for _ in range(60))):
        told = made["limitations"]
        index = random.randrange(len(told))
        at = random.randrange(len(told[index]))
        changed = told[index][:at] + "#" + told[index][at + 1 :]
        for place, other in (
            ("/limitations", told[:index] + told[index + 1 :]),
            (f"/limitations/{index}", [*told[:index], changed, *told[index + 1 :]]),
            (f"/limitations/{len(told)}", [*told, told[index]]),
            (f"/limitations/{len(told)}", [*told, changed]),
        ):
            assert ("limitations", place) in _errors(made | {"limitations": other}), (index, other)
        tried.add(told[index].split()[0])
        checked = made["source_replay_checks"]
        assert _errors(made | {"source_replay_checks": f"{checked} "}) == [("limitations", "/source_replay_checks")]
    assert len(tried) > 5


def _is_newer(made: Document) -> bool:
    return "rates" in made["mkframe"]["cells"][0]


def test_words_of_an_earlier_version_stand_in_reports_of_its_days_alone() -> None:
    document = _published()
    index = next(i for i, text in enumerate(document["limitations"]) if "intervals resample processes" in text)
    assert _errors(document) == []
    assert _errors(document | {"recorded_on": "2026-12-01"}) == [("limitations", f"/limitations/{index}")]
    document["limitations"][index] = "Rounds are spread over 3 processes; intervals are Student's t over the processes' medians."
    assert _errors(document) == _errors(document | {"recorded_on": "2026-12-01"}) == []


@pytest.mark.parametrize("contract", sorted(PRECISIONS))
def test_a_precision_is_told_in_the_words_of_its_contract(contract: str) -> None:
    document = _published()
    block = document["mkframe"]
    block["precision"] = block["config"]["precision"] = asdict(PRECISIONS[contract])
    block["config_sha256"] = digest(block["config"])
    document["precision"] = {
        "fp16": "FP16 input/weights; FP16 hidden state; FP32 accumulation, FP32 bias and FP32 output",
        "bf16": "BF16 input/weights; BF16 hidden state; FP32 accumulation, FP32 bias and FP32 output",
        "fp32": "FP32 input/weights; FP32 hidden state; FP32 accumulation, FP32 bias and FP32 output",
        "tf32": "TF32 products of FP32 input/weights; FP32 hidden state; FP32 accumulation, FP32 bias and FP32 output",
    }[contract]
    of_it = [found for found in _errors(document) if found[0] == "precision"]
    assert of_it == []
    document["precision"] = document["precision"].replace("accumulation", "sums")
    assert [found for found in _errors(document) if found[0] == "precision"] == [("precision", "/precision")]


def _mine(**dtypes: str) -> Document:
    """Our published report under a contract of one's own; its words are still those of the published one's dtypes."""
    document = _published()
    block = document["mkframe"]
    block["precision"] |= {"id": "mine", **dtypes}
    document["precision"] = document["precision"].replace("FP16", "MINE", 1)
    block["config"]["precision"] = dict(block["precision"])
    block["config_sha256"] = digest(block["config"])
    return document


def test_a_dtype_that_does_not_exist_is_told_by_the_settings_alone() -> None:
    found = [found for found in _errors(_mine(hidden="float8")) if "precision" in found[1]]
    assert found == [("settings", "/mkframe/config/precision/hidden")]


@pytest.mark.parametrize("dtype", ITEM_BYTES)
def test_every_dtype_of_a_tensor_has_words(dtype: str) -> None:
    told = replace(PRECISIONS["fp16"], id="mine", output=dtype).describe()
    assert told.startswith("MINE input/weights; FP16 hidden state; FP32 accumulation, FP32 bias and ")


@pytest.mark.parametrize(("dtype", "words"), [("float64", "FP64"), ("int32", "INT32"), ("int64", "INT64")])
def test_a_contract_of_wider_dtypes_has_words_too(dtype: str, words: str) -> None:
    document = _mine(accumulate=dtype)
    assert ("precision", "/precision") in _errors(document)
    document["precision"] = document["precision"].replace("FP32 accumulation", f"{words} accumulation")
    assert [found for found in _errors(document) if found[0] in ("precision", "settings")] == []


def test_the_order_of_keys_means_nothing() -> None:
    document = json.loads(json.dumps(_published(), sort_keys=True))
    assert _errors(document) == []


# Configurations -------------------------------------------------------------------------------------------------------------------


@given(st.sampled_from(sorted(_published()["mkframe"]["config"])), JSON)
def test_any_part_of_a_configuration_is_either_read_or_told_at_its_place(part: str, value: Any) -> None:
    """Whatever stands in a part: what `typed` takes is silent, and what it refuses is one finding, at that part or below it."""
    document = _published()
    config = document["mkframe"]["config"]
    config[part] = value
    found = [finding for finding in check_document(document).findings if finding.rule == "settings"]
    try:
        typed(str if part == "targets" else get_type_hints(Config)[part], value, part)
    except ConfigError:
        assert len(found) == 1
    assert all(finding.pointer.startswith(f"/mkframe/config/{part}") for finding in found)


@given(st.sampled_from(sorted(_published()["mkframe"]["config"]["timing"])), JSON)
def test_what_a_run_refuses_of_its_timing_a_report_does_not_hold(key: str, value: Any) -> None:
    """The rule and a run decide alike, for every key and value."""
    document = _published()
    config = document["mkframe"]["config"]
    config["timing"][key] = value
    try:
        timing_plan(typed(TimingConfig, config["timing"], "timing"), GPU)
        accepted = True
    except ConfigError:
        accepted = False
    found = [finding for finding in check_document(document).findings if finding.rule == "settings"]
    assert (found == []) is accepted
