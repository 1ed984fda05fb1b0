"""Estimates, budgets and the memory of earlier runs."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fakes import CPU, GPU, FakeEngine, FakeMlp, make_registry
from test_plan_build import TIMING, config

from mkframe.errors import ConfigError
from mkframe.model.device import DeviceCard
from mkframe.model.plan import RunPlan
from mkframe.plan import budget, build_plan
from mkframe.plan.estimate import CaseCost, CellCost, Estimate, Part, estimate, sample_s
from mkframe.plan.history import MOST_ENTRIES, History, Seen, key_of, load_history, remember
from mkframe.plan.host import HostRates, measure_host
from mkframe.plugin import Cost
from mkframe.settings.nodes import EngineConfig

NOTHING = History()
HOST = HostRates(flops_per_s=1e9, draw_bytes_per_s=1e8)
TWO = {"cases": [{"rows": 2, "channels": 4, "hidden": 8}, {"rows": 3000, "channels": 4, "hidden": 8}]}


class Costly(FakeMlp):
    """A FakeMlp whose cost grows with its rows."""

    def cost(self, case: Any, precision: Any) -> Cost:
        return Cost(bytes=case.rows * 100, flops=case.rows * 10_000)


def planned(device: Any = CPU, timing: Any = TIMING, engines: tuple[str, ...] = ("host", "base"), **changes: Any) -> RunPlan:
    registry = make_registry()
    chosen = config(engine={name: EngineConfig() for name in engines}, shape={"smoke": TWO}, timing=timing, **changes)
    return build_plan(chosen, registry, device)


def expected(plan: RunPlan, history: History = NOTHING, host: HostRates = HOST) -> Estimate:
    return estimate(plan, Costly(), history, host)


def keyed(plan: RunPlan, engine: str, shape: Mapping[str, int]) -> Any:
    return key_of(plan.workload, engine, plan.precision.id, plan.device.name, plan.timing.protocol, shape)


def test_a_known_cell_takes_what_it_took() -> None:
    plan = planned()
    seen = Seen(call_s=0.01, bind_s=2.0, check_s=3.0)
    found = expected(plan, History({keyed(plan, "host", plan.cases[0].shape): seen}))
    cell = found.cases[0].cells[0]
    assert (cell.engine, cell.known, cell.bind_s, cell.check_s) == ("host", True, 2.0, 3.0)
    assert cell.warm_up_s == pytest.approx(20 * 0.01)
    assert cell.timing_s == pytest.approx(200 * 0.01, rel=0.01)
    assert not found.cases[0].cells[1].known


def test_the_parts_are_the_sums_of_cells_over_processes_and_rounds() -> None:
    """Against a sum written out by hand."""
    plan = planned()
    found = expected(plan)
    assert (found.processes, found.rounds) == (3, 6)
    cells = [cell for case in found.cases for cell in case.cells]
    assert len(cells) == 4
    by_hand = {
        "start": 3 * found.start_s,
        "draw": 3 * sum(case.draw_s for case in found.cases),
        "bind": 3 * sum(cell.bind_s for cell in cells),
        "check": 3 * sum(cell.check_s for cell in cells),
        "warm-up": 6 * sum(cell.warm_up_s for cell in cells),
        "timing": 6 * sum(cell.timing_s for cell in cells),
        "statistics": 6 * sum(cell.statistics_s for cell in cells),
    }
    assert {part.value: value for part, value in found.parts.items()} == pytest.approx(by_hand)
    assert found.total_s == pytest.approx(sum(by_hand.values()))
    assert found.fixed_s + 6 * found.round_s == pytest.approx(found.total_s)


@given(rounds=st.integers(1, 50), processes=st.integers(1, 5))
def test_the_total_is_linear_in_rounds(rounds: int, processes: int) -> None:
    rounds *= processes
    one = expected(planned(timing=replace(TIMING, rounds=processes, processes=processes)))
    many = expected(planned(timing=replace(TIMING, rounds=rounds, processes=processes)))
    assert many.fixed_s == pytest.approx(one.fixed_s)
    assert many.total_s == pytest.approx(one.fixed_s + rounds * one.round_s)


def test_larger_shapes_are_expected_to_take_longer() -> None:
    small, large = expected(planned()).cases
    assert large.draw_s > small.draw_s
    assert large.cells[0].timing_s > small.cells[0].timing_s


def test_references_cost_what_the_host_makes_of_their_operations() -> None:
    """Three references of 3000 x 10,000 operations."""
    plan = planned()
    slow, fast = (expected(plan, host=HostRates(flops_per_s=rate, draw_bytes_per_s=1e8)).cases[1].draw_s for rate in (1e9, 1e12))
    assert slow - fast == pytest.approx(3 * 3000 * 10_000 * (1e-9 - 1e-12))


def test_other_shapes_of_an_engine_scale_the_guess() -> None:
    """An engine that took ten times the roofline on one shape is expected to do so on the next."""
    plan = planned()
    small, large = plan.cases
    guess = 5e-5 + small.case.rows * 10_000 / (0.25 * HOST.flops_per_s)
    seen = {keyed(plan, "host", small.shape): Seen(call_s=10 * guess, bind_s=7.0, check_s=1.0)}
    alone, scaled = expected(plan), expected(plan, History(seen))
    assert scaled.cases[1].cells[0].warm_up_s == pytest.approx(10 * alone.cases[1].cells[0].warm_up_s)
    assert scaled.cases[1].cells[0].bind_s == 7.0
    assert scaled.cases[1].cells[1] == alone.cases[1].cells[1]  # another engine
    assert large.case.rows == 3000


@pytest.mark.parametrize("index", range(5))
def test_history_of_other_conditions_does_not_count(index: int) -> None:
    plan = planned()
    key = list(keyed(plan, "host", plan.cases[0].shape))
    key[index] = "another"
    assert expected(plan, History({tuple(key): Seen(call_s=9.0, bind_s=9.0, check_s=9.0)})) == expected(plan)  # type: ignore[dict-item]


def test_a_remembered_shape_that_no_longer_exists_is_passed_over() -> None:
    plan = planned()
    gone = {keyed(plan, "host", {"columns": 3}): Seen(call_s=9.0, bind_s=9.0, check_s=9.0)}
    assert expected(plan, History(gone)) == expected(plan)


def test_a_device_card_gives_the_rates() -> None:
    card = DeviceCard(
        id="x", name="x", compute_capability="9.0", multiprocessors=1, memory_bytes_per_s=1e12, fp16_flops=1e9, tf32_flops=1e9,
        fp32_flops=1e9, source="x",
    )  # fmt: skip
    plan = planned(GPU, engines=("board",))
    with_card = expected(replace(plan, device=replace(GPU, card=card)))
    slow = 3000 * 10_000 / (0.1 * 1e9)
    assert with_card.cases[1].cells[0].warm_up_s == pytest.approx(20 * (1e-4 + slow))
    assert with_card.cases[1].cells[0].warm_up_s > expected(plan).cases[1].cells[0].warm_up_s


def test_spin_up_counts_once_a_process() -> None:
    timing = replace(TIMING, spin_up_s=5.0)
    assert expected(planned(timing=timing)).start_s == expected(planned()).start_s + 5.0


def test_a_plan_without_a_runnable_cell_takes_no_time() -> None:
    assert expected(planned(engines=("board",))).total_s == 0.0


@pytest.mark.parametrize("call_s", [1e-6, 1e-4, 1e-2])
def test_protocols_take_as_many_calls_as_they_make(call_s: float) -> None:
    timing = replace(planned().timing, hold=False)
    assert sample_s(timing, call_s, 0.0) == call_s
    assert sample_s(replace(timing, hold=True), call_s, 0.0) == pytest.approx(2.5 * call_s)
    assert sample_s(replace(timing, protocol="replay", replays=30), call_s, 0.0) == pytest.approx(30 * call_s)
    extra = max(1, math.ceil(3e-4 / call_s))
    for protocol, method in (("unrolled", None), ("cold", "rotate")):
        chained = replace(timing, protocol=protocol, method=method, k1=10, slope_us=300.0)
        assert sample_s(chained, call_s, 0.0) == pytest.approx((20 + extra) * call_s)
    assert sample_s(replace(timing, protocol="cold", method="evict"), call_s, 0.0) == pytest.approx(call_s + 5e-4)


def test_the_host_is_measured() -> None:
    rates = measure_host()
    assert 1e6 < rates.flops_per_s < 1e15
    assert 1e5 < rates.draw_bytes_per_s < 1e13


def costs(start_s: float, once_s: float, round_s: float, rounds: int, processes: int) -> Estimate:
    cell = CellCost(engine="e", bind_s=once_s, check_s=0.0, warm_up_s=0.0, timing_s=round_s, statistics_s=0.0, known=True)
    (case, *_) = planned().cases
    return Estimate(processes=processes, rounds=rounds, start_s=start_s, cases=(CaseCost(case=case, draw_s=0.0, cells=(cell,)),))


@given(
    st.floats(0.1, 1e5) | st.just(1e308), st.floats(0, 20), st.floats(0, 20), st.floats(1e-3, 100), st.integers(1, 60), st.integers(1, 6)
)  # fmt: skip
def test_the_budget_takes_the_most_rounds_that_fit(
    limit: float, start_s: float, once_s: float, round_s: float, per_process: int, processes: int
) -> None:
    """Against a search over every allowed number of rounds."""
    wanted = per_process * processes + (processes - 1)
    found = costs(start_s, once_s, round_s, wanted, processes)
    allowed = range(processes, wanted + 1, processes)
    totals = {rounds: processes * (start_s + once_s) + rounds * round_s for rounds in allowed}
    if any(abs(total - limit) < 1e-6 * limit for total in totals.values()):
        return
    fitting = [rounds for rounds, total in totals.items() if total <= limit]
    if fitting:
        choice = budget.rounds_within(limit, found)
        assert choice.rounds == max(fitting)
        assert f"{choice.rounds} round" in choice.note
        assert "\n" not in choice.note
    else:
        with pytest.raises(ConfigError, match=r"^timing\.budget_s: the smallest run \(\d+ rounds?, one per process\)") as refused:
            budget.rounds_within(limit, found)
        assert budget.seconds(min(totals.values())) in str(refused.value)


def test_notes_say_why() -> None:
    found = costs(1.0, 1.0, 1.0, 6, 3)
    assert "all 6 rounds over 3 processes fit, 12 s expected of 15 s" in budget.rounds_within(15, found).note
    assert "3 rounds instead of 6 over 3 processes, the most that fit into 11 s, 9.0 s expected" in budget.rounds_within(11, found).note
    assert "6 rounds instead of 7, equally many for each of 3" in budget.rounds_within(99, replace(found, rounds=7)).note


def test_seconds_for_people() -> None:
    assert [budget.seconds(value) for value in (0.04, 9.94, 41.4, 754, 12000)] == ["0.0 s", "9.9 s", "41 s", "12 min 34 s", "3 h 20 min"]


def test_no_budget_is_too_large_to_be_told() -> None:
    assert "all 6 rounds fit, 13 s expected of 1e+308 s" in budget.rounds_within(1e308, costs(1.0, 6.0, 1.0, 6, 1)).note


def test_the_plan_holds_the_rounds_that_were_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    free = planned(timing=replace(TIMING, rounds=3000))
    least = estimate(free, FakeMlp(), History(), HOST)
    plan = planned(timing=replace(TIMING, rounds=3000, samples_per_round=20, budget_s=least.fixed_s + 100 * least.round_s / 5))
    assert plan.timing.rounds % 3 == 0
    assert 3 <= plan.timing.rounds < 3000
    assert plan.config["timing"]["rounds"] == plan.timing.rounds
    assert plan.config["timing"]["budget_s"] is None
    (note,) = plan.notes
    assert f"{plan.timing.rounds} rounds instead of 3000" in note
    assert [plan.timing.process_of(r) for r in range(plan.timing.rounds)].count(0) * 3 == plan.timing.rounds


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_budget_is_above_zero(value: float) -> None:
    with pytest.raises(ConfigError, match=r"^timing\.budget_s: must be above 0"):
        planned(timing=replace(TIMING, budget_s=value))


def test_a_budget_that_nothing_fits_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^timing\.budget_s: the smallest run .* and the budget is 0\.5 s"):
        planned(timing=replace(TIMING, budget_s=0.5))


def test_without_a_budget_nothing_is_said() -> None:
    assert planned().notes == ()


# The memory of earlier runs


def report(engine: str = "e", rows: int = 2, mean_ms: float = 3.0, **cell: Any) -> dict[str, Any]:
    """The parts of a comparison report that `remember` reads."""
    shape = {"rows": rows, "channels": 4}
    return {
        "recorded_on": "2026-01-01",
        "smoke": [{"shape": shape, "engines": {engine: {"passed": True, "host_summary": {"mean_ms": mean_ms}}}}],
        "limitations": ["a sentence"],
        "mkframe": {
            "workload": "w",
            "precision": {"id": "fp16"},
            "device": {"name": "d"},
            "timing": {"protocol": "per_call"},
            "cells": [{"set": "smoke", "shape": shape, "engine": engine, "bind_s": 0.5, "check_s": 0.25, "capture_s": None, **cell}],
        },
    }


KEY = key_of("w", "e", "fp16", "d", "per_call", {"rows": 2, "channels": 4})


def test_a_report_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.json"
    remember(report(capture_s=0.125), path)
    assert load_history(path).entries == {KEY: Seen(call_s=0.003, bind_s=0.625, check_s=0.25)}
    remember(report(mean_ms=6.0), path)
    remember(report("other"), path)
    entries = load_history(path).entries
    assert entries[KEY].call_s == 0.006
    assert len(entries) == 2


def test_the_cache_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remember(report())
    assert KEY in load_history().entries
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    remember(report())
    assert (tmp_path / "home" / ".cache" / "mkframe" / "history.json").is_file()


@pytest.mark.parametrize("cell", [{"bind_s": None}, {"check_s": None}, {"shape": {"rows": 9}}])
def test_a_cell_without_times_is_not_remembered(tmp_path: Path, cell: dict[str, Any]) -> None:
    remember(report(**cell), tmp_path / "h.json")
    assert not (tmp_path / "h.json").exists()


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    many = {key_of("w", f"e{i}", "fp16", "d", "per_call", {"rows": i}): Seen(call_s=1, bind_s=1, check_s=1) for i in range(MOST_ENTRIES)}
    path.write_text(
        json.dumps({"format": "history/1", "entries": [[*key[:5], dict(key[5]), s.call_s, s.bind_s, s.check_s] for key, s in many.items()]})
    )
    assert len(load_history(path).entries) == MOST_ENTRIES
    remember(report(), path)
    entries = load_history(path).entries
    assert len(entries) == MOST_ENTRIES
    assert KEY in entries
    assert next(iter(many)) not in entries
    assert path.stat().st_size < 2**20


def entry(text: str) -> str:
    return f'{{"format": "history/1", "entries": [{text}]}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": "history/2", "entries": []}',
        '{"format": "history/1"}',
        '{"format": "history/1", "entries": [1]}',
        entry('["w", "e", "fp16", "d", "per_call", {"rows": 2}, NaN, 1, 1]'),
        entry('["w", "e", "fp16", "d", "per_call", {"rows": 2}, 1, -1, 1]'),
        entry('["w", "e", "fp16", "d", "per_call", {"rows": "2"}, 1, 1, 1]'),
        entry('["w", "e", "fp16", "d", "per_call", [2], 1, 1, 1]'),
        entry('[3, "e", "fp16", "d", "per_call", {"rows": 2}, 1, 1, 1]'),
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_ignored_and_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "h.json"
    path.write_text(text)
    assert load_history(path).entries == {}
    remember(report(), path)
    assert set(load_history(path).entries) == {KEY}


@given(data=st.binary(max_size=200))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("h") / "h.json"
    path.write_bytes(data)
    assert load_history(path).entries == {}


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["mkframe", "cells", "precision", "id"]) | st.text(), inner)
    ),
    max_leaves=8,
)


@given(document=st.dictionaries(st.sampled_from(["mkframe", "smoke"]), documents))
def test_any_document_is_taken_in_silence(tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("h") / "h.json"
    remember(document, path)
    assert load_history(path).entries == {}


def test_a_cache_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    remember(report(), tmp_path / "file" / "history.json")
    assert (tmp_path / "file").read_text() == ""


def test_an_unselected_fake_is_no_part_of_the_plan() -> None:
    """The registry of these tests holds more engines than the plans use; an estimate counts the plan's alone."""
    registry = make_registry((FakeEngine("more"),))
    assert "more" in registry.engine_ids("residual_mlp")
    assert {cell.engine for case in expected(planned()).cases for cell in case.cells} == {"host", "base"}


def test_every_part_is_explained() -> None:
    from mkframe.cli.plan_command import _MEANING

    assert set(_MEANING) == {part.value for part in Part}
    assert all(re.fullmatch(r"[a-z ,]+", text) for text in _MEANING.values())
