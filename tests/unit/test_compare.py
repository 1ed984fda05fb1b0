"""compare as a library: planted differences, what may not be compared, samples files by strangers, reports without samples."""

import copy
import io
import json
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_reports import THREE, TIMES, Document, array, document, foreign, npz, reason_of, report, samples, write, zipped
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mkframe.compare import Outcome, compare_reports, load, require_same
from mkframe.compare.conditions import FIELDS
from mkframe.compare.result import State
from mkframe.compare.samples import LIMIT, open_samples
from mkframe.compare.verdict import compare_summaries
from mkframe.errors import MkframeError, UnreadableError, UsageError
from mkframe.model.outcome import Verdict
from mkframe.model.report import Summary
from mkframe.stats import unseen_ratio
from mkframe.validate import check_document

GRAPH = "persistent-graph"
DATA = Path(__file__).resolve().parents[1] / "data"


def compared(base: Path, new: Path, *allow: str, **options: Any) -> Outcome:
    one, other = load(base), load(new)
    return compare_reports(one, other, require_same(one, other, allow), **options)


def verdict_of(outcome: Outcome, index: int = 0) -> Verdict:
    found = outcome.cells[index].compared
    assert found is not None
    return found.comparison.verdict


@pytest.mark.parametrize(
    ("base_us", "new_us", "spread", "verdict", "code"),
    [
        (20.0, 21.0, 0.002, Verdict.SLOWER, 1),
        (21.0, 20.0, 0.002, Verdict.FASTER, 0),
        (20.0, 20.0, 0.0, Verdict.SAME, 0),
        (20.0, 20.4, 0.02, Verdict.UNDECIDED, 0),
    ],
)
def test_a_planted_difference_gets_its_verdict(
    tmp_path: Path, base_us: float, new_us: float, spread: float, verdict: Verdict, code: int
) -> None:
    base = report(tmp_path / "base", {(0, GRAPH): samples(base_us, 1, spread=spread)})
    outcome = compared(base, report(tmp_path / "new", {(0, GRAPH): samples(new_us, 2, spread=spread)}))
    (cell,) = outcome.cells
    assert verdict_of(outcome) is verdict
    assert outcome.exit_code == code
    assert cell.compared is not None
    found = cell.compared
    assert found.rests_on == "samples"
    assert found.comparison.low <= found.comparison.ratio <= found.comparison.high
    assert found.comparison.ratio == pytest.approx(new_us / base_us, rel=0.03)
    assert outcome.geometric_mean == found.comparison.ratio
    assert (cell.reason is None) == (verdict is not Verdict.UNDECIDED)


def test_the_difference_is_also_in_units_of_the_floor(tmp_path: Path) -> None:
    def floors(made: Document) -> None:
        for floor in made["mkframe"]["timing"]["floors"]:
            time_ms = {"empty-kernel-graph": 0.0025, "empty-kernel": 0.005}.get(floor["name"], 0.001)
            floor["summary"] |= dict.fromkeys(TIMES, time_ms)

    cells = {(0, GRAPH): samples(20.0, 1), (0, "persistent"): samples(20.0, 3)}
    slower = {(0, GRAPH): samples(25.0, 2), (0, "persistent"): samples(25.0, 4)}
    outcome = compared(report(tmp_path / "a", cells, edit=floors), report(tmp_path / "b", slower, edit=floors))
    found = [cell.compared for cell in outcome.cells]
    assert [each.floor for each in found if each] == ["empty-kernel-graph", "empty-kernel"]
    assert [each.floors for each in found if each] == pytest.approx([2.0, 1.0], rel=0.02)


def run_as(protocol: str) -> Any:
    """A report of another timing protocol."""

    def edit(made: Document) -> None:
        made["timing"] = made["mkframe"]["timing"]["protocol"] = protocol
        made["mkframe"]["timing"]["cache_state"] = "cold" if protocol == "cold" else "warm"
        made["limitations"].append(f"Timing protocol {protocol}.")

    return edit


