"""validate: energy reports. The recorded one, paper ones of every kind, and for each rule a report that only this rule finds fault with."""

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from energy_reports import HASH, Document, Plan, report, summary
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.validate import Finding, Severity, check_document
from mkframe.validate.energy_figures import with_uncertainty
from mkframe.validate.energy_parts import MAX_FINDINGS
from mkframe.validate.energy_provenance import indented
from mkframe.validate.energy_rules import ENERGY_RULES
from mkframe.validate.rule import Subject

RECORDED: Document = json.loads((Path(__file__).parent.parent / "data/valid/qda-energy-a100.json").read_text())
RULES = {rule.id: rule for rule in ENERGY_RULES}
Edit = Callable[[Document], None]


def found(document: Document, severity: Severity | None = None, **options: Any) -> list[Finding]:
    return [one for one in check_document(document, **options).findings if severity in (None, one.severity)]


def errors(document: Document, **options: Any) -> list[Finding]:
    return found(document, Severity.ERROR, **options)


def rules(findings: list[Finding]) -> set[str]:
    return {one.rule for one in findings}


def edited(document: Document, edit: Edit) -> Document:
    changed = copy.deepcopy(document)
    edit(changed)
    return changed


def put(value: Any, *path: str | int) -> Edit:
    """Replaces the value at a path."""

    def edit(document: Document) -> None:
        node: Any = document
        for token in path[:-1]:
            node = node[token]
        node[path[-1]] = value

    return edit


