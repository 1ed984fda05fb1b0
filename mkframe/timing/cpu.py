"""per_call on a CPU: a clock pair right around the call, and one outside of it."""

from collections.abc import Mapping
from time import perf_counter_ns
from types import MappingProxyType

import numpy as np

from mkframe.stats import Samples, clock_step_ms
from mkframe.timing.collector import collector_off
from mkframe.timing.sampler import Allowance, Block, Call, Interval, Readable, Subject, Timed

_STEP_READINGS = 1000


class CpuPerCall:
    """The stream time is a clock pair right around the call; the host time is a pair outside of that one."""

    allowance = Allowance(outside_ms=0.010, stream_on_host=True)  # under 1 us of clock readings, and 10 with the slowest clock of a PC

    def open(self, subject: Subject) -> Timed:
        return _TimedCall(subject.run)

    def open_twin(self, subject: Subject, timed: Timed) -> Timed | None:
        """None: nothing is launched."""
        return None

    def reading(self, call: Call, before: Call) -> Readable:
        return _Reading(call, before)

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        block = _TimedCall(_nothing).sample(count)
        return {("empty-call", "stream"): block.stream_ms, ("empty-call", "host"): block.host_ms}

    def step_ms(self) -> float | None:
        """The finest difference that this clock shows, from its own readings around nothing."""
        return clock_step_ms(_TimedCall(_nothing).sample(_STEP_READINGS).stream_ms)


class _TimedCall:
    facts: Mapping[str, float] = MappingProxyType({})

    def __init__(self, call: Call) -> None:
        self._call = call

    def warm_up(self, count: int) -> None:
        for _ in range(count):
            self._call()

    def sample(self, count: int) -> Block:
        stream, host = [0] * count, [0] * count
        call, clock = self._call, perf_counter_ns
        with collector_off():
            for index in range(count):
                outer = clock()
                start = clock()
                call()
                stop = clock()
                end = clock()
                stream[index] = stop - start
                host[index] = end - outer
        return Block(
            stream_ms=np.array(stream) / 1e6,
            host_ms=np.array(host) / 1e6,
            stream_total_ms=sum(stream) / 1e6,
            host_total_ms=sum(host) / 1e6,
        )


class _Reading:
    def __init__(self, call: Call, before: Call) -> None:
        self._call = call
        self._before = before

    def warm_up(self, count: int) -> None:
        for _ in range(count):
            self.read()

    def read(self) -> Interval:
        self._before()
        outer = perf_counter_ns()
        start = perf_counter_ns()
        self._call()
        stop = perf_counter_ns()
        end = perf_counter_ns()
        return Interval((stop - start) / 1e6, (end - outer) / 1e6)


def _nothing() -> None:
    return None
