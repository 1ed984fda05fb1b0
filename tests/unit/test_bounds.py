"""What samples may add up to."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.model.outcome import Rejected
from mkframe.timing.bounds import LoopClock, contradiction
from mkframe.timing.cpu import CpuPerCall
from mkframe.timing.cuda import CudaSampler
from mkframe.timing.sampler import Allowance, Block, Subject

CPU, CUDA = CpuPerCall.allowance, CudaSampler.allowance
allowances = st.sampled_from([CPU, CUDA])
durations = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50)


def block(host_ms: list[float], scale: float = 1.0, stream_scale: float = 1.0) -> Block:
    host = np.array(host_ms) * scale
    return Block(
        stream_ms=host * stream_scale, host_ms=host, stream_total_ms=float(host.sum()) * stream_scale, host_total_ms=float(host.sum())
    )


@given(allowances, durations, st.floats(0.0, 1.0), st.floats(0.0, 100.0), st.floats(0.0, 1.0))
def test_an_honest_block_never_contradicts_its_clocks(
    allowance: Allowance, host_ms: list[float], busy: float, pauses_ms: float, outside: float
) -> None:
    """`busy`: the share of its calls that the thread itself computed; `pauses_ms`: between samples; `outside`: of what a loop may take."""
    own_ms = allowance.outside_ms * outside * len(host_ms)
    wall_ms = sum(host_ms) + pauses_ms + own_ms
    assert contradiction(block(host_ms), allowance, wall_ms, sum(host_ms) * busy + own_ms) is None


@given(durations, st.floats(1.5, 1e3))
def test_times_beyond_the_wall_clock_are_found(host_ms: list[float], factor: float) -> None:
    wall_ms = max(sum(host_ms), 10.0)
    for clock, found in (("host", block([wall_ms], factor)), ("stream", block([wall_ms], 1.0, factor))):
        reason = contradiction(found, CUDA, wall_ms, 0.0)
        assert reason is not None
        assert reason.startswith(f"the {clock} times")


@given(allowances, st.integers(1, 50), st.floats(1.0, 1e3), st.floats(0.0, 0.6))
def test_times_below_the_cpu_time_are_found(allowance: Allowance, calls: int, call_ms: float, factor: float) -> None:
    total_ms = calls * call_ms + 20
    reason = contradiction(block([total_ms / calls] * calls, factor), allowance, total_ms, total_ms)
    assert reason is not None
    assert "CPU time" in reason


@given(st.integers(100, 400), st.floats(0.05, 10.0), st.floats(0.0, 0.5))
def test_short_calls_are_bounded_on_a_cpu_and_by_either_clock(calls: int, call_ms: float, factor: float) -> None:
    """A hundred calls of 50 us are enough, and the stream times alone are."""
    total_ms = calls * call_ms
    for found, clock in ((block([call_ms] * calls, factor), "host"), (block([call_ms] * calls, 1.0, factor), "stream")):
        reason = contradiction(found, CPU, total_ms, total_ms)
        assert reason is not None
        assert reason.startswith(f"the {clock} times")
    assert contradiction(block([call_ms] * calls, 1.0, factor), CUDA, total_ms, total_ms) is None, "a device has a clock of its own"


@pytest.mark.parametrize("total", [float("nan"), float("inf"), -1.0])
def test_what_is_no_duration_is_found(total: float) -> None:
    assert contradiction(block([total]), CUDA, 1.0, 0.0) is not None


def test_the_clock_of_a_real_block_holds_and_that_of_another_does_not() -> None:
    timed = CpuPerCall().open(Subject(run=lambda: time.sleep(1e-3)))
    clock = LoopClock()
    found = timed.sample(20)
    clock.check(found, CPU)
    with pytest.raises(Rejected, match=r"^loop clock: the host times of a block add up to"):
        LoopClock().check(found, CPU)