@pytest.mark.parametrize(
    ("protocol", "method", "floor"),
    [("unrolled", None, "slope"), ("cold", "rotate", "slope"), ("cold", "evict", "graph"), ("replay", None, "graph")],
)
def test_a_slope_stands_on_the_floor_of_slopes(tmp_path: Path, protocol: str, method: str | None, floor: str) -> None:
    def edit(made: Document) -> None:
        run_as(protocol)(made)
        made["mkframe"]["config"]["timing"]["method"] = method
        floors = made["mkframe"]["timing"]["floors"]
        slope = {"name": "empty-kernel-slope", "summary": floors[0]["summary"] | dict.fromkeys(TIMES, 0.0006)}
        made["mkframe"]["timing"]["floors"] = [*floors, {**floors[0], **slope}]

    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)}, edit=edit)
    (cell,) = compared(base, report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2)}, edit=edit)).cells
    assert cell.compared is not None
    assert cell.compared.floor == f"empty-kernel-{floor}"


def test_without_floors_there_are_no_units(tmp_path: Path) -> None:
    def none(made: Document) -> None:  # as reports of slopes were before there was their floor
        timing = made["mkframe"]["timing"]
        made["timing"] = timing["protocol"] = "unrolled"
        timing["floors"] = [floor for floor in timing["floors"] if floor["name"] != "empty-kernel-slope"]

    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)}, edit=none)
    (cell,) = compared(base, report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2)}, edit=none)).cells
    assert cell.compared is not None
    assert (cell.compared.floor, cell.compared.floor_ms, cell.compared.floors) == (None, None, None)


def test_fail_on_lets_small_losses_pass(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    new = report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2)})
    assert [compared(base, new, fail_on=percent).exit_code for percent in (0.0, 4.0, 6.0)] == [1, 1, 0]


def test_processes_and_rounds_may_differ_in_number(tmp_path: Path) -> None:
    five = tuple(range(5))
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    new = report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2, process=five, per_round=30)}, five)
    outcome = compared(base, new)
    assert verdict_of(outcome) is Verdict.SLOWER
    assert "rounds: 6 in BASE, 5 in NEW" in outcome.notes
    assert "processes: 3 in BASE, 5 in NEW" in outcome.notes
    assert "samples_per_round: 50 in BASE, 30 in NEW" in outcome.notes


def test_shapes_are_found_wherever_they_stand_in_the_plan(tmp_path: Path) -> None:
    cells = {(0, GRAPH): samples(20.0, 3), (1, GRAPH): samples(40.0, 4)}
    made = document(cells)
    made["development"].reverse()
    for case in made["development"]:
        case["shape"] = dict(reversed(case["shape"].items()))
    outcome = compared(report(tmp_path / "a", cells), write(tmp_path / "b", made, npz(cells)))
    assert [(cell.base_ms, cell.new_ms) for cell in outcome.cells] == [(np.median(cells[case, GRAPH]),) * 2 for case in (0, 1)]


# --- what may not be compared


def set_at(path: str, value: Any) -> Any:
    def edit(made: Document) -> None:
        *parents, last = path.split("/")
        node: Any = made
        for name in parents:
            node = node[int(name) if name.isdecimal() else name]
        node[last] = value

    return edit


def another_device(made: Document) -> None:
    made["device"] = made["mkframe"]["device"]["name"] = "NVIDIA A100"


def no_hold(made: Document) -> None:
    made["mkframe"]["timing"]["hold"] = False
    for cell in made["mkframe"]["cells"]:
        cell["late_samples"] = None


def half_outputs(made: Document) -> None:
    """A contract of one's own, and so an id of its own."""
    made["precision"] = "HALF outputs"
    made["mkframe"]["precision"] |= {"id": "half", "output": "float16"}


def two(made: Document) -> None:
    """Another name for the shape set's only shape."""
    for shape in (made["development"][0]["shape"], made["mkframe"]["cells"][0]["shape"]):
        shape["rows"] = 34


def other_engine(made: Document) -> None:
    made["development"][0]["engines"] = {"triton-graph": made["development"][0]["engines"][GRAPH]}
    made["mkframe"]["cells"][0]["engine"] = "triton-graph"


