"""From raw readings to the figures of a card: pure functions over numbers."""

from collections.abc import Sequence

import numpy as np

from mkframe.model.device_card import Clocks, MemoryModel, Operation, Rates, Times

_SETTLED = 0.02


def slope_us(short_us: Sequence[float], long_us: Sequence[float], units: float) -> float:
    """Time of one unit: the difference of the medians of the long and the short chain over how many units they differ by.

    What both chains have in common (events, launch of the graph) falls out. Raises ValueError where `units` is not positive.
    """
    if units <= 0:
        raise ValueError(f"the long chain must hold more than the short one, and differs by {units}")
    return float((np.median(long_us) - np.median(short_us)) / units)


def times(rounds_us: Sequence[float]) -> Times:
    """One figure per round, summarised. Raises ValueError without any."""
    if not rounds_us:
        raise ValueError("no round was measured")
    return Times(rounds=len(rounds_us), median_us=float(np.median(rounds_us)), min_us=float(min(rounds_us)), max_us=float(max(rounds_us)))


def rates(moved_bytes: int, rounds_us: Sequence[float]) -> Rates:
    """Bytes over time for each round. Raises ValueError where a time is not positive: then there is no rate."""
    if not rounds_us or min(rounds_us) <= 0:
        raise ValueError("a rate needs a positive time in every round")
    found = [moved_bytes / (time * 1e-6) for time in rounds_us]
    return Rates(
        rounds=len(found),
        median_bytes_per_s=float(np.median(found)),
        min_bytes_per_s=float(min(found)),
        max_bytes_per_s=float(max(found)),
    )


def clocks(readings_mhz: Sequence[float]) -> Clocks:
    """Raises ValueError without readings."""
    if not readings_mhz:
        raise ValueError("no clock was read")
    return Clocks(
        readings=len(readings_mhz),
        median_mhz=float(np.median(readings_mhz)),
        min_mhz=float(min(readings_mhz)),
        max_mhz=float(max(readings_mhz)),
    )


def mhz(cycles: int, nanoseconds: int) -> float:
    """The clock of a stretch of `cycles` cycles. Raises ValueError where the timer stood still."""
    if cycles <= 0 or nanoseconds <= 0:
        raise ValueError(f"{cycles} cycles in {nanoseconds} ns is no clock")
    return cycles * 1e3 / nanoseconds


def rise_s(series: Sequence[tuple[float, float]]) -> float:
    """From (seconds since the load began, MHz): when the clock had come within 2 % of its end and stayed there.

    The end is the median of the last quarter of the readings. Raises ValueError without readings.
    """
    if not series:
        raise ValueError("no clock was read")
    end = float(np.median([value for _, value in series[-max(1, len(series) // 4) :]]))
    off = [at for at, (_, value) in enumerate(series) if abs(value - end) > _SETTLED * end]
    settled = off[-1] + 1 if off else 0
    return series[min(settled, len(series) - 1)][0]


def memory_model(operation: Operation, method: str, points: Sequence[tuple[int, float]]) -> MemoryModel | None:
    """The line time = latency + bytes / rate through (moved bytes, time in us), by least squares of the relative errors.

    Relative, so that the smallest size counts as much as the largest. None with fewer than two sizes, or where more bytes do not
    take more time.
    """
    if len({moved for moved, _ in points}) < 2 or min(time for _, time in points) <= 0:
        return None
    moved = np.array([float(size) for size, _ in points])
    measured = np.array([time for _, time in points])
    scale = moved.max()
    matrix = np.stack([1 / measured, moved / scale / measured], axis=1)
    (latency, per_scale), *_ = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)
    if per_scale <= 0:
        return None
    residual = np.abs(latency + per_scale * moved / scale - measured) / measured
    return MemoryModel(
        operation=operation,
        method=method,
        latency_us=float(latency),
        bytes_per_s=float(scale / (per_scale * 1e-6)),
        worst_residual=float(residual.max()),
    )