def rehashed(edit: Edit) -> Edit:
    """Makes the manifest's hash that of the edited manifest."""

    def whole(document: Document) -> None:
        edit(document)
        text = json.dumps(document["provenance"]["payload_manifest"], indent=2) + "\n"
        document["provenance"]["payload_manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()

    return whole


def summed(edit: Edit) -> Edit:
    """Makes the summary that of the edited rounds."""

    def whole(document: Document) -> None:
        edit(document)
        document["summary"] = summary(document["rounds"])

    return whole


def scaled(factor: float, *path: str | int) -> Edit:
    def edit(document: Document) -> None:
        node: Any = document
        for token in path[:-1]:
            node = node[token]
        node[path[-1]] *= factor

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(document: Document) -> None:
        for one in edits:
            one(document)

    return edit


def warmer_idle(document: Document) -> None:
    """An idle power that is not that of its reads, used consistently from there on."""
    one = document["rounds"][0]
    one["idle_after"]["power_w"] *= 1.001
    settle(one)


def settle(one: Document) -> None:
    """Copies and net energy of a round from the powers of its idle windows."""
    one["idle_before_w"], one["idle_after_w"] = one["idle_before"]["power_w"], one["idle_after"]["power_w"]
    start, end = one["measurement_start"], one["measurement_end"]
    idle_mj = 0.5 * (one["idle_before_w"] + one["idle_after_w"]) * (end["time_s"] - start["time_s"]) * 1000
    one["adjusted_mj"] = (end["energy_mj"] - start["energy_mj"] - idle_mj) / one["repeats"]


def drifted_idle(document: Document) -> None:
    """The last idle window took a tenth more."""
    one = document["rounds"][-1]
    window = one["idle_after"]
    window["end"]["energy_mj"] += 20_000
    moved = window["end"]["energy_mj"] - window["start"]["energy_mj"]
    window["power_w"] = moved / 1000 / (window["end"]["time_s"] - window["start"]["time_s"])
    settle(one)


def earlier_idle(document: Document) -> None:
    for end in ("start", "end"):
        document["rounds"][1]["idle_before"][end]["time_s"] -= 20.0


def twin_payload(document: Document) -> None:
    draws = document["provenance"]["payload_manifest"]["draws"]
    draws[1]["sha256"] = document["validation"]["draws"][1]["payload_sha256"] = draws[0]["sha256"]


def slower_device(document: Document) -> None:
    one = document["rounds"][0]
    one["cuda_ms"] = float(np.float32(one["wall_ms"] * one["repeats"] * 1.01)) / one["repeats"]


def fewer_right(document: Document) -> None:
    document["validation"]["gpu_correct"] -= 1
    document["validation"]["draws"][0]["gpu_correct"] -= 1


def more_right(document: Document) -> None:
    for name in ("gpu_correct", "cpu_correct"):
        document["validation"][name] -= 1


def population_sd(document: Document) -> None:
    document["summary"]["adjusted_mj_sample_sd"] = float(np.std([one["adjusted_mj"] for one in document["rounds"]]))


PLAIN, OURS, EDGES, VALUES = report(draws=3), report(ours=True), report(edges=True), report(values=True)
UNMEASURED = report(verify_only=True, ours=True)
MANIFEST = ("provenance", "payload_manifest")
FIRST = ("rounds", 0)
ERRORS: dict[str, tuple[Document, Edit, str]] = {
    "date": (RECORDED, put("2026-02-30T11:52:24Z", "verified_at_utc"), "/verified_at_utc"),
    "completed": (RECORDED, put("2026-09-15T11:52:23.999Z", "completed_at_utc"), "/completed_at_utc"),
    "manifest-hash": (PLAIN, put(HASH, "provenance", "payload_manifest_sha256"), "/provenance/payload_manifest_sha256"),
    "seed-hashes": (
        PLAIN,
        rehashed(put(HASH, *MANIFEST, "draws", 1, "arrays", "dataset_seed", "sha256")),
        "/provenance/payload_manifest/draws/1/arrays/dataset_seed/sha256",
    ),
    "seeds": (PLAIN, rehashed(put(12, *MANIFEST, "seeds", 1)), "/provenance/payload_manifest/seeds/1"),
    "payload-join": (PLAIN, put(HASH, "validation", "draws", 1, "payload_sha256"), "/validation/draws/1/payload_sha256"),
    "label-counts": (
        PLAIN,
        rehashed(put([49], *MANIFEST, "draws", 1, "arrays", "test_labels", "shape")),
        "/validation/draws/1/total",
    ),
    "once": (PLAIN, rehashed(twin_payload), "/provenance/payload_manifest/draws/1/sha256"),
    "benchmark-join": (PLAIN, put(HASH, "provenance", "benchmark_payload_sha256"), "/provenance/benchmark_payload_sha256"),
    "totals": (PLAIN, more_right, "/validation/gpu_correct"),
    "labels": (PLAIN, fewer_right, "/validation/draws/0/gpu_correct"),
    "mismatches": (PLAIN, put([3], "validation", "draws", 2, "mismatching_prediction_indices"), "/validation/draws/2"),
    "values": (VALUES, put(1.0, "validation", "draws", 0, "mean_abs_error"), "/validation/draws/0/mean_abs_error"),
    "flags": (PLAIN, put(False, "validation", "draws", 0, "graph_replays_equal_eager", 1), "/validation/all_graph_replays_equal_eager"),
    "passed": (PLAIN, put(False, "validation", "passed"), "/validation/passed"),
    "reads": (PLAIN, earlier_idle, "/rounds/1/idle_before/start/time_s"),
    "midpoints": (PLAIN, put(0.01, *FIRST, "measurement_end", "read_duration_s"), "/rounds/0/idle_after/start/time_s"),
    "gross": (PLAIN, summed(scaled(1 + 1e-9, *FIRST, "gross_mj")), "/rounds/0/gross_mj"),
    "wall": (PLAIN, summed(scaled(1 + 1e-9, *FIRST, "wall_ms")), "/rounds/0/wall_ms"),
    "average-power": (PLAIN, scaled(1 + 1e-9, *FIRST, "average_power_w"), "/rounds/0/average_power_w"),
    "idle-power": (PLAIN, summed(warmer_idle), "/rounds/0/idle_after/power_w"),
    "idle-copies": (PLAIN, scaled(1 + 1e-9, *FIRST, "idle_before_w"), "/rounds/0/idle_before_w"),
    "adjusted": (PLAIN, summed(scaled(-1.0, *FIRST, "adjusted_mj")), "/rounds/0/adjusted_mj"),
    "cuda-time": (PLAIN, summed(scaled(1 + 1e-9, *FIRST, "cuda_ms")), "/rounds/0/cuda_ms"),
    "two-clocks": (PLAIN, summed(slower_device), "/rounds/0/wall_ms"),
    "run-lengths": (EDGES, put({}, "mkframe", "energy", "rounds", 1), "/rounds/1"),
    "summary": (PLAIN, scaled(1.001, "summary", "cuda_ms_median"), "/summary/cuda_ms_median"),
    "spread": (PLAIN, population_sd, "/summary/adjusted_mj_sample_sd"),
    "negatives": (PLAIN, put(1, "summary", "negative_adjusted_rounds"), "/summary/negative_adjusted_rounds"),
    "summary-presence": (PLAIN, put(None, "summary"), "/summary"),
    "block-figures": (OURS, scaled(1.001, "mkframe", "energy", "net_mj"), "/mkframe/energy/net_mj"),
    "block-verdict": (OURS, put("resolved", "mkframe", "energy", "verdict"), "/mkframe/energy/verdict"),
    "block-status": (UNMEASURED, put(1.0, "mkframe", "energy", "net_mj"), "/mkframe/energy/net_mj"),
    "invalid-rounds": (OURS, put(1, "mkframe", "invalid_rounds", 0, "round"), "/mkframe/invalid_rounds/0/round"),
    "block-timing": (OURS, put(7, "mkframe", "timing", "rounds"), "/mkframe/timing/stream_summary/count"),
    "unknown-key": (OURS, put(1, "rounds", 0, "nite"), "/rounds/0/nite"),
}
"""A report, what is done to it, and where it is found."""

SAID: dict[str, tuple[Document, str]] = {
    "opaque-hashes": (PLAIN, "/provenance"),
    "granularity": (report(net_w=0.1), "/rounds/0/adjusted_mj"),
    "net-power": (report(net_w=0.1), "/rounds"),
    "no-sham": (PLAIN, "/rounds"),
    "no-reference": (PLAIN, "/rounds"),
    "idle-drift": (edited(report(rounds=1), summed(drifted_idle)), "/rounds/0"),
    "net-energy": (PLAIN, "/rounds"),
}
"""Rules that doubt or tell: a valid report of which they speak."""


def test_every_rule_has_a_report_that_needs_it() -> None:
    assert len(RULES) == len(ENERGY_RULES)
    assert ERRORS.keys() | SAID.keys() == RULES.keys()
    assert ERRORS.keys() == {id for id, rule in RULES.items() if Severity.ERROR in rule.severities}
    assert all(rule.says and "\n" not in rule.says for rule in ENERGY_RULES)


@pytest.mark.parametrize("id", ERRORS)
def test_a_fault_is_found_by_its_rule_alone(id: str) -> None:
    document, edit, place = ERRORS[id]
    assert errors(document) == []
    wrong = edited(document, edit)
    assert rules(errors(wrong)) == {id}
    assert errors(wrong)[0].pointer.startswith(place)
    assert errors(wrong, without={id}) == []


@pytest.mark.parametrize("id", SAID)
def test_a_doubt_is_said_by_its_rule_alone(id: str) -> None:
    document, place = SAID[id]
    assert errors(document) == []
    said = [one for one in found(document) if one.rule == id]
    assert said
    assert said[0].pointer == place
    assert {one.severity for one in said} == set(RULES[id].severities)
    assert id not in rules(found(document, without={id}))


def test_the_recorded_report_has_no_error_and_exactly_these_doubts() -> None:
    result = check_document(RECORDED)
    assert (result.format, result.exit_code) == ("energy", 0)
    doubts = [(one.rule, one.pointer) for one in found(RECORDED, Severity.WARNING)]
    assert doubts == [
        *(("granularity", f"/rounds/{index}/adjusted_mj") for index in (0, 1, 2, 3, 4, 6)),
        ("net-power", "/rounds"),
        ("no-sham", "/rounds"),
        ("no-reference", "/rounds"),
    ]
    assert Counter(one.rule for one in found(RECORDED, Severity.INFORMATION)) == {"opaque-hashes": 1, "net-energy": 1}
    message = next(one.message for one in found(RECORDED) if one.rule == "net-energy")
    for words in ("0.011 +- 0.006 mJ", "unverified", "6 of 7 rounds", "98.96 to 98.985 ms", "99.33 to 99.35 ms", "0.0171 mJ"):
        assert words in message
    assert "1.576 %" in next(one.message for one in found(RECORDED) if one.rule == "net-power")


def test_every_figure_of_the_recorded_report_is_rebuilt_without_any_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mkframe.validate.energy_parts.RELATIVE", 0.0)
    for module in ("energy_rounds", "energy_summary"):
        monkeypatch.setattr(f"mkframe.validate.{module}.RELATIVE", 0.0)
    assert errors(RECORDED) == []


KINDS: dict[str, tuple[Edit, str]] = {
    "gross": (scaled(1 + 1e-6, "rounds", 0, "gross_mj"), "/rounds/0"),
    "idle copy": (put(39.5, "rounds", 4, "idle_before_w"), "/rounds/4"),
    "sign": (scaled(-1, "rounds", 0, "adjusted_mj"), "/rounds/0"),
    "median": (put(0.0163, "summary", "cuda_ms_median"), "/summary"),
    "population sd": (population_sd, "/summary"),
    "clock back": (
        lambda document: document["rounds"][3]["idle_after"]["start"].update(
            time_s=document["rounds"][3]["idle_after"]["start"]["time_s"] - 1
        ),
        "/rounds/3",
    ),
    "counter back": (put(0, "rounds", 3, "measurement_end", "energy_mj"), "/rounds/3"),
    "sum": (put(7466, "validation", "gpu_correct"), "/validation"),
    "replay flag": (put(False, "validation", "draws", 5, "graph_replays_equal_eager", 1), "/validation"),
    "draw left out": (lambda document: document["validation"]["draws"].pop(4), "/validation"),
    "manifest hash": (put("0" * 64, "provenance", "payload_manifest_sha256"), "/provenance"),
    "benchmark": (put("3" * 64, "provenance", "benchmark_payload_sha256"), "/provenance"),
    "benchmark seed": (put(3, "provenance", "benchmark_dataset_seed"), "/provenance/benchmark_dataset_seed"),
    "no repeats": (put(0, "rounds", 0, "repeats"), "/rounds/0"),
    "no length": (lambda document: document["rounds"][0].update(measurement_end=document["rounds"][0]["measurement_start"]), "/rounds/0"),
    "round twice": (put(2, "rounds", 3, "round"), "/rounds/3/round"),
    "draw twice": (put(0, "validation", "draws", 3, "draw"), "/validation/draws/3/draw"),
    "seed": (put(1, "provenance", "payload_manifest", "draws", 2, "dataset_seed"), "/provenance"),
    "null cuda median": (put(None, "summary", "cuda_ms_median"), "/summary/cuda_ms_median"),
    "null spread": (put(None, "summary", "adjusted_mj_sample_sd"), "/summary/adjusted_mj_sample_sd"),
    "no rounds": (put([], "rounds"), "/summary"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_planted_into_the_recorded_report_is_found_at_its_place(kind: str) -> None:
    edit, place = KINDS[kind]
    wrong = errors(edited(RECORDED, edit))
    assert any(one.pointer.startswith(place) for one in wrong), wrong


PLANS = st.builds(
    Plan,
    seed=st.integers(0, 10**6),
    rounds=st.integers(1, 8),
    repeats=st.sampled_from([1, 7, 1000, 123_457, 10**6]),
    draws=st.integers(1, 4),
    labels=st.integers(3, 40),
    differing=st.sampled_from([0, 0, 1, 2]),
    ties=st.integers(0, 2),
    run_s=st.floats(0.3, 20),
    idle_s=st.floats(1, 8),
    idle_w=st.floats(10, 200),
    net_w=st.floats(-9, 500),
    period_s=st.floats(0.02, 0.11),
    values=st.booleans(),
    cpu=st.booleans(),
    ours=st.booleans(),
    edges=st.booleans(),
    finished=st.booleans(),
    verify_only=st.sampled_from([False, False, False, True]),
)


@settings(max_examples=150)
@given(PLANS)
def test_a_valid_report_of_any_kind_has_no_error(plan: Plan) -> None:
    assert errors(report(plan)) == []


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_another_order_of_evaluation_is_no_error(seed: int) -> None:
    document = report(seed=seed)
    for one in document["rounds"]:
        start, end = one["measurement_start"], one["measurement_end"]
        moved, length = float(end["energy_mj"] - start["energy_mj"]), end["time_s"] - start["time_s"]
        one["average_power_w"] = moved / (1000 * length)
        one["wall_ms"] = 1000 / one["repeats"] * length
        one["gross_mj"] = 1 / one["repeats"] * moved
        one["adjusted_mj"] = one["gross_mj"] - (one["idle_before_w"] / 2 + one["idle_after_w"] / 2) * one["wall_ms"]
    document["summary"] = summary(document["rounds"])
    assert errors(document) == []


def test_host_times_may_be_200_ppm_less_than_the_device_s() -> None:
    def slower(ppm: float, document: Document) -> None:
        one = document["rounds"][0]
        one["cuda_ms"] = float(np.float32(one["wall_ms"] * one["repeats"] * (1 + ppm * 1e-6))) / one["repeats"]

    near, far = (found(edited(PLAIN, summed(partial(slower, ppm)))) for ppm in (150, 250))
    assert [one.severity for one in near if one.rule == "two-clocks"] == [Severity.WARNING]
    assert [one.severity for one in far if one.rule == "two-clocks"] == [Severity.ERROR]


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("equal", [True, False])
def test_replays_count_where_values_are_compared_and_no_total_names_them(stated: bool, equal: bool) -> None:
    changed = copy.deepcopy(VALUES)
    for draw in changed["validation"]["draws"]:
        draw["graph_replays_equal_eager"] = [True, equal]
    changed["validation"]["passed"] = stated
    assert [finding.rule for finding in check_document(changed).findings if finding.severity == "E"] == ["passed"] * (stated is not equal)


def test_an_unknown_key_is_a_doubt_of_others_and_an_error_of_ours() -> None:
    for place in ((), ("hardware",), ("validation", "draws", 0), ("rounds", 1, "idle_after", "end"), ("summary",)):
        pointer = "".join(f"/{token}" for token in (*place, "more"))
        for document, severity in ((PLAIN, Severity.WARNING), (OURS, Severity.ERROR)):
            said = [one for one in found(edited(document, put(1, *place, "more"))) if one.rule == "unknown-key"]
            assert [(one.severity, one.pointer) for one in said] == [(severity, pointer)]
    assert rules(errors(edited(OURS, put({"any": 1}, "mkframe", "session")))) == set()
    assert rules(errors(edited(EDGES, put(1, "mkframe", "energy", "rounds", 0, "settle_s")))) == set()


def test_a_shared_idle_window_must_be_the_same_in_both_rounds() -> None:
    wrong = edited(EDGES, scaled(1.0, "rounds", 1, "idle_before", "start", "energy_mj"))
    assert errors(wrong) == []
    wrong["rounds"][1]["idle_before"]["start"]["time_s"] += 0.001
    assert "reads" in rules(errors(wrong))


def test_uncertainty_and_verdict_of_our_block_are_rebuilt() -> None:
    document = copy.deepcopy(EDGES)
    energy = document["mkframe"]["energy"]
    net = energy["net_mj"]
    said = next(one.message for one in found(document) if one.rule == "net-energy")
    assert "unverified" in said
    energy |= {"u_mj": 100.0, "verdict": "below_resolution", "sham_mj": 0.0}
    assert [one.pointer for one in errors(document)] == ["/mkframe/energy/u_mj"]
    rebuilt = float(errors(document)[0].message.rpartition(" is ")[2])
    energy |= {"u_mj": rebuilt, "verdict": "resolved"}
    assert errors(document) == []
    energy["sham_mj"] = net / 2
    assert [one.pointer for one in errors(document)] == ["/mkframe/energy/verdict"]
    energy |= {"reference": "joules per TFLOP off by 20 %", "verdict": "meter_fault"}
    assert errors(document) == []


def test_a_fault_of_the_meter_overrides_every_figure() -> None:
    document = edited(EDGES, put("meter_fault", "mkframe", "energy", "verdict"))
    assert errors(document) == []
    assert ", meter_fault;" in next(one.message for one in found(document) if one.rule == "net-energy")


@pytest.mark.parametrize(("percent", "expected"), [(1, False), (10, True)])
def test_idle_windows_on_edges_may_differ_by_an_update_too(percent: int, expected: bool) -> None:
    document = report(edges=True, rounds=1)
    window = document["rounds"][0]["idle_after"]
    moved = window["end"]["energy_mj"] - window["start"]["energy_mj"]
    window["end"]["energy_mj"] += moved * percent // 100
    window["power_w"] = (
        (window["end"]["energy_mj"] - window["start"]["energy_mj"]) / 1000 / (window["end"]["time_s"] - window["start"]["time_s"])
    )
    assert ("idle-drift" in rules(found(document))) == expected


def test_a_stated_update_period_is_taken_as_it_is() -> None:
    document = edited(OURS, put(0.02, "mkframe", "energy", "update_period_s"))
    assert "the stated update period of 20 ms" in next(one.message for one in found(document) if one.rule == "net-energy")


def test_no_more_findings_than_a_reader_can_use() -> None:
    many = edited(PLAIN, lambda document: document.update({f"key {index}": 1 for index in range(MAX_FINDINGS + 5)}))
    said = [one for one in found(many) if one.rule == "unknown-key"]
    assert len(said) == MAX_FINDINGS + 1
    assert "the rest is not listed" in said[-1].message


@pytest.mark.parametrize(
    ("net", "u", "said"),
    [
        (0.010957, 0.0055359, "0.011 +- 0.006 mJ"),
        (12.345, 0.96, "12 +- 1 mJ"),
        (-1.26, 0.25, "-1.3 +- 0.2 mJ"),
        (1234.5, 70.0, "1234 +- 70 mJ"),
        (1e30, 1e28, "1e+30 +- 1e+28 mJ"),
        (0.5, None, "0.5 mJ, uncertainty unknown"),
        (0.5, 0.0, "0.5 mJ, uncertainty unknown"),
    ],
)
def test_a_figure_has_the_digits_that_its_uncertainty_leaves(net: float, u: float | None, said: str) -> None:
    assert with_uncertainty(net, u) == said


def places(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, value in items for place in ((*path, key), *places(value, (*path, key)))]


DAMAGED = [report(edges=True, draws=1, rounds=2), report(ours=True, draws=1, rounds=2), report(values=True, draws=1, rounds=1), UNMEASURED]
PLACES = [[(), *places(document)] for document in DAMAGED]
NUMBERS = st.sampled_from([0, -1, 1e308, -1e308, 5e-324, 10**308, -(10**308), 2**63, 1.5]) | st.floats(
    allow_nan=False, allow_infinity=False
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | st.sampled_from(["none", "rapl", "nvml_edge_aligned"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw: st.DrawFn) -> Document:
    """A report with up to five subtrees replaced by any JSON, or gone."""
    which = draw(st.integers(0, len(DAMAGED) - 1))
    document: Any = copy.deepcopy(DAMAGED[which])
    for place in draw(st.lists(st.sampled_from(PLACES[which]), min_size=1, max_size=5)):
        node, value = document, draw(ANY_JSON)
        try:
            for token in place[:-1]:
                node = node[token]
            if place and draw(st.booleans()):
                node[place[-1]] = value
            elif place:
                del node[place[-1]]
        except (KeyError, IndexError, TypeError):  # an earlier replacement has taken the place away
            continue
    return dict(document)


@settings(max_examples=150)
@given(damaged())
def test_no_rule_raises_whatever_a_report_holds(document: Document) -> None:
    for rule in ENERGY_RULES:
        for one in rule.check(Subject(document=document)):
            assert one.message
            assert "\n" not in one.message
            assert one.pointer == "" or one.pointer.startswith("/")


MANIFESTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(MANIFESTS, st.booleans())
def test_a_manifest_is_written_as_json_writes_it(value: Any, escaped: bool) -> None:
    assert indented(value, escaped=escaped) == json.dumps(value, indent=2, ensure_ascii=escaped) + "\n"


@pytest.mark.parametrize("escaped", [True, False])
def test_a_manifest_in_another_alphabet_may_be_escaped_or_not(escaped: bool) -> None:
    document = copy.deepcopy(PLAIN)
    provenance = document["provenance"]
    provenance["payload_manifest"]["source_sha256"] = {"größe.py": HASH}
    text = json.dumps(provenance["payload_manifest"], indent=2, ensure_ascii=escaped) + "\n"
    provenance["payload_manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    assert errors(document) == []
    provenance["payload_manifest"]["source_sha256"] = {"grösse.py": HASH}
    assert rules(errors(document)) == {"manifest-hash"}