REFUSED = [
    ("device", set_at("mkframe/device/multiprocessors", 114), "multiprocessors 132 in BASE, 114 in NEW"),
    ("device", another_device, 'name "NVIDIA H200" in BASE, "NVIDIA A100" in NEW'),
    ("board", set_at("mkframe/device/uuid", "GPU-other"), "GPU-other"),
    ("precision", half_outputs, 'output "float32" in BASE, "float16" in NEW'),
    ("workload", set_at("mkframe/workload", "qda"), '"residual_mlp" in BASE, "qda" in NEW'),
    ("timing replays", run_as("replay"), '"per_call" in BASE, "replay" in NEW'),
    ("hold", no_hold, "true in BASE, false in NEW"),
    ("timing cache_state method sets footprint", run_as("cold"), '"warm" in BASE, "cold" in NEW'),
    ("edges", set_at("mkframe/cells/0/facts", {"edges": "programmatic"}), f'"programmatic" in NEW, for development 33x32x64 {GRAPH}'),
]


@pytest.mark.parametrize(("fields", "edit", "text"), REFUSED)
def test_another_condition_is_refused_and_can_be_allowed(tmp_path: Path, fields: str, edit: Any, text: str) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    new = report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2)}, edit=edit)
    with pytest.raises(UsageError) as caught:
        compared(base, new)
    assert all(f"{field}: " in str(caught.value) for field in fields.split())
    assert text in str(caught.value)
    assert str(caught.value).endswith(f"--allow {fields}")
    outcome = compared(base, new, *fields.split())
    assert verdict_of(outcome) is Verdict.SLOWER
    assert [difference.field for difference in outcome.lifted] == fields.split()


@pytest.mark.parametrize(("name", "protocol", "value"), [("replays", "replay", 50), ("sets", "cold", 8), ("footprint", "cold", 7.0)])
def test_a_key_of_one_protocol_is_a_condition(tmp_path: Path, name: str, protocol: str, value: Any) -> None:
    def edit(made: Document) -> None:
        run_as(protocol)(made)
        made["mkframe"]["config"]["timing"][name] = value

    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)}, edit=run_as(protocol))
    new = report(tmp_path / "b", {(0, GRAPH): samples(21.0, 2)}, edit=edit)
    with pytest.raises(UsageError, match=rf"{name}: .* in BASE, {value} in NEW.*--allow {name}$"):
        compared(base, new)
    assert verdict_of(compared(base, new, name)) is Verdict.SLOWER


def test_how_caches_are_made_cold_is_a_condition(tmp_path: Path) -> None:
    loaded = [load(report(tmp_path / name, {(0, GRAPH): samples(20.0, 1)}, edit=run_as("cold"))) for name in "ab"]
    loaded[1].block["config"]["timing"]["method"] = "rotate"
    with pytest.raises(UsageError, match=r'method: "evict" in BASE, "rotate" in NEW'):
        require_same(*loaded, ())


def test_a_key_of_timing_that_is_new_to_us_is_a_condition_too(tmp_path: Path) -> None:
    loaded = [load(report(tmp_path / name, {(0, GRAPH): samples(20.0, 1)})) for name in "ab"]
    loaded[1].document["mkframe"]["timing"]["colour"] = "red"
    with pytest.raises(UsageError, match=r'colour: not stated in BASE, "red" in NEW'):
        require_same(*loaded, ())
    assert len(require_same(*loaded, ["colour"])) == 1


def test_every_difference_is_named_at_once(tmp_path: Path) -> None:
    def edit(made: Document) -> None:
        for _, change, _ in REFUSED[3:7]:
            change(made)

    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    new = report(tmp_path / "b", {(0, GRAPH): samples(20.0, 2)}, edit=edit)
    with pytest.raises(UsageError, match=r"--allow precision workload timing hold replays$"):
        compared(base, new)
    with pytest.raises(UsageError, match=r"--allow workload hold replays$"):
        compared(base, new, "precision", "timing")


