"""How fast this machine draws inputs and computes references: measured in a few milliseconds, for estimates of time only."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

_SIDE = 192
_DRAWN = 1 << 16
_REPEATS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRates:
    """`flops_per_s`: float64 operations of a matrix product. `draw_bytes_per_s`: float32 normal values drawn, in bytes."""

    flops_per_s: float
    draw_bytes_per_s: float


def measure_host() -> HostRates:
    """The best of a few repeats of a small product and a small draw, on as many threads as numpy uses."""
    generator = np.random.Generator(np.random.PCG64(1))
    a = generator.standard_normal((_SIDE, _SIDE))
    product_s = _fastest(lambda: a @ a)
    draw_s = _fastest(lambda: generator.standard_normal(_DRAWN, dtype=np.float32))
    return HostRates(flops_per_s=2 * _SIDE**3 / product_s, draw_bytes_per_s=4 * _DRAWN / draw_s)


def _fastest(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        begin = perf_counter()
        work()
        best = min(best, perf_counter() - begin)
    return max(best, 1e-9)
