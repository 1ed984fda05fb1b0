"""The CPU sampler and the clock readers. What a call costs is not asserted anywhere: only what the samples must satisfy."""

import gc
import time

import numpy as np
import pytest

from mkframe.model.device import ClockReading
from mkframe.timing import clocks
from mkframe.timing.cpu import CpuPerCall
from mkframe.timing.sampler import Call, Subject, Timed


def timed(call: Call) -> Timed:
    return CpuPerCall().open(Subject(run=call))


def test_one_call_is_one_sample() -> None:
    calls = []
    block = timed(lambda: calls.append(1)).sample(50)
    assert len(calls) == block.stream_ms.size == block.host_ms.size == 50
    assert block.late is None


def test_warm_up_calls_are_no_samples() -> None:
    calls = []
    timed(lambda: calls.append(1)).warm_up(7)
    assert len(calls) == 7


def test_the_host_pair_lies_outside_of_the_stream_pair() -> None:
    block = timed(lambda: time.sleep(1e-4)).sample(20)
    assert np.all(block.host_ms >= block.stream_ms)
    assert np.all(block.stream_ms >= 0.1)  # milliseconds: a sleep never ends early


def test_a_failing_call_leaves_the_collector_as_it_was() -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise RuntimeError

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        timed(fail).sample(3)
    assert gc.isenabled()


def test_floors_and_step_come_from_the_clock() -> None:
    sampler = CpuPerCall()
    floors = sampler.floors(100)
    assert set(floors) == {("empty-call", "stream"), ("empty-call", "host")}
    assert np.all(floors["empty-call", "host"] >= floors["empty-call", "stream"])
    step = sampler.step_ms()
    assert step is None or step > 0


def test_cpu_clock_in_megahertz(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "scaling_cur_freq"
    monkeypatch.setattr(clocks, "_CPU_CLOCK", file)
    assert clocks.CpuClocks().read() == ClockReading()
    file.write_text("3200000\n")
    assert clocks.CpuClocks().read() == ClockReading(sm_clock_mhz=3200.0)
