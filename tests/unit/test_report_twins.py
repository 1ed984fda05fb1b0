"""Launch twins: what the report makes of the samples of several processes."""

from dataclasses import replace

import numpy as np
import pytest
from probe_fakes import FakeGpu

from mkframe.model.device_card import MeasuredCard
from mkframe.model.launch import LaunchRecord
from mkframe.model.report import TwinRecord
from mkframe.probe.session import probe_gpu
from mkframe.report.twins import floors_ms, twin_record
from mkframe.run.messages import TwinDone


def done(*samples_ms: float, reason: str | None = None) -> TwinDone:
    return TwinDone(engine="e", stream_ms=np.array(samples_ms), reason=reason)


def test_samples_of_all_processes_count() -> None:
    found = twin_record({1: done(5.0, 7.0), 0: done(1.0)}, (), None)
    assert found is not None
    assert found.stream_summary is not None
    assert (found.stream_summary.count, found.stream_summary.p50_ms) == (3, 5.0)
    assert found.stream_summary.mean_ms == pytest.approx(13 / 3)
    assert found.reason is None


def test_a_process_without_a_twin_does_not_hide_the_others() -> None:
    found = twin_record({0: done(reason="refused"), 1: done(2.0)}, (), None)
    assert found is not None
    assert found.stream_summary is not None
    assert (found.stream_summary.p50_ms, found.reason) == (2.0, None)


def test_why_there_is_none_is_told() -> None:
    assert twin_record({0: done(reason="CUDA driver error X")}, (), None) == TwinRecord(stream_summary=None, reason="CUDA driver error X")
    assert twin_record({}, (), None) is None


@pytest.fixture(scope="module")
def card() -> MeasuredCard:
    gpu = FakeGpu()
    return probe_gpu(gpu, rounds=2, now=gpu.now)


KERNEL = LaunchRecord(
    name="k",
    grid=(2, 2, 1),
    block=(64, 2, 1),
    cluster=(1, 1, 1),
    shared_bytes=0,
    cooperative=False,
    programmatic=False,
    registers=32,
    local_bytes=0,
)


def test_the_card_tells_the_sum_of_the_nearest_floors(card: MeasuredCard) -> None:
    early = replace(KERNEL, programmatic=True, cluster=(2, 1, 1))
    floors = [
        next(floor for floor in card.launches or () if asked(floor) and floor.body == "empty")
        for asked in (
            lambda f: (f.grid, f.block, f.shared_bytes, f.cluster, f.cooperative, f.programmatic) == (4, 128, 0, 1, False, False),
            lambda f: (f.grid, f.block, f.shared_bytes, f.cluster, f.cooperative, f.programmatic) == (4, 128, 0, 2, False, True),
        )
    ]
    expected_us = sum(floor.time.median_us for floor in floors if floor.time is not None)
    found = twin_record({0: done(2.0)}, (KERNEL, early), card)
    assert found is not None
    assert found.card_ms == pytest.approx(expected_us / 1e3)
    assert found.card_ms > 0


def test_the_card_tells_nothing_of_a_kind_that_it_has_no_floor_of(card: MeasuredCard) -> None:
    assert floors_ms((KERNEL, replace(KERNEL, cluster=(3, 1, 1))), card) is None
    assert floors_ms((), card) is None
