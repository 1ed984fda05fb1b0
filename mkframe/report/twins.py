"""Launch twins in the report: one figure per cell, from the samples of every process that timed one."""

from collections.abc import Mapping

import numpy as np

from mkframe import stats
from mkframe.model.report import TwinRecord
from mkframe.run.messages import TwinDone


def twin_record(twins: Mapping[int, TwinDone]) -> TwinRecord | None:
    """`twins` by worker. None where none was tried: the cell is no graph, or no block of it was finished."""
    if not twins:
        return None
    timed = [twin.stream_ms for _, twin in sorted(twins.items()) if twin.stream_ms.size]
    if not timed:
        return TwinRecord(stream_summary=None, reason=next(twin.reason for twin in twins.values()))
    return TwinRecord(stream_summary=stats.summarize(np.concatenate(timed)))