def test_allow_takes_fields_that_exist(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    with pytest.raises(UsageError, match=r'"colour": no such field; there are board, cache_state, device, edges'):
        compared(base, base, "colour")


def test_other_shapes_are_refused_and_listed_once_allowed(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    more = report(tmp_path / "b", {(0, GRAPH): samples(20.0, 2), (1, GRAPH): samples(30.0, 3)})
    with pytest.raises(UsageError, match=r"shapes: only in NEW: development 257x64x128\. "):
        compared(base, more)
    outcome = compared(base, more, "shapes")
    assert [cell.state for cell in outcome.cells] == [State.COMPARED, State.ONLY_NEW]
    assert outcome.exit_code == 0
    back = compared(more, base, "shapes")
    assert [cell.state for cell in back.cells] == [State.COMPARED, State.ONLY_BASE]
    assert (back.exit_code, back.geometric_mean, back.without_numbers) == (0, None, 1)
    with pytest.raises(UsageError, match="no cell"):
        compared(base, report(tmp_path / "c", {(0, GRAPH): samples(20.0, 2)}, edit=two), "shapes")


def test_other_engines_are_refused_and_listed_once_allowed(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1), (0, "persistent"): samples(30.0, 2)})
    fewer = report(tmp_path / "b", {(0, GRAPH): samples(20.0, 3)})
    with pytest.raises(UsageError, match=r"engines: only in BASE: persistent\. "):
        compared(base, fewer)
    outcome = compared(base, fewer, "engines")
    assert {cell.key.engine: cell.state for cell in outcome.cells} == {GRAPH: State.COMPARED, "persistent": State.ONLY_BASE}
    assert outcome.exit_code == 0
    with pytest.raises(UsageError, match="no cell"):
        compared(fewer, report(tmp_path / "c", {(0, GRAPH): samples(20.0, 2)}, edit=other_engine, with_samples=False), "engines")


# --- cells without numbers


@pytest.mark.parametrize("outcome", ["incorrect", "crashed", "timeout", "oom", "unsupported", "incomplete"])
def test_a_cell_that_no_longer_passes_is_a_regression(tmp_path: Path, outcome: str) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1), (1, GRAPH): samples(30.0, 2)})
    new = report(tmp_path / "b", {(0, GRAPH): samples(20.0, 3), (1, GRAPH): outcome})
    found = compared(base, new, fail_on=1000.0)
    assert found.exit_code == 1
    assert (found.cells[1].state, found.cells[1].reason) == (State.REGRESSED, f"NEW: {outcome}: {reason_of(outcome)}")
    assert found.failures == (found.cells[1],)
    assert found.geometric_mean is None
    assert compared(base, new, skip_failed=True).geometric_mean == pytest.approx(1.0, rel=0.01)
    back = compared(new, base)
    assert (back.cells[1].state, back.exit_code) == (State.RECOVERED, 0)
    assert back.geometric_mean is None


def test_a_cell_that_never_passed_is_no_regression(tmp_path: Path) -> None:
    cells: Mapping[tuple[int, str], Any] = {(0, GRAPH): samples(20.0, 1), (1, GRAPH): "incorrect"}
    outcome = compared(report(tmp_path / "a", cells), report(tmp_path / "b", cells))
    assert (outcome.cells[1].state, outcome.exit_code) == (State.FAILED, 0)
    assert outcome.cells[1].reason == "BASE: incorrect: it was incorrect here; NEW: incorrect: it was incorrect here"


def test_a_cell_that_others_leave_out_is_a_regression(tmp_path: Path) -> None:
    """Without a plan, a cell is missing where its shape and its engine are both there."""
    cells = {(case, engine): samples(20.0, 1) for case in (0, 1) for engine in ("a", "b")}

    def leave_out(made: Document) -> None:
        del made["development"][1]["engines"]["b"]
        foreign(made)

    def strangers(folder: str, edit: Any) -> Path:
        made = document(cells)
        edit(made)
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "report.json"
        path.write_text(json.dumps(made))
        return path

    outcome = compared(strangers("a", foreign), strangers("b", leave_out))
    assert outcome.exit_code == 1
    assert [(cell.state, cell.reason) for cell in outcome.failures] == [(State.REGRESSED, "NEW: no result")]


