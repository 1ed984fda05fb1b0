"""per_call on a CUDA device: one call between two events, the host clock around the call and its synchronisation."""

import gc
from time import perf_counter_ns

import numpy as np
import torch

from mkframe.graph.capture import capture
from mkframe.stats import Samples
from mkframe.timing.sampler import Block, Call

_CALIBRATION_CYCLES = 2_000_000
_MARGIN_US = 20.0
_GROWTH = 1.25
_LONGEST_DELAY_US = 2000.0


class CudaPerCall:
    """With `hold`, a delay kernel in front keeps the GPU busy until the events and the call are all enqueued, so that the
    host's pace is out of the stream time. The delay is 1.5 times the longest enqueue seen in the warm-up plus
    20 us, and a quarter longer after every sample that the GPU reached too early."""

    def __init__(self, stream: torch.cuda.Stream, hold: bool) -> None:
        self._stream = stream
        self._hold = hold
        self._start = torch.cuda.Event(enable_timing=True)
        self._stop = torch.cuda.Event(enable_timing=True)
        self._cycles_per_us = _cycles_per_us(stream) if hold else 0.0
        self._delay_cycles = 0

    def warm_up(self, call: Call, count: int) -> None:
        """Runs the call as it will be timed, and learns how long the host needs to enqueue it."""
        enqueue_ns = [self._enqueue_ns(call) for _ in range(count)]
        self._stream.synchronize()
        # the first calls load modules and fill caches: the later half shows the pace
        longest_us = max(enqueue_ns[count // 2 :], default=0) / 1e3
        self._delay_cycles = int((1.5 * longest_us + _MARGIN_US) * self._cycles_per_us)

    def sample(self, call: Call, count: int) -> Block:
        stream_ms, host_ms = np.empty(count), np.empty(count)
        take = self._held if self._hold else self._plain
        collecting = gc.isenabled()
        gc.disable()  # a collection inside a sample is the framework's time, not the engine's
        late = 0
        try:
            with torch.cuda.stream(self._stream):
                for index in range(count):
                    elapsed_ns, was_late = take(call)
                    stream_ms[index] = self._start.elapsed_time(self._stop)
                    host_ms[index] = elapsed_ns / 1e6
                    late += was_late
        finally:
            if collecting:
                gc.enable()
        return Block(stream_ms=stream_ms, host_ms=host_ms, late=late if self._hold else None)

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        """The event pair around nothing, around an empty kernel, and around a graph of one empty kernel."""
        graph = capture(_empty_kernel, self._stream)
        found: dict[tuple[str, str], Samples] = {}
        for name, call in (("empty-pair", _nothing), ("empty-kernel", _empty_kernel), ("empty-kernel-graph", graph.replay)):
            self.warm_up(call, 20)
            block = self.sample(call, count)
            found[name, "stream"], found[name, "host"] = block.stream_ms, block.host_ms
        return found

    def step_ms(self) -> float | None:
        """None: the step of events shows in the samples of a whole run (stats.event_step_ms)."""
        return None

    def _plain(self, call: Call) -> tuple[int, bool]:
        begin = perf_counter_ns()
        self._start.record(self._stream)
        call()
        self._stop.record(self._stream)
        self._stop.synchronize()
        return perf_counter_ns() - begin, False

    def _held(self, call: Call) -> tuple[int, bool]:
        torch.cuda._sleep(self._delay_cycles)
        begin = perf_counter_ns()
        self._start.record(self._stream)
        call()
        self._stop.record(self._stream)
        late = bool(self._start.query())
        self._stop.synchronize()
        elapsed_ns = perf_counter_ns() - begin
        if late:  # the host has slowed down since the warm-up: the next sample waits longer
            self._delay_cycles = min(int(self._delay_cycles * _GROWTH), int(_LONGEST_DELAY_US * self._cycles_per_us))
        return elapsed_ns, late

    def _enqueue_ns(self, call: Call) -> int:
        with torch.cuda.stream(self._stream):
            begin = perf_counter_ns()
            self._start.record(self._stream)
            call()
            self._stop.record(self._stream)
            elapsed = perf_counter_ns() - begin
        self._stop.synchronize()
        return elapsed


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


def _empty_kernel() -> None:
    torch.cuda._sleep(0)


def _nothing() -> None:
    return None
