"""The arithmetic of the timing protocols, on clocks that obey a known law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.graph import edges
from mkframe.timing.events import Interval, later_half_max
from mkframe.timing.protocols import Divided, Slope, longer_chain


class Chain:
    """A reading of `calls` calls that obeys time = fixed + calls x per_call, in us, and every third one is late."""

    def __init__(self, calls: int, per_call_us: float, fixed_us: float, noise: np.random.Generator | None = None) -> None:
        self.calls, self.per_call_us, self.fixed_us, self.noise = calls, per_call_us, fixed_us, noise
        self.warm_ups = self.readings = 0

    def warm_up(self, count: int) -> None:
        self.warm_ups += count

    def read(self) -> Interval:
        self.readings += 1
        wobble = 0.0 if self.noise is None else self.noise.normal(scale=0.05)
        stream = (self.fixed_us + self.calls * self.per_call_us + wobble) / 1e3
        return Interval(stream, stream + 0.040, self.readings % 3 == 0)


@given(st.floats(0.5, 100.0), st.floats(0.0, 50.0), st.integers(1, 50), st.integers(1, 500))
def test_a_slope_is_free_of_what_a_replay_costs_once(per_call_us: float, fixed_us: float, k1: int, extra: int) -> None:
    short, long = Chain(k1, per_call_us, fixed_us), Chain(k1 + extra, per_call_us, fixed_us)
    slope = Slope(short, long, k1, k1 + extra)
    slope.warm_up(4)
    block = slope.sample(6)
    assert (short.warm_ups, long.warm_ups, short.readings, long.readings) == (4, 4, 6, 6)
    assert block.stream_ms == pytest.approx(np.full(6, per_call_us / 1e3), rel=1e-9, abs=1e-9)
    assert block.host_ms == pytest.approx(block.stream_ms, rel=1e-9, abs=1e-9)
    assert block.late == 2
    assert dict(slope.facts) == {"k1": k1, "k2": k1 + extra}


def test_a_slope_is_never_negative() -> None:
    assert Slope(Chain(1, 0.0, 5.0), Chain(2, 0.0, 4.0), 1, 2).sample(3).stream_ms.tolist() == [0.0] * 3


@given(st.floats(0.5, 100.0), st.floats(0.0, 50.0), st.integers(1, 100))
def test_replays_are_divided_by_their_number(per_call_us: float, fixed_us: float, calls: int) -> None:
    block = Divided(Chain(calls, per_call_us, fixed_us), calls).sample(5)
    assert block.stream_ms == pytest.approx(np.full(5, (per_call_us + fixed_us / calls) / 1e3), rel=1e-9)
    assert np.all(block.host_ms >= block.stream_ms)


def test_without_hold_nothing_can_be_late() -> None:
    assert Divided(Chain(1, 1.0, 1.0), held=False).sample(6).late is None
    assert Slope(Chain(1, 1.0, 1.0), Chain(2, 1.0, 1.0), 1, 2, held=False).sample(6).late is None


@given(st.floats(0.5, 60.0), st.floats(0.0, 10.0), st.integers(1, 8), st.integers(5, 40))
def test_the_longer_chain_is_long_enough_and_whole_rotations_longer(per_call_us: float, fixed_us: float, sets: int, k1: int) -> None:
    k2 = longer_chain(Chain(k1, per_call_us, fixed_us), k1, sets, 200.0, 10_000, warmups=3)
    assert (k2 - k1) % sets == 0
    if fixed_us <= per_call_us * k1:  # what a replay costs once is no more than the calls of the short chain
        assert (k2 - k1) * per_call_us >= 200.0


def test_a_chain_that_would_grow_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="4000 are allowed"):
        longer_chain(Chain(20, 1e-6, 0.0), 20, 4, 200.0, 4000, warmups=1)


def test_the_later_half_decides() -> None:
    assert later_half_max([900, 800, 30, 20, 40]) == 40
    assert later_half_max([]) == 0


def chain_edges(calls: int, per_call: int, *, programmatic_at: tuple[int, ...] = (), shuffled: bool = False) -> list[tuple[int, int, bool]]:
    """A line of calls x per_call nodes; edge i leads to node i + 1."""
    names = list(range(calls * per_call))
    if shuffled:
        np.random.default_rng(1).shuffle(names)
    return [(names[i], names[i + 1], i in programmatic_at) for i in range(calls * per_call - 1)]


@pytest.mark.parametrize("shuffled", [False, True])
def test_edges_between_calls(shuffled: bool) -> None:
    inside, between = 1, 2  # with three nodes a call, edge 2 leads from the first call to the second
    assert edges.weakest(chain_edges(4, 3, shuffled=shuffled), 12, 4) == "full"
    assert edges.weakest(chain_edges(4, 3, programmatic_at=(inside,), shuffled=shuffled), 12, 4) == "full"
    assert edges.weakest(chain_edges(4, 3, programmatic_at=(between,), shuffled=shuffled), 12, 4) == "programmatic"


def test_unequal_or_unconnected_calls_are_told() -> None:
    with pytest.raises(RuntimeError, match="no whole number"):
        edges.weakest(chain_edges(4, 3), 12, 5)
    with pytest.raises(RuntimeError, match="waits for no earlier one"):
        edges.weakest([edge for edge in chain_edges(3, 1) if edge[1] != 2], 3, 3)