def test_the_geometric_mean_is_that_of_the_ratios(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1), (1, GRAPH): samples(30.0, 2)})
    outcome = compared(base, report(tmp_path / "b", {(0, GRAPH): samples(40.0, 3), (1, GRAPH): samples(15.0, 4)}))
    ratios = [cell.compared.comparison.ratio for cell in outcome.cells if cell.compared]
    assert outcome.geometric_mean == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert outcome.counts == {"FASTER": 1, "SLOWER": 1}


def test_a_median_of_zero_has_no_ratio_and_no_place_in_the_mean(tmp_path: Path) -> None:
    cells = {(0, GRAPH): samples(20.0, 1), (1, GRAPH): samples(30.0, 2)}

    def slopes(made: Document) -> None:  # between two chains a median may be zero
        made["timing"] = made["mkframe"]["timing"]["protocol"] = "unrolled"

    base = report(tmp_path / "a", {**cells, (1, GRAPH): np.zeros((6, 50))}, edit=slopes)
    outcome = compared(base, report(tmp_path / "b", cells, edit=slopes))
    assert (outcome.cells[1].ratio, outcome.cells[1].reason) == (None, "a median is zero")
    assert (outcome.geometric_mean, outcome.without_numbers, outcome.exit_code) == (None, 1, 0)


def test_autotuning_that_chose_other_kernels_says_nothing_of_equal_sources(tmp_path: Path) -> None:
    def kernels(made: Document) -> None:
        made["mkframe"]["cells"][0]["nodes"] = ["another_kernel"]

    def kernels_and_sources(made: Document) -> None:
        kernels(made)
        made["source_sha256"]["mkframe_plugins/torch_engines.py"] = "0" * 64

    def kernels_and_options(made: Document) -> None:
        kernels(made)
        made["mkframe"]["cells"][0]["options"] = {"stages": 3}

    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    slower = {(0, GRAPH): samples(25.0, 2)}
    found = compared(base, report(tmp_path / "b", slower, edit=kernels))
    assert verdict_of(found) is Verdict.UNDECIDED
    assert "autotuning" in (found.cells[0].reason or "")
    for name, edit in (("c", kernels_and_sources), ("d", kernels_and_options)):
        assert verdict_of(compared(base, report(tmp_path / name, slower, edit=edit))) is Verdict.SLOWER


# --- without samples


def test_without_its_samples_file_a_report_is_compared_by_summaries(tmp_path: Path) -> None:
    base = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)}, with_samples=False)
    for name, us, verdict in (("b", 21.0, Verdict.UNDECIDED), ("c", 40.0, Verdict.SLOWER), ("d", 10.0, Verdict.FASTER)):
        outcome = compared(base, report(tmp_path / name, {(0, GRAPH): samples(us, 2)}))
        assert verdict_of(outcome) is verdict
        assert outcome.cells[0].compared is not None
        assert outcome.cells[0].compared.rests_on == "summaries"
        assert "BASE is compared by its summaries alone: its samples file is not beside it" in outcome.notes


def summary(p50: float, low: float, p95: float) -> Summary:
    return Summary(count=100, p50_ms=p50, p95_ms=p95, min_ms=low, max_ms=p95 * 2, mean_ms=p50)


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ((1.5, 1.4, 1.6), (1.0, 0.9, 1.1), Verdict.SLOWER),
        ((1.0, 0.9, 1.1), (1.5, 1.4, 1.6), Verdict.FASTER),
        ((1.5, 1.05, 1.6), (1.0, 0.9, 1.1), Verdict.UNDECIDED),  # the bands overlap
        ((1.25, 1.2, 1.3), (1.0, 0.9, 1.1), Verdict.UNDECIDED),  # apart, but two processes may differ by that
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), Verdict.UNDECIDED),  # SAME is never said
        ((1.0, 0.0, 1.1), (0.5, 0.0, 0.6), Verdict.UNDECIDED),
    ],
)
def test_summaries_decide_only_what_is_clear(one: Any, other: Any, verdict: Verdict) -> None:
    found = compare_summaries(summary(*one), summary(*other), None)
    assert found.verdict is verdict
    assert found.low <= found.ratio <= found.high
    assert (found.reason is None) == (verdict is not Verdict.UNDECIDED)


