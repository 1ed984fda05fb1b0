"""Launch twins: what the report makes of the samples of several processes."""

import numpy as np
import pytest

from mkframe.model.report import TwinRecord
from mkframe.report.twins import twin_record
from mkframe.run.messages import TwinDone


def done(*samples_ms: float, reason: str | None = None) -> TwinDone:
    return TwinDone(engine="e", stream_ms=np.array(samples_ms), reason=reason)


def test_samples_of_all_processes_count() -> None:
    found = twin_record({1: done(5.0, 7.0), 0: done(1.0)})
    assert found is not None
    assert found.stream_summary is not None
    assert (found.stream_summary.count, found.stream_summary.p50_ms) == (3, 5.0)
    assert found.stream_summary.mean_ms == pytest.approx(13 / 3)
    assert found.reason is None


def test_a_process_without_a_twin_does_not_hide_the_others() -> None:
    found = twin_record({0: done(reason="refused"), 1: done(2.0)})
    assert found is not None
    assert found.stream_summary is not None
    assert (found.stream_summary.p50_ms, found.reason) == (2.0, None)


def test_why_there_is_none_is_told() -> None:
    assert twin_record({0: done(reason="CUDA driver error X")}) == TwinRecord(stream_summary=None, reason="CUDA driver error X")
    assert twin_record({}) is None
