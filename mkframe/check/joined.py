"""Whether a call has done all of its work when it ends: work on side streams, on threads, or left for later, is caught here."""

from collections.abc import Callable
from time import monotonic, perf_counter_ns, sleep
from typing import Protocol

import torch

from mkframe.check.buffers import PATTERNS, Specs, Tensors, poison, read_back
from mkframe.check.case_data import BASE, CaseData
from mkframe.check.cell import CheckFailed, Evidence
from mkframe.check.threads import Threads
from mkframe.model.outcome import Rejected

NAME = "joined"
IDLE_NAME = "device idle"
EXCESS_SHARE, EXCESS_MS = 0.05, 0.020
_CALLS = 3
_HOLD_CYCLES = 10_000_000  # about 5 ms: longer than any engine needs to enqueue a call
_LATEST_S = 1.0
_POLL_S = 0.02
_BLOCK_CALLS = 20
_REPEATS = 3


class Bound(Protocol):
    """An engine bound to tensors, as mkframe.check.cell.BoundCell."""

    @property
    def tensors(self) -> Tensors: ...

    @property
    def specs(self) -> Specs: ...

    @property
    def run(self) -> Callable[[], None]: ...


def check_joined(bound: Bound, data: CaseData, settle: Callable[[], None], evidence: Evidence) -> None:
    """Copies the outputs right behind a call, on its stream, and demands that the copy is right.

    On CUDA a delay goes first, and the poison is written behind it: a stream that was forked and not joined has written nothing yet
    when the copy is made, one that was not even forked has written before the poison came. On a CPU the copy is made when the call
    returns. No clock decides.

    Raises Rejected where the right output comes later, or where a call left a thread behind; CheckFailed where it never comes.
    """
    seen = {name: torch.empty_like(bound.tensors[name]) for name in data.outputs}
    bound.run()
    settle()
    threads = Threads()
    for _ in range(_CALLS):
        settle()
        if next(iter(seen.values())).is_cuda:
            torch.cuda._sleep(_HOLD_CYCLES)
        poison(bound.tensors, bound.specs, PATTERNS[0])
        bound.run()
        for name, copy in seen.items():
            copy.copy_(bound.tensors[name])
        settle()
        threads.check()
        if not data.judge(read_back(seen, data.outputs), BASE).passed:
            _blame(bound, data, settle)
    evidence.checks.append(NAME)


def _blame(bound: Bound, data: CaseData, settle: Callable[[], None]) -> None:
    """Raises Rejected where the output of a call is right once it was waited for, else CheckFailed."""
    poison(bound.tensors, bound.specs, PATTERNS[0])
    settle()
    bound.run()
    reject_if_late(bound, data, settle)
    raise CheckFailed(f"{NAME}: the output right behind a call is wrong, and stays so")


def reject_if_late(bound: Bound, data: CaseData, settle: Callable[[], None]) -> None:
    """For an output that is wrong after a call. Raises Rejected where it becomes right by itself."""
    latest = monotonic() + _LATEST_S
    while monotonic() < latest:
        settle()
        if data.judge(read_back(bound.tensors, data.outputs), BASE).passed:
            raise Rejected(f"{NAME}: the output is not there when a call has ended; it must join every stream and thread before that")
        sleep(_POLL_S)


def check_idle(run: Callable[[], None], stream: torch.cuda.Stream, evidence: Evidence) -> None:
    """Calls in a row between two events, not held: a delay would let work on other streams run ahead and hide.

    Raises Rejected where the device goes on working, in every repeat, after the stop event was reached.
    """
    run()
    torch.cuda.synchronize()
    found = [_after_stop(run, stream) for _ in range(_REPEATS)]
    if all(outlasts(stream_ms, excess_ms) for stream_ms, excess_ms in found):
        stream_ms, excess_ms = min(found, key=lambda pair: pair[1])
        raise Rejected(
            f"{IDLE_NAME}: the device works {excess_ms * 1e3:.1f} us longer than the events see ({stream_ms * 1e3:.1f} us); "
            "a call must join every stream before it returns"
        )
    evidence.checks.append(IDLE_NAME)


def outlasts(stream_ms: float, excess_ms: float) -> bool:
    """Whether the device's end lies more than 5 % + 20 us behind that of the stream. Both ends are seen by a waiting host, so that
    what launches cost falls out."""
    return excess_ms > EXCESS_SHARE * stream_ms + EXCESS_MS


def _after_stop(run: Callable[[], None], stream: torch.cuda.Stream) -> tuple[float, float]:
    """(time between the events, time from the stop event to an idle device), in ms. What it costs the host to ask an idle device is
    measured right after, and taken off."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record(stream)
    for _ in range(_BLOCK_CALLS):
        run()
    stop.record(stream)
    stop.synchronize()
    reached = perf_counter_ns()
    torch.cuda.synchronize()
    idle = perf_counter_ns()
    torch.cuda.synchronize()
    asked = perf_counter_ns()
    return start.elapsed_time(stop), ((idle - reached) - (asked - idle)) / 1e6