def test_summaries_within_a_step_are_undecided() -> None:
    found = compare_summaries(summary(3.0, 2.9, 3.1), summary(2.0, 1.9, 2.1), 1.5)
    assert found.verdict is Verdict.UNDECIDED
    assert "one step" in (found.reason or "")


ANY_TIME = st.sampled_from([0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308]) | st.floats(0.0, 1e6)


@given(one=st.tuples(ANY_TIME, ANY_TIME, ANY_TIME), other=st.tuples(ANY_TIME, ANY_TIME, ANY_TIME), step_ms=st.none() | st.just(1e-3))
def test_summaries_of_any_report_give_numbers_that_json_holds(one: Any, other: Any, step_ms: float | None) -> None:
    """Other people's reports may hold times that contradict each other."""
    sides = (Summary(count=1, p50_ms=p50, p95_ms=p95, min_ms=low, max_ms=p95, mean_ms=p50) for p50, low, p95 in (one, other))
    found = compare_summaries(*sides, step_ms)
    assert all(math.isfinite(value) and value >= 0 for value in (found.ratio, found.low, found.high))
    assert found.low <= found.high


def test_times_too_far_apart_for_float64_have_no_ratio(tmp_path: Path) -> None:
    paths = []
    for p50 in (1e-300, 1e300):
        made = document({(0, GRAPH): samples(20.0, 1)})
        foreign(made)
        for name in ("stream_summary", "host_summary"):
            made["development"][0]["engines"][GRAPH][name] |= dict.fromkeys(TIMES, p50)
        paths.append(tmp_path / f"{p50}.json")
        paths[-1].write_text(json.dumps(made), encoding="utf-8")
    outcome = compared(*paths)
    assert (outcome.cells[0].ratio, outcome.geometric_mean) == (None, None)
    json.dumps(outcome.document(), allow_nan=False)


ODD_CELLS: Any = {
    (0, "torch-cublas"): samples(20.0, 1, per_round=8),
    (0, GRAPH): samples(15.0, 2, per_round=8),
    (0, "torch-compile"): "unsupported",
    (1, "torch-cublas"): "crashed",
    (1, GRAPH): "incomplete",
}
ODD = document(ODD_CELLS)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


PLACES = [path for path in places(ODD) if path[:2] not in (("mkframe", "config"), ("mkframe", "source_sha256"))]
ODD_VALUES = st.sampled_from([..., None, 0, -1, 1, 1e-300, 1e300, "", "x", "passed", "incomplete", True, [], {}])


@settings(max_examples=200, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PLACES), value=ODD_VALUES, other=st.booleans())
def test_a_valid_report_however_odd_is_compared_or_refused(tmp_path: Path, path: tuple[Any, ...], value: Any, other: bool) -> None:
    made = copy.deepcopy(ODD)
    node: Any = made
    for key in path[:-1]:
        node = node[key]
    if value is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    if other and {"mkframe", "timing"} <= made.keys():
        foreign(made)
    assume(check_document(made).ok)
    base = report(tmp_path / "base", ODD_CELLS)
    new = tmp_path / "base" / "new.json"
    new.write_text(json.dumps(made), encoding="utf-8")
    for pair in ((base, new), (new, base)):
        with suppress(MkframeError):
            json.dumps(compared(*pair, *FIELDS).document(), allow_nan=False)


def test_the_page_says_what_summaries_need(root: Path) -> None:
    assert f"a factor of {unseen_ratio():.2f}" in (root / "docs/compare.md").read_text(encoding="utf-8")


def test_the_recorded_report_is_compared_with_itself() -> None:
    path = DATA / "valid" / "residual-mlp-rtx3090.json"
    outcome = compared(path, path)
    assert len(outcome.cells) == 72
    assert outcome.counts == {"UNDECIDED": 72}
    assert outcome.exit_code == 0
    assert load(path).step_ms == pytest.approx(1.024e-3)


