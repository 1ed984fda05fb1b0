"""Samples, and their summary."""

import numpy as np
from numpy.typing import NDArray

from mkframe.model.report import Summary

Samples = NDArray[np.float64]
"""Times in milliseconds, shape (rounds, samples per round)."""


def summarize(samples: Samples) -> Summary:
    """Summary of all samples, whatever their shape. p50 is the mean of the two middle samples of an even count; p95
    is the inclusive linear quantile, at position 0.95 (n - 1)."""
    flat = np.asarray(samples, dtype=np.float64).ravel()
    p50, p95 = np.quantile(flat, (0.5, 0.95), method="linear")
    return Summary(
        count=flat.size,
        p50_ms=float(p50),
        p95_ms=float(p95),
        min_ms=float(flat.min()),
        max_ms=float(flat.max()),
        mean_ms=_mean(flat),
    )


def _mean(flat: Samples) -> float:
    """The mean, kept inside [min, max] where rounding of the sum would push it out by an ulp."""
    return float(min(max(flat.mean(), flat.min()), flat.max()))
