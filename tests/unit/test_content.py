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


def cell(make: Make) -> tuple[BoundCell, CaseData]:
    data = draw_case(Doubling(), CASE, FP16, seed=1)
    shared = {name: data.variants[BASE].stored[name].clone() for name in ("x", "w")}
    return bind_cell(Scripted(make), None, data, shared, None, False), data


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
    assert clocks[0].reads <= 3 + 4 * 11 * (1 if make is honest else 2)


@pytest.mark.parametrize("make", [one_entry, every_content, only_the_timed_content])
def test_caches_are_found_whatever_they_hold(make: Make) -> None:
    bound, data = cell(make)
    with pytest.raises(
        Rejected, match=r"^fresh input: a call takes 10 us on an input that it has not seen, and 5 us on the one that it knows"
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
    assert len(fresh) == len(set(fresh)) == 2 * 3 * 22


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
    assert clocks[0].reads == 3 + 4 * 4


def test_a_workload_without_inputs_has_nothing_to_cache() -> None:
    bound, data = cell(honest)
    without = replace(data, specs={name: spec for name, spec in data.specs.items() if name != "x"})
    evidence = Evidence()
    content.check_content(bound, without, Clock, None, evidence)
    assert evidence.checks == []
