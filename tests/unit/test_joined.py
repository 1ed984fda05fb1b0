"""Work that a call leaves for later, threads that it leaves behind, tensors that it moves; on a CPU."""

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_check import CASE, FP16, Doubling

from mkframe.check.case_data import BASE, CaseData, draw_case
from mkframe.check.cell import BoundCell, CheckFailed, Evidence, bind_cell
from mkframe.check.joined import check_idle, check_joined, outlasts
from mkframe.check.places import Places
from mkframe.check.threads import Threads
from mkframe.model.outcome import Rejected
from mkframe.plugin import Engine, Launches

Tensors = Mapping[str, torch.Tensor]
Work = Callable[[], None]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What the threads of a test wait for; at its end none waits any more."""
    event = threading.Event()
    yield event
    event.set()


class Bound(Engine):
    id, workload = "bound", "doubling"

    def __init__(self, make: Callable[[Tensors], Work]) -> None:
        self.make = make

    def bind(self, case: Any, precision: Any, tensors: Tensors, options: Any) -> Launches:
        return Launches(call=self.make(tensors))


def right(t: Tensors) -> None:
    y = 2 * t["x"].float() * t["w"].float()
    t["y"].copy_(y)
    t["positive"].copy_((y > 0).sum(1))


def cell(make: Callable[[Tensors], Work]) -> tuple[BoundCell, CaseData]:
    data = draw_case(Doubling(), CASE, FP16, seed=1)
    shared = {name: data.variants[BASE].stored[name].clone() for name in ("x", "w")}
    return bind_cell(Bound(make), None, data, shared, None, False), data


def check(make: Callable[[Tensors], Work]) -> Evidence:
    bound, data = cell(make)
    evidence = Evidence()
    check_joined(bound, data, lambda: None, evidence)
    return evidence


def test_a_call_that_is_done_when_it_returns_passes() -> None:
    assert check(lambda t: lambda: right(t)).checks == ["joined"]


def test_a_call_that_leaves_its_work_to_a_thread_is_rejected() -> None:
    orders: queue.SimpleQueue[Work | None] = queue.SimpleQueue()

    def work() -> None:
        while (order := orders.get()) is not None:
            threading.Event().wait(0.05)  # as if there was much to do
            order()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with pytest.raises(Rejected, match=r"^joined: the output is not there when a call has ended"):
            check(lambda t: lambda: orders.put(lambda: right(t)))
    finally:
        orders.put(None)
        thread.join()


def test_a_call_that_leaves_one_output_for_the_next_call_is_wrong() -> None:
    def make(t: Tensors) -> Work:
        calls = [0]

        def call() -> None:
            calls[0] += 1
            if calls[0] == 1:
                right(t)
            else:
                t["positive"].zero_()

        return call

    with pytest.raises(CheckFailed, match="stays so"):
        check(make)


def test_a_call_that_leaves_a_thread_is_rejected(release: threading.Event) -> None:
    def make(t: Tensors) -> Work:
        def call() -> None:
            right(t)
            threading.Thread(target=release.wait, name="helper").start()

        return call

    with pytest.raises(Rejected, match=r"^threads: warm calls left 1 thread\(s\) more in the process \(helper\)"):
        check(make)


def test_a_thread_that_was_there_or_has_ended_is_none(release: threading.Event) -> None:
    waiting = threading.Thread(target=release.wait)
    waiting.start()
    threads = Threads()
    gone = threading.Thread(target=lambda: None)
    gone.start()
    gone.join()
    threads.check()
    release.set()
    waiting.join()
    threads.check()


def test_threads_that_python_does_not_know_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from mkframe.check import threads as module

    monkeypatch.setattr(module, "_native", lambda: {"1", "2"})
    before = Threads()
    monkeypatch.setattr(module, "_native", lambda: {"1", "3", "4"})
    with pytest.raises(Rejected, match=r"left 2 thread\(s\) more in the process$"):
        before.check()


@given(st.floats(0.0, 1e4), st.floats(0.0, 1.0))
def test_a_device_may_end_five_percent_and_twenty_microseconds_later(stream_ms: float, share: float) -> None:
    allowed_ms = 0.05 * stream_ms + 0.02
    assert not outlasts(stream_ms, share * allowed_ms * 0.999)
    assert outlasts(stream_ms, allowed_ms * 1.001 + share)


class Lazy(torch.Tensor):
    pass


def become_lazy(y: torch.Tensor) -> None:
    y.__class__ = Lazy


def move_data(y: torch.Tensor) -> None:
    y.data = y.clone()


MOVES: dict[str, Callable[[torch.Tensor], Any]] = {
    "another class": become_lazy,
    "data": move_data,
    "set_": lambda y: y.set_(y.clone()),
    "transposed": lambda y: y.t_(),
    "resized": lambda y: y.resize_(2, 2),
    "a slice": lambda y: y.set_(y[1:]),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_tensor_that_is_something_else_is_found(move: Callable[[torch.Tensor], Any]) -> None:
    tensors = {"x": torch.zeros(3, 4), "y": torch.zeros(3, 4)}
    places = Places(tensors)
    tensors["y"].add_(1)
    places.check()
    move(tensors["y"])
    with pytest.raises(Rejected, match=r"^plain tensors: .* y "):
        places.check()


def test_what_an_engine_does_to_its_dictionary_is_its_own_affair() -> None:
    def make(t: Any) -> Work:
        mine = dict(t)
        t["y"] = torch.zeros(1)
        t.pop("x")
        return lambda: right(mine)

    assert check(make).checks == ["joined"]


class FakeGpu:
    """A device on a clock of its own, in us: calls keep the stream busy for `call_us` and, where not joined, another one for
    `side_us`; asking it costs the host `ask_us`."""

    def __init__(self, call_us: float, side_us: float = 0.0, ask_us: float = 15.0) -> None:
        self.call_us, self.side_us, self.ask_us = call_us, side_us, ask_us
        self.now = self.stream_end = self.side_end = 0.0

    def run(self) -> None:
        self.now += 5.0  # to enqueue it
        self.stream_end = max(self.stream_end, self.now) + self.call_us
        self.side_end = max(self.side_end, self.now) + self.side_us

    def synchronize(self) -> None:
        self.now = max(self.now, self.stream_end, self.side_end) + self.ask_us

    def perf_counter_ns(self) -> int:
        return round(self.now * 1e3)

    def event(self, enable_timing: bool) -> "FakeEvent":
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.at = gpu, 0.0

    def record(self, stream: Any) -> None:
        self.at = max(self.gpu.now, self.gpu.stream_end)

    def synchronize(self) -> None:
        self.gpu.now = max(self.gpu.now, self.at)

    def elapsed_time(self, other: "FakeEvent") -> float:
        return (other.at - self.at) / 1e3


@pytest.mark.parametrize(
    ("gpu", "busy"),
    [
        (FakeGpu(10.0), False),
        (FakeGpu(10.0, ask_us=500.0), False),
        (FakeGpu(1.0, side_us=15.0), True),  # a backlog grows: it is enqueued faster than it is worked off
        (FakeGpu(10.0, side_us=10.5), False),
        (FakeGpu(10.0, side_us=500.0), True),
    ],
)
def test_a_device_that_works_on_after_the_stop_event_is_rejected(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu, busy: bool) -> None:
    from mkframe.check import joined

    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.synchronize)
    monkeypatch.setattr(joined, "perf_counter_ns", gpu.perf_counter_ns)
    evidence, stream = Evidence(), cast("torch.cuda.Stream", None)
    if busy:
        with pytest.raises(Rejected, match=r"^device idle: the device works .* us longer than the events see"):
            check_idle(gpu.run, stream, evidence)
    else:
        check_idle(gpu.run, stream, evidence)
        assert evidence.checks == ["device idle"]
