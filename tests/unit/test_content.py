"""Known and fresh inputs: the rule, on samples that obey a law, and the measurement, on a clock that runs as it is told."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from test_check import CASE, FP16, Doubling

from mkframe.check import content
from mkframe.check.case_data import BASE, CaseData, draw_case
from mkframe.check.cell import BoundCell, Evidence, bind_cell
from mkframe.model.outcome import Rejected
from mkframe.plugin import Engine, Launches
from mkframe.timing.sampler import Interval

Make = Callable[[Any], Callable[[], float]]


@given(st.lists(st.floats(0.1, 10.0), min_size=6, max_size=40))
def test_the_interval_of_a_median_is_the_narrowest_that_holds_95_percent(values: list[float]) -> None:
    """Against the binomial distribution: from order statistic k + 1 to n - k, it holds the median with P(k < B < n - k)."""
    count = len(values)
    skips = [k for k in range((count + 1) // 2) if binom.cdf(count - k - 1, count, 0.5) - binom.cdf(k, count, 0.5) >= 0.95]
    ordered = sorted(values)
    assert content.median_interval(np.array(values)) == (ordered[max(skips)], ordered[count - 1 - max(skips)])


@pytest.mark.parametrize(
    ("known", "fresh", "step", "expected"),
    [
        (10.0, 12.0, None, True),
        (10.0, 10.9, None, False),  # less than 10 %
        (10.0, 12.0, 0.7, False),  # less than three steps
        (10.0, 12.0, 0.6, True),
        (12.0, 10.0, None, False),  # faster
    ],
)
def test_the_rule(known: float, fresh: float, step: float | None, expected: bool) -> None:
    wobble = np.linspace(-0.1, 0.1, 20) + math.pi * 1e-3
    assert content.suspicious(known + wobble, fresh + wobble, step) is expected


def test_a_slow_phase_with_a_fast_call_decides_nothing() -> None:
    """A call that must compute is never as fast as one that need not: a single fast one shows that the machine was slow."""
    wobble = np.linspace(-0.1, 0.1, 20)
    fresh = 1000.0 + wobble
    assert content.suspicious(10.0 + wobble, fresh, None)
    fresh[7] = 10.0
    assert not content.suspicious(10.0 + wobble, fresh, None)


def test_wide_intervals_decide_nothing() -> None:
    wobble = np.linspace(-8.0, 8.0, 20)
    assert not content.suspicious(10.0 + wobble, 12.0 + wobble, None)


class Clock:
    """Reads of a call what the call says that it took, in us."""

    def __init__(self, call: Callable[[], float], before: Callable[[], None]) -> None:
        self.call, self.before = call, before
        self.reads = 0

    def warm_up(self, count: int) -> None:
        for _ in range(count):
            self.read()

    def read(self) -> Interval:
        self.reads += 1
        self.before()
        taken_ms = self.call() / 1e3
        return Interval(taken_ms, taken_ms)


class Scripted(Engine):
    id, workload = "scripted", "doubling"

    def __init__(self, make: Make) -> None:
        self.make = make

    def bind(self, case: Any, precision: Any, tensors: Any, options: Any) -> Launches:
        return Launches(call=self.make(tensors))  # type: ignore[arg-type]


def honest(t: Any) -> Callable[[], float]:
    return lambda: 10.0


def drifting(t: Any) -> Callable[[], float]:
    """Slower and slower, whatever its input is."""
    calls = [0]

    def call() -> float:
        calls[0] += 1
        return 10.0 + 0.5 * calls[0]

    return call


def one_entry(t: Any) -> Callable[[], float]:
    kept: list[torch.Tensor] = []

    def call() -> float:
        if kept and torch.equal(kept[0], t["x"]):
            return 5.0
        kept[:] = [t["x"].clone()]
        return 10.0

    return call


def every_content(t: Any) -> Callable[[], float]:
    seen: set[bytes] = set()

    def call() -> float:
        key = t["x"].numpy().tobytes()
        known = key in seen
        seen.add(key)
        return 5.0 if known else 10.0

    return call


def only_the_timed_content(t: Any) -> Callable[[], float]:
    first = t["x"].clone()
    return lambda: 5.0 if torch.equal(first, t["x"]) else 10.0


def what_is_there(t: Any) -> Callable[[], float]:
    """Does nothing where its output still lies in place."""

    def call() -> float:
        if t["y"].isnan().any():
            t["y"].copy_(t["x"])
            return 10.0
        return 5.0

    return call


def after_a_streak(least: int) -> Make:
    """As `what_is_there`, after more than `least` calls in a row that found everything as it was."""

    def make(t: Any) -> Callable[[], float]:
        equal, last = [0], [t["x"].clone()]

        def call() -> float:
            same = torch.equal(last[0], t["x"]) and not t["y"].isnan().any()
            equal[0] = equal[0] + 1 if same else 0
            last[0] = t["x"].clone()
            t["y"].zero_()
            return 5.0 if equal[0] > least else 10.0

        return call

    return make


def cell(make: Make) -> tuple[BoundCell, CaseData]:
    data = draw_case(Doubling(), CASE, FP16, seed=1)
    shared = {name: data.variants[BASE].stored[name].clone() for name in ("x", "w")}
    bound = bind_cell(Scripted(make), None, data, shared, None, False)
    bound.tensors["y"].data.zero_()  # what the last timed call left behind
    return bound, data


@contextmanager
def input_left_as_it_was(bound: BoundCell, data: CaseData) -> Iterator[None]:
    yield
    assert torch.equal(bound.tensors["x"], data.variants[BASE].stored["x"])


@pytest.mark.parametrize("make", [honest, drifting])
def test_honest_engines_pass_after_one_repeat(make: Make) -> None:
    bound, data = cell(make)
    clocks: list[Clock] = []

    def reading(call: Any, before: Any) -> Clock:
        clocks.append(Clock(call, before))
        return clocks[0]

    evidence = Evidence()
    with input_left_as_it_was(bound, data):
        content.check_content(bound, data, reading, None, evidence)
    assert evidence.checks == ["fresh input"]
    assert clocks[0].reads <= 3 + 2 * 21 * (1 if make is honest else 2)


@pytest.mark.parametrize("make", [one_entry, every_content, only_the_timed_content, what_is_there])
def test_caches_are_found_whatever_they_hold(make: Make) -> None:
    bound, data = cell(make)
    with pytest.raises(
        Rejected, match=r"^fresh input: a call takes 10 us where input and output are new to it, and 5 us on the ones it knows, in 3 of 3"
    ):
        content.check_content(bound, data, Clock, None, Evidence())


def test_no_input_is_shown_twice_and_no_process_shows_that_of_another() -> None:
    shown: list[bytes] = []

    def recording(t: Any) -> Callable[[], float]:
        def call() -> float:
            shown.append(t["x"].numpy().tobytes())
            return 10.0 if shown[-1] != base else 5.0

        return call

    for _ in range(2):
        bound, data = cell(recording)
        base = data.variants[BASE].stored["x"].numpy().tobytes()
        with pytest.raises(Rejected):
            content.check_content(bound, data, Clock, None, Evidence())
    fresh = [key for key in shown if key != base]
    assert len(fresh) == len(set(fresh)) == 2 * 3 * 21


@pytest.mark.parametrize(("least", "streak", "found"), [(18, 40, True), (35, 40, True), (35, 0, False), (100, 40, False)])
def test_a_cache_for_long_streaks_is_found_where_the_streak_is_as_long(least: int, streak: int, found: bool) -> None:
    bound, data = cell(after_a_streak(least))
    for _ in range(streak):
        bound.run()
    evidence = Evidence()
    if found:
        with pytest.raises(Rejected, match=r"^fresh input"):
            content.check_content(bound, data, Clock, None, evidence, streak)
    else:
        content.check_content(bound, data, Clock, None, evidence, streak)
        assert evidence.checks == ["fresh input"]


def test_streaks_end_with_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_STREAK_BUDGET_S", -1.0)
    bound, data = cell(after_a_streak(35))
    for _ in range(40):
        bound.run()
    content.check_content(bound, data, Clock, None, Evidence(), 40)


def test_both_kinds_of_calls_follow_the_same_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same tensors and as many; known calls find the last output, fresh ones poison; neither moves torch's count of changes."""
    found: list[tuple[bool, bool, list[int]]] = []
    written: list[int] = []
    right, poisoned = content.write, content.poison
    monkeypatch.setattr(content, "write", lambda tensor, value: (written.append(tensor.data_ptr()), right(tensor, value)))
    monkeypatch.setattr(content, "poison", lambda tensors, *rest: (written.append(tensors["y"].data_ptr()), poisoned(tensors, *rest)))

    def looking(t: Any) -> Callable[[], float]:
        base, versions = t["x"].clone(), (t["x"]._version, t["y"]._version)

        def call() -> float:
            assert (t["x"]._version, t["y"]._version) == versions
            known = torch.equal(base, t["x"])
            found.append((known, bool(torch.all(t["y"] == 3)), sorted(written)))
            assert bool(t["y"].isnan().all()) != found[-1][1]
            written.clear()
            return 10.0

        return call

    bound, data = cell(looking)
    bound.tensors["y"].data.fill_(3)
    content.check_content(bound, data, Clock, None, Evidence())
    assert {(known, kept) for known, kept, _ in found} == {(True, True), (False, False)}
    assert len({tuple(places) for *_, places in found}) == 1
    assert torch.all(bound.tensors["y"] == 3)


def test_large_inputs_are_drawn_again_rather_than_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_KEPT_BYTES", 1)
    bound, data = cell(every_content)
    with pytest.raises(Rejected):
        content.check_content(bound, data, Clock, None, Evidence())


def test_a_slow_call_is_made_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_BUDGET_S", 0.0)
    bound, data = cell(honest)
    clocks: list[Clock] = []

    def reading(call: Any, before: Any) -> Clock:
        clocks.append(Clock(call, before))
        return clocks[0]

    content.check_content(bound, data, reading, None, Evidence())
    assert clocks[0].reads == 3 + 2 * 7


@pytest.mark.parametrize("make", [honest, what_is_there])
def test_a_workload_without_inputs_still_has_outputs(make: Make) -> None:
    bound, data = cell(make)
    without = replace(data, specs={name: spec for name, spec in data.specs.items() if name != "x"})
    evidence = Evidence()
    if make is honest:
        content.check_content(bound, without, Clock, None, evidence)
        assert evidence.checks == ["fresh input"]
    else:
        with pytest.raises(Rejected, match=r"^fresh input"):
            content.check_content(bound, without, Clock, None, evidence)