def test_what_one_report_does_not_state_differs_from_what_the_other_states(tmp_path: Path) -> None:
    ours = report(tmp_path / "a", {(0, GRAPH): samples(20.0, 1)})
    made = document({(0, GRAPH): samples(20.0, 1)})
    foreign(made)
    theirs = tmp_path / "theirs.json"
    theirs.write_text(json.dumps(made))
    with pytest.raises(UsageError, match=r"--allow workload timing cache_state hold$"):
        compared(ours, theirs)
    assert verdict_of(compared(ours, theirs, "workload", "timing", "cache_state", "hold")) is Verdict.UNDECIDED


# --- files by strangers


@pytest.mark.parametrize("name", ["missing.json", "nan.json", "boolean_rounds.json", "truncated.json"])
def test_no_report_is_a_one_line_error(name: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        load(DATA / "invalid" / name)
    assert "\n" not in str(caught.value)


def test_an_energy_report_is_no_comparison() -> None:
    with pytest.raises(UnreadableError, match="it is an energy report"):
        load(DATA / "valid" / "qda-energy-a100.json")


def test_a_shape_that_stands_twice_in_a_set_is_refused(tmp_path: Path) -> None:
    made = document({(0, GRAPH): samples(20.0, 1)})
    made["development"] *= 2
    with pytest.raises(UnreadableError, match="the same shape as item 0 of this set"):
        load(write(tmp_path, made, None))


CELLS = {(0, GRAPH): samples(20.0, 1)}
PLACE = f"development/0/{GRAPH}"
GOOD = {
    f"{PLACE}/stream_ms.npy": array(CELLS[0, GRAPH]),
    f"{PLACE}/rounds.npy": array(np.arange(6)),
    f"{PLACE}/workers.npy": array(np.array(THREE)),
}


def with_file(folder: Path, data: bytes) -> Path:
    return write(folder, document(CELLS), data)


def test_the_raw_members_of_the_hostile_files_are_read_when_they_are_right(tmp_path: Path) -> None:
    (cell,) = load(with_file(tmp_path, zipped(GOOD))).cells.values()
    assert cell.samples is not None
    assert np.array_equal(cell.samples.stream_ms, CELLS[0, GRAPH])
    assert cell.samples.process == THREE


def test_files_that_do_not_name_workers_take_the_processes_of_the_report(tmp_path: Path) -> None:
    (cell,) = load(write(tmp_path, document(CELLS), npz(CELLS, workers=False))).cells.values()
    assert cell.samples is not None
    assert cell.samples.process == THREE


def member(name: str, data: bytes) -> bytes:
    return zipped({**GOOD, f"{PLACE}/{name}.npy": data})


def header(shape: str, data: bytes = b"", dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def changed(values: Any) -> Any:
    found = CELLS[0, GRAPH].copy()
    found[0, 0] = values
    return found


def with_pickle() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def lying(data: bytes) -> bytes:
    """The archive with the sizes of every entry stated as 1 byte in its directory."""
    out = bytearray(data)
    start = 0
    while (start := out.find(b"PK\x01\x02", start)) >= 0:
        out[start + 24 : start + 28] = struct.pack("<I", 1)
        start += 4
    return bytes(out)


HOSTILE = {
    "no archive": (b"not a zip file", "no .npz file"),
    "empty": (b"", "no .npz file"),
    "cut off": (zipped(GOOD)[:-30], "no .npz file"),
    "bomb": (zipped({**GOOD, "bomb.npy": bytes(LIMIT)}), "larger than 64 MiB when unpacked"),
    "lying sizes": (lying(zipped(GOOD)), "cannot be unpacked|no array|another header"),
    "lzma": (zipped(GOOD, zipfile.ZIP_LZMA), "in a way that numpy does not use"),
    "bzip2": (zipped(GOOD, zipfile.ZIP_BZIP2), "in a way that numpy does not use"),
    "many members": (zipped({f"{number}.npy": b"" for number in range(100)}), "more arrays than its report has cells"),
    "missing array": (zipped({"a.npy": array([1.0])}), "is missing"),
    "pickle": (member("stream_ms", with_pickle()), "no array of <f8"),
    "float32": (member("stream_ms", array(CELLS[0, GRAPH].astype(np.float32))), "no array of <f8"),
    "integers": (member("stream_ms", array(np.ones((6, 50), dtype=np.int64))), "no array of <f8"),
    "float rounds": (member("rounds", array(np.arange(6.0))), "no array of <i8"),
    "fortran order": (member("stream_ms", array(np.asfortranarray(CELLS[0, GRAPH]))), "no array of <f8"),
    "huge shape": (member("stream_ms", header("(1000000000, 1000000000)")), "another shape"),
    "empty shape": (member("stream_ms", header("(0, 50)")), "no array of <f8"),
    "code in the header": (member("stream_ms", header("(__import__('os').abort(), 1)")), "no array of <f8"),
    "nested header": (member("stream_ms", header("(" * 5000 + ")" * 5000)), "no array of <f8"),
    "no header": (member("stream_ms", b"\x93NUMPY"), "no array of <f8"),
    "flat": (member("stream_ms", array(CELLS[0, GRAPH].ravel())), "another shape"),
    "short": (member("stream_ms", array(CELLS[0, GRAPH])[:-8]), "another shape"),
    "long": (member("stream_ms", array(CELLS[0, GRAPH]) + bytes(8)), "another shape"),
    "NaN": (member("stream_ms", array(changed(np.nan))), "no numbers"),
    "infinity": (member("stream_ms", array(changed(np.inf))), "no numbers"),
    "negative": (member("stream_ms", array(changed(-1.0))), "negative"),
    "other numbers": (member("stream_ms", array(CELLS[0, GRAPH] * 1.001)), "do not give the count and the p50_ms"),
    "fewer samples": (member("stream_ms", array(CELLS[0, GRAPH][:, :40])), "do not give the count and the p50_ms"),
    "rounds twice": (member("rounds", array(np.array([0, 1, 2, 3, 4, 4]))), "ascending"),
    "negative rounds": (member("rounds", array(np.arange(6) - 1)), "ascending"),
    "too few rounds": (member("rounds", array(np.arange(5))), "ascending"),
    "too few workers": (member("workers", array(np.arange(5))), "one worker for each row"),
    "unknown round": (
        zipped({name: data for name, data in GOOD.items() if "workers" not in name} | {f"{PLACE}/rounds.npy": array(np.arange(6) + 1)}),
        "has round 6, and the report has 6 rounds",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_samples_file_is_a_one_line_error(tmp_path: Path, name: str) -> None:
    data, words = HOSTILE[name]
    path = with_file(tmp_path, data)
    with pytest.raises(UnreadableError, match=words) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_two_arrays_of_one_name_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO(zipped(GOOD))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(f"{PLACE}/rounds.npy", array(np.arange(6)))
    with pytest.raises(UnreadableError, match="two arrays of one name"):
        load(with_file(tmp_path, buffer.getvalue()))


def test_the_hash_comes_before_anything_else(tmp_path: Path) -> None:
    path = with_file(tmp_path, zipped(GOOD))
    (file,) = tmp_path.glob("*.npz")
    file.write_bytes(b"not a zip file")
    with pytest.raises(UnreadableError, match="its SHA-256 is not the one in the report"):
        load(path)


@pytest.mark.parametrize("name", ["../elsewhere.npz", "/etc/passwd", "a/b.npz", "..", ".", "a\\b.npz"])
def test_the_samples_file_is_a_bare_name(tmp_path: Path, name: str) -> None:
    path = with_file(tmp_path, zipped(GOOD))
    record = json.loads(path.read_text())["mkframe"]["samples"] | {"file": name}
    with pytest.raises(UnreadableError, match="not a bare file name"):
        open_samples(tmp_path, record, 1)
    with pytest.raises(UnreadableError, match="no valid comparison report"):
        load(write(tmp_path, document(CELLS), None, name=name))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(zipped(GOOD)) - 1), st.integers(0, 255))
def test_a_samples_file_with_any_byte_changed_gives_an_error_or_the_right_samples(tmp_path: Path, place: int, byte: int) -> None:
    data = bytearray(zipped(GOOD))
    data[place] = byte
    path = with_file(tmp_path, bytes(data))
    try:
        (cell,) = load(path).cells.values()
    except UnreadableError:
        return
    assert cell.samples is not None
    assert np.array_equal(cell.samples.stream_ms, CELLS[0, GRAPH])
