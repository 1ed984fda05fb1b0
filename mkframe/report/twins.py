"""Launch twins in the report: one figure per cell, from the samples of every process that timed one, beside what the card says."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mkframe import stats
from mkframe.model.device_card import MeasuredCard
from mkframe.model.launch import LaunchRecord
from mkframe.model.report import TwinRecord
from mkframe.probe.cards import launch_twin
from mkframe.run.messages import TwinDone


def twin_record(twins: Mapping[int, TwinDone], kernels: Sequence[LaunchRecord], card: MeasuredCard | None) -> TwinRecord | None:
    """`twins` by worker, `kernels` those of the graph, `card` the device's measured one. None where no twin was tried: the cell is
    no graph, or no block of it was finished."""
    if not twins:
        return None
    card_ms = None if card is None else floors_ms(kernels, card)
    timed = [twin.stream_ms for _, twin in sorted(twins.items()) if twin.stream_ms.size]
    if not timed:
        return TwinRecord(stream_summary=None, reason=next(twin.reason for twin in twins.values()), card_ms=card_ms)
    return TwinRecord(stream_summary=stats.summarize(np.concatenate(timed)), card_ms=card_ms)


def floors_ms(kernels: Sequence[LaunchRecord], card: MeasuredCard) -> float | None:
    """The sum of the nearest launch floors of a card, in ms. None without kernels, or where the card has none of a kind."""
    floors = [
        launch_twin(
            card,
            grid=math.prod(kernel.grid),
            block=math.prod(kernel.block),
            shared_bytes=kernel.shared_bytes,
            cluster=math.prod(kernel.cluster),
            cooperative=kernel.cooperative,
            programmatic=kernel.programmatic,
        )
        for kernel in kernels
    ]
    times = [floor.time.median_us for floor in floors if floor is not None and floor.time is not None]
    return sum(times) / 1e3 if kernels and len(times) == len(kernels) else None
