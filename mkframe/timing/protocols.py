"""The timing protocols, in terms of readings: what one sample is. docs/measurement.md says what each is for.

Nothing here touches a device: a reading is anything with `warm_up` and `read`, so that the arithmetic is tested without one.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from mkframe.timing.collector import collector_off
from mkframe.timing.sampler import Block, Readable, Reading

PILOT_READINGS = 10


class Divided:
    """per_call, cold by eviction (calls = 1) and replay: one reading of `calls` calls in a row, divided by their number."""

    def __init__(self, readable: Readable, calls: int = 1, *, held: bool = True) -> None:
        self._readable = readable
        self._calls = calls
        self._held = held
        self.facts: Mapping[str, float] = MappingProxyType({} if calls == 1 else {"calls_per_sample": calls})

    def warm_up(self, count: int) -> None:
        self._readable.warm_up(count)

    def sample(self, count: int) -> Block:
        with collector_off():
            readings = [self._readable.read() for _ in range(count)]
        return _block(
            [r.stream_ms / self._calls for r in readings],
            [r.host_ms / self._calls for r in readings],
            readings,
            [r.late for r in readings] if self._held else None,
        )


class Slope:
    """unrolled, and cold by rotation: graphs with k1 and k2 calls in a chain, replayed in turn; a sample is
    (T(k2) - T(k1)) / (k2 - k1), so that everything which a replay costs once falls out."""

    def __init__(self, short: Readable, long: Readable, k1: int, k2: int, *, held: bool = True) -> None:
        assert 0 < k1 < k2, "the longer chain has more calls"
        self._short, self._long = short, long
        self._calls = k2 - k1
        self._held = held
        self.facts: Mapping[str, float] = MappingProxyType({"k1": k1, "k2": k2})

    def warm_up(self, count: int) -> None:
        self._short.warm_up(count)
        self._long.warm_up(count)

    def sample(self, count: int) -> Block:
        with collector_off():
            pairs = [(self._short.read(), self._long.read()) for _ in range(count)]
        return _block(
            [self._slope(short.stream_ms, long.stream_ms) for short, long in pairs],
            [self._slope(short.host_ms, long.host_ms) for short, long in pairs],
            [reading for pair in pairs for reading in pair],
            [short.late or long.late for short, long in pairs] if self._held else None,
        )

    def _slope(self, short_ms: float, long_ms: float) -> float:
        """A slope below zero is noise of a clock around next to nothing: a time cannot be negative."""
        return max((long_ms - short_ms) / self._calls, 0.0)


def longer_chain(short: Readable, k1: int, sets: int, least_us: float, most_calls: int, warmups: int) -> int:
    """k2 such that T(k2) - T(k1) is at least `least_us`, and a whole number of rotations more than k1.

    T(k1) / k1 holds a share of what a replay costs once, so it says too much of a call: half of it is taken.

    Raises ValueError where that takes more than `most_calls` calls.
    """
    short.warm_up(warmups)
    with collector_off():
        per_call_us = float(np.median([short.read().stream_ms for _ in range(PILOT_READINGS)])) * 1e3 / k1
    wanted = least_us / max(per_call_us / 2, 1e-3)
    extra = max(math.ceil(wanted / sets), 1) * sets
    if k1 + extra > most_calls:
        raise ValueError(f"a chain of {k1 + extra} calls is needed for {least_us:g} us, and {most_calls} are allowed")
    return k1 + extra


def _block(stream_ms: Sequence[float], host_ms: Sequence[float], readings: Sequence[Reading], late: Sequence[bool] | None) -> Block:
    return Block(
        stream_ms=np.array(stream_ms, dtype=np.float64),
        host_ms=np.array(host_ms, dtype=np.float64),
        stream_total_ms=sum(reading.stream_ms for reading in readings),
        host_total_ms=sum(reading.host_ms for reading in readings),
        late=None if late is None else sum(late),
    )
