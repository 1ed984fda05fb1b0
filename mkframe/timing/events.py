"""One interval between two CUDA events, held or not, with the host clock around it."""

from collections.abc import Sequence
from time import perf_counter_ns

import numpy as np
import torch

from mkframe.timing.sampler import Call, Interval

_CALIBRATION_CYCLES = 2_000_000
_MARGIN_US = 20.0
_FACTOR = 1.5
_GROWTH = 1.25
_LONGEST_DELAY_US = 5000.0


class EventClock:
    """A stream, a pair of events, and the rate of torch's delay kernel in cycles per microsecond."""

    def __init__(self, stream: torch.cuda.Stream, hold: bool) -> None:
        self.stream = stream
        self.hold = hold
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)
        self.cycles_per_us = _cycles_per_us(stream) if hold else 0.0


class Held:
    """A call that is read by an EventClock.

    Where the clock holds, a delay kernel goes first and keeps the GPU busy until the events and the call are all enqueued, so
    that the host's pace is out of the stream time. The delay is 1.5 times the longest enqueue seen in the later half of the
    warm-up plus 20 us, and a quarter longer after every reading that the GPU reached too early. `before` goes ahead of the delay.
    """

    def __init__(self, clock: EventClock, call: Call, before: Call | None = None) -> None:
        self._clock = clock
        self._call = call
        self._before = before
        self._delay_cycles = 0

    def warm_up(self, count: int) -> None:
        """Runs the call as it will be timed, and learns how long the host needs to enqueue it."""
        longest_us = later_half_max([self._enqueue_ns() for _ in range(count)]) / 1e3
        self._delay_cycles = int((_FACTOR * longest_us + _MARGIN_US) * self._clock.cycles_per_us)

    def read(self) -> Interval:
        """One timed call, waited for. Must run with the clock's stream as torch's current one."""
        clock = self._clock
        if self._before is not None:
            self._before()
        if clock.hold:
            torch.cuda._sleep(self._delay_cycles)
        begin = perf_counter_ns()
        clock.start.record(clock.stream)
        self._call()
        clock.stop.record(clock.stream)
        late = clock.hold and bool(clock.start.query())
        clock.stop.synchronize()
        elapsed_ns = perf_counter_ns() - begin
        if late:  # the host has slowed down since the warm-up: the next sample waits longer
            self._delay_cycles = min(int(self._delay_cycles * _GROWTH), int(_LONGEST_DELAY_US * clock.cycles_per_us))
        return Interval(clock.start.elapsed_time(clock.stop), elapsed_ns / 1e6, late)

    def _enqueue_ns(self) -> int:
        clock = self._clock
        if self._before is not None:
            self._before()
        begin = perf_counter_ns()
        clock.start.record(clock.stream)
        self._call()
        clock.stop.record(clock.stream)
        elapsed = perf_counter_ns() - begin
        clock.stop.synchronize()
        return elapsed


def later_half_max(values: Sequence[int]) -> int:
    """The largest of the later half: the first calls load modules and fill caches. 0 without values."""
    return max(values[len(values) // 2 :], default=0)


def _cycles_per_us(stream: torch.cuda.Stream) -> float:
    """How many cycles torch's delay kernel counts per microsecond at the clock of this moment (median of five)."""
    rates = []
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        for _ in range(5):
            start.record(stream)
            torch.cuda._sleep(_CALIBRATION_CYCLES)
            stop.record(stream)
            stop.synchronize()
            rates.append(_CALIBRATION_CYCLES / (start.elapsed_time(stop) * 1e3))
    return float(np.median(rates))
