"""per_call on a CPU: a clock pair right around the call, and one outside of it."""

import gc
from time import perf_counter_ns

import numpy as np

from mkframe.stats import Samples, clock_step_ms
from mkframe.timing.sampler import Block, Call


class CpuPerCall:
    """The stream time is a clock pair right around the call; the host time is a pair outside of that one."""

    def warm_up(self, call: Call, count: int) -> None:
        for _ in range(count):
            call()

    def sample(self, call: Call, count: int) -> Block:
        stream, host = [0] * count, [0] * count
        clock = perf_counter_ns
        collecting = gc.isenabled()
        gc.disable()  # a collection inside a sample is the framework's time, not the engine's
        try:
            for index in range(count):
                outer = clock()
                start = clock()
                call()
                stop = clock()
                end = clock()
                stream[index] = stop - start
                host[index] = end - outer
        finally:
            if collecting:
                gc.enable()
        return Block(stream_ms=np.array(stream) / 1e6, host_ms=np.array(host) / 1e6)

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        block = self.sample(_nothing, count)
        return {("empty-call", "stream"): block.stream_ms, ("empty-call", "host"): block.host_ms}

    def step_ms(self) -> float | None:
        """The finest difference that this clock shows, from its own readings around nothing."""
        return clock_step_ms(self.sample(_nothing, 1000).stream_ms)


def _nothing() -> None:
    return None
