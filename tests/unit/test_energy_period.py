"""The update period of a counter, inferred from the reads of a report."""

import copy
import json
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from energy_reports import Document, report
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.validate import energy_period
from mkframe.validate.energy_counter import reads
from mkframe.validate.energy_figures import in_words
from mkframe.validate.energy_period import Periods, update_periods

RECORDED: Document = json.loads((Path(__file__).parent.parent / "data/valid/qda-energy-a100.json").read_text())


def test_two_periods_fit_the_recorded_report() -> None:
    found = update_periods(RECORDED)
    assert found is not None
    assert found.ranges_ms == ((98.96, 98.985), (99.33, 99.35))
    assert found.middle_s == pytest.approx(0.0992, abs=5e-5)
    assert in_words(found) == "98.96 to 98.985 ms, 99.33 to 99.35 ms"


def fits_some_phase(document: Document, period_s: float, names: tuple[str, ...]) -> bool:
    """The definition, by trying phases in steps of a 1000th: no update in a gap over which the counter stands still, and energies per
    update of the idle windows that differ by less than half an update."""
    made = [(read.time_s, read.energy_mj) for read in reads(document)]
    gaps = [(start, end) for (start, energy), (end, later) in pairwise(made) if energy == later]
    idles = [one[name] for one in document["rounds"] for name in names]
    for phase in np.arange(1000) / 1000 * period_s:
        updates = partial(updates_until, phase, period_s)
        if any(updates(start) != updates(end) for start, end in gaps):
            continue
        counts = [updates(idle["end"]["time_s"]) - updates(idle["start"]["time_s"]) for idle in idles]
        quanta = [(idle["end"]["energy_mj"] - idle["start"]["energy_mj"]) / count for idle, count in zip(idles, counts, strict=True)]
        if max(quanta) / min(quanta) <= 1 + 0.5 / max(counts):
            return True
    return False


def updates_until(phase: float, period_s: float, time_s: float) -> int:
    return math.floor((time_s - phase) / period_s)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.0955, 0.1045), st.sampled_from([0.3, 5.0, 80.0, 400.0]), st.integers(1, 4))
def test_what_is_found_fits_by_the_definition(seed: int, period_s: float, net_w: float, rounds: int) -> None:
    document = report(seed=seed, period_s=period_s, net_w=net_w, rounds=rounds)
    found = update_periods(document)
    names = ("idle_before", "idle_after") if net_w < 10 else ("idle_before",)
    for pair in found.ranges_ms if found else ():
        for period_ms in pair:
            assert fits_some_phase(document, period_ms / 1000, names)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(19_000, 21_000), st.sampled_from([0.3, 5.0, 80.0, 400.0]), st.integers(1, 6))
def test_the_period_of_a_paper_meter_is_among_those_that_fit(seed: int, steps: int, net_w: float, rounds: int) -> None:
    document = report(seed=seed, period_s=steps * 5 / 1e6, net_w=net_w, rounds=rounds)
    evidence = replace(energy_period._evidence(document), room_s=0.0)
    assert any(steps * 5 in family for family in energy_period._fitting(evidence).values())


def test_nothing_is_inferred_where_nothing_tells() -> None:
    assert update_periods({}) is None
    assert update_periods(report(verify_only=True)) is None
    assert update_periods(report(idle_s=0.05)) is None
    broken = copy.deepcopy(RECORDED)
    broken["rounds"][3]["idle_after"]["end"]["time_s"] = "later"
    assert update_periods(broken) is None


def test_an_idle_power_that_moves_tells_nothing() -> None:
    moving = copy.deepcopy(RECORDED)
    for index, one in enumerate(moving["rounds"]):
        window = one["idle_before"]
        window["start"]["energy_mj"] -= 700 * index
    assert update_periods(moving) is None


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_period, "_MOST_WORK", 100)
    energy_period._fitting.cache_clear()
    assert update_periods(RECORDED) is None
    energy_period._fitting.cache_clear()


def test_at_most_five_ranges_are_named() -> None:
    assert in_words(Periods(ranges_ms=((96.0, 96.0), *((97.0 + index, 97.5 + index) for index in range(6))))).endswith(" and 2 more")
    assert in_words(Periods(ranges_ms=((96.0, 96.0),))) == "96 ms"
