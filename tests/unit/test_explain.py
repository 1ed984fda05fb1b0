"""explain: what the pages of reports and cards say, and that no document of a known format is too broken for one."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from energy_reports import Document, report
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_fakes import HOPPER, FakeGpu

from mkframe.explain import explain
from mkframe.explain.page import LONGEST, MOST
from mkframe.explain.ranking import Case, cases, in_order, undecided_pairs
from mkframe.plan.devices import cpu
from mkframe.probe.cpu import probe_cpu
from mkframe.probe.session import probe_gpu
from mkframe.validate import check_document

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/valid"
COMPARISON: Document = json.loads((DATA / "residual-mlp-rtx3090.json").read_text())
ENERGY: Document = json.loads((DATA / "qda-energy-a100.json").read_text())
OURS: Document = json.loads((ROOT / "outputs/published/residual-mlp-baselines-h200-per-call/report.json").read_text())
GPU = FakeGpu(facts=HOPPER)
CARD: Document = probe_gpu(GPU, rounds=2, now=GPU.now).document()
CPU_CARD: Document = probe_cpu(cpu(), rounds=2, sizes=(2**16, 2**18, 2**20)).document()
TITLES = ["What was measured", "How", "What follows from it", "What does not follow from it", "Findings of validate"]


def page(document: Document) -> dict[str, str]:
    """Title -> its lines in one text."""
    return {section.title: "\n".join(section.lines) for section in explain(document, check_document(document))}


def follows(document: Document) -> str:
    return page(document)["What follows from it"]


def limits(document: Document) -> str:
    return page(document)["What does not follow from it"]


@pytest.mark.parametrize("document", [COMPARISON, ENERGY, OURS, CARD, CPU_CARD, report(), report(verify_only=True), report(edges=True)])
def test_every_page_has_the_same_sections_and_none_is_empty(document: Document) -> None:
    found = page(document)
    assert list(found) == TITLES
    assert all(found.values())
    assert "The file says nothing of it." not in found.values()


def test_the_recorded_energy_report() -> None:
    found = page(ENERGY)
    assert "NVIDIA A100-SXM4-40GB" in found["What was measured"]
    assert "7 rounds of 1,000,000 calls (16.4 s) between idle windows of 5 s" in found["How"]
    assert "98.96 to 98.985 ms, 99.33 to 99.35 ms" in found["How"]
    assert "Energy of a call above idle: 0.011 +- 0.006 mJ" in follows(ENERGY)
    assert "Verdict: unverified" in follows(ENERGY)
    assert "in 6 of 7 the energy above idle is below what the steps" in limits(ENERGY)
    assert "no idle-only run was measured" in limits(ENERGY)
    assert found["Findings of validate"].startswith("0 errors, 9 warnings.")
    assert "and in 5 more places" in found["Findings of validate"]


def test_a_report_that_verifies_alone_measured_nothing() -> None:
    document = report(verify_only=True)
    assert "neither time nor energy was measured" in page(document)["What was measured"]
    assert "above idle" not in follows(document)
    assert "Results are right: 100 of 100 labels agree" in follows(document)


def test_wrong_results_are_said_before_any_figure() -> None:
    lines = follows(report(differing=2)).splitlines()
    assert lines[0] == "Results are WRONG, so no figure below is worth anything: 96 of 100 labels agree"


def test_energies_of_a_load_that_the_meter_sees() -> None:
    document = report(edges=True)
    document["mkframe"]["energy"] |= {"sham_mj": 0.0}
    assert "Verdict: resolved" in follows(document)
    assert "single round" not in limits(document)
    assert "idle-only" not in limits(document)
    assert "edges known to" in page(document)["How"]


def test_the_recorded_comparison() -> None:
    found = page(COMPARISON)
    assert "steps of 1.024 us, seen from the medians" in found["How"]
    assert "the report names none" in found["How"]
    assert "the report does not say it" in found["How"]
    assert "UNDECIDED, no more than one step of the clock apart: 17 pairs of engines in 7 shapes" in follows(COMPARISON)
    assert "persistent-graph 8.22 ~ persistent-global-graph 9.22 < conventional-graph 11.26" in follows(COMPARISON)
    assert "no perception accuracy" in limits(COMPARISON)
    assert "no launch twins were timed" in limits(COMPARISON)


def test_our_own_comparison() -> None:
    found = page(OURS)
    assert "6 rounds of 200 samples over 3 processes" in found["How"]
    assert "Floor, empty-pair: 1.28 us" in found["How"]
    assert "Cache state, as the run says: warm" in found["How"]
    assert "torch-cublas against the fastest baseline of its form: SLOWER 9 times" in follows(OURS)
    assert "All engines of a shape are more than one step of the clock apart" in follows(OURS)


def test_failures_come_first() -> None:
    document = copy.deepcopy(COMPARISON)
    document["assessment"][1]["engines"]["persistent"] = {"passed": False, "replay_changed_input": False}
    lines = follows(document).splitlines()
    assert lines[0] == "persistent did not pass, and has no times: assessment rows=49 channels=48 hidden=96"
    ours = copy.deepcopy(OURS)
    ours["mkframe"]["cells"][0] |= {"outcome": "oom", "reason": "memory ran out"}
    ours["mkframe"]["incomplete"] = True
    assert "torch-cublas: oom: memory ran out (development rows=1 channels=7 hidden=13)" in follows(ours)
    assert "The run ended early" in follows(ours)


def test_launch_twins_say_what_the_kernels_alone_take() -> None:
    document = copy.deepcopy(OURS)
    cell, times = document["mkframe"]["cells"][0], document["development"][0]["engines"]
    whole = times[cell["engine"]]["stream_summary"]
    for other in document["mkframe"]["cells"]:
        other.pop("twin", None)
    cell["twin"] = {"stream_summary": whole | {"p50_ms": whole["p50_ms"] / 4}, "reason": None, "card_ms": None}
    assert "empty kernels of the same launch take 25 to 25 % of the time" in page(document)["How"]
    assert "no launch twins" not in limits(document)


def test_a_card() -> None:
    found = page(CARD)
    assert "Paper 9000 (compute capability 9.0, driver 999.1" in found["What was measured"]
    assert "Memory, read: " in follows(CARD)
    assert "steps of 0.032 us" in follows(CARD)
    assert "not limits of the hardware" in limits(CARD)


def test_errors_are_said_to_spoil_everything() -> None:
    document = copy.deepcopy(ENERGY)
    document["rounds"][0]["gross_mj"] = 1.0
    assert "nothing above is safe to rely on" in page(document)["Findings of validate"]
    assert "E gross at $.rounds[0].gross_mj" in page(document)["Findings of validate"]


def test_the_findings_say_what_was_rebuilt_and_what_was_not() -> None:
    def said(document: Document, strict: bool = False) -> str:
        sections = explain(document, check_document(document), strict=strict)
        return "\n".join(sections[-1].lines)

    assert "NOT rebuilt from samples: a report of others names none" in said(COMPARISON)
    assert "NOT rebuilt from samples: it was not read from a folder" in said(OURS)
    assert "Rebuilt from the samples beside the report: summaries, intervals, ratios and verdicts" in said(OURS, strict=True)
    broken = copy.deepcopy(OURS)
    broken["rounds"] = 0
    assert "NOT rebuilt from samples: the report does not hold to its schema" in said(broken, strict=True)
    one = copy.deepcopy(OURS)
    one["mkframe"]["timing"]["processes"] = 1
    assert "summaries and ratios; the intervals of one process rest on the report's word" in said(one, strict=True)
    old = copy.deepcopy(OURS)
    for cell in old["mkframe"]["cells"]:
        del cell["rates"]
    assert "summaries; intervals and verdicts rest on the report's word" in said(old, strict=True)
    assert "rebuilt from the readings in the file" in said(ENERGY)
    assert "ebuilt" not in said(report(verify_only=True))
    assert "ebuilt" not in said(CARD)


def test_a_step_below_any_rounding_is_a_step() -> None:
    """As the clock of a CPU has it: 1 ns, and less as a float."""
    for step_ms in (9.99e-7, 1e-9, 5e-324):
        document = copy.deepcopy(OURS)
        document["mkframe"]["timing"]["timer_step_ms"] = step_ms
        assert "All engines of a shape are more than one step of the clock apart" in follows(document)


def test_one_engine_is_not_apart_from_anything() -> None:
    document = copy.deepcopy(OURS)
    for set in ("development", "assessment"):
        for found in document[set]:
            found["engines"] = {"torch-cublas": found["engines"]["torch-cublas"]}
    assert "apart" not in follows(document).partition("Medians in us")[0]


def test_a_cpu_has_no_launches_whose_share_is_missing() -> None:
    document = copy.deepcopy(OURS)
    for cell in document["mkframe"]["cells"]:
        cell.pop("twin", None)
    assert "no launch twins" in limits(document)
    document["mkframe"]["device"]["kind"] = "cpu"
    assert "no launch twins" not in limits(document)


def test_a_sentence_left_over_from_an_older_rule_is_put_right() -> None:
    document = copy.deepcopy(OURS)
    right = "since schema 1.2 they are Student's t"
    document["limitations"] = ["Rounds are spread over 3 processes; intervals resample processes, then rounds, then samples."]
    assert right in limits(document)
    for cell in document["mkframe"]["cells"]:
        del cell["rates"]
    assert right not in limits(document)
    document = copy.deepcopy(OURS)
    document["limitations"] = ["Rounds are spread over 3 processes; intervals are Student's t over the processes' medians."]
    assert right not in limits(document)


def case(*medians_us: float) -> Case:
    return Case(set="s", shape="n=1", medians_ms=tuple((f"e{index}", us / 1e3) for index, us in enumerate(medians_us)), failed=())


@given(st.lists(st.integers(0, 40).map(float), max_size=9), st.sampled_from([0.5, 1.0, 4.0]))
def test_pairs_no_more_than_a_step_apart_are_counted(medians: list[float], step: float) -> None:
    ordered = sorted(medians)
    expected = sum(b - a <= step for index, a in enumerate(ordered) for b in ordered[index + 1 :])
    assert undecided_pairs(case(*ordered), step / 1e3) == expected


def test_engines_stand_in_order_and_not_too_many_of_them() -> None:
    assert in_order(case(1.0, 1.5, 3.0), 0.001) == "e0 1.00 ~ e1 1.50 < e2 3.00"
    assert in_order(case(1.0, 1.5), None) == "e0 1.00 < e1 1.50"
    assert in_order(case(1.0, 1.0), None) == "e0 1.00 = e1 1.00"
    assert in_order(case(1.0, 1.0 + 1e-9, 2.0, 3.0), 1e-6) == "e0 1.00 ~ e1 1.00 < e2 2.00 < e3 3.00"
    assert in_order(case(22.528, 23.552), 0.001024) == "e0 22.53 ~ e1 23.55"  # docs/measurement.md: exactly a step is UNDECIDED
    assert in_order(case(*range(20)), 0.001).endswith("e11 11.00 and 8 slower ones")


def test_long_lists_and_texts_are_cut() -> None:
    document = copy.deepcopy(COMPARISON)
    document["many"] = [{"shape": {"rows": row}, "engines": document["development"][0]["engines"]} for row in range(1, 200)]
    document["limitations"] = ["x" * 5 * LONGEST]
    lines = follows(document).splitlines()
    assert lines[-1] == f"... and {len(list(cases(document))) - MOST} shapes more"
    assert len(limits(document)) < 2 * LONGEST


def places(node: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node[:3]) if isinstance(node, list) else ()
    return [place for key, value in items for place in ((*path, key), *places(value, (*path, key)))]


DAMAGED = [COMPARISON, OURS, ENERGY, report(edges=True, draws=1), CARD, CPU_CARD]
PLACES = [places({key: value for key, value in document.items() if key != "source_sha256"}) for document in DAMAGED]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 1e308, -1e308, 5e-324, 10**308, -(10**308), 1.5, "", "x", "cold", "UNDECIDED"])
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200)
@given(st.data())
def test_no_page_raises_whatever_a_document_holds(data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(DAMAGED) - 1))
    document = copy.deepcopy(DAMAGED[which])
    for place in data.draw(st.lists(st.sampled_from(PLACES[which]), min_size=1, max_size=6)):
        node: Any = document
        try:
            for token in place[:-1]:
                node = node[token]
            node[place[-1]] = data.draw(ANY_JSON)
        except (KeyError, IndexError, TypeError):  # an earlier replacement has taken the place away
            continue
    result = check_document(document)
    if result.format is not None:
        sections = explain(document, result)
        assert [section.title for section in sections] == TITLES
        assert all(isinstance(line, str) and line for section in sections for line in section.lines)
