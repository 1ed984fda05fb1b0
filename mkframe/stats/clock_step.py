"""The step of a clock, from its readings."""

import numpy as np

from mkframe.stats.samples import Samples

_STEPS_MS = tuple(32e-6 * 2.0**k for k in range(5, -1, -1))
"""Candidate steps of an event clock: 32 ns x 2^k up to 1.024 us, largest first."""
_STEP_SLACK_MS = 1e-6
STEP_SAMPLES = 100_000
"""How many samples of a run its step is told from."""


def event_step_ms(values: Samples) -> float | None:
    """The step of an event clock: the largest of 32 ns x 2^k, up to 1.024 us, on which more than half of at least eight
    values lie (within 1 ns). None where there is no such step, as on a fine clock."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if flat.size < 8:
        return None
    for step in _STEPS_MS:
        with np.errstate(over="ignore", invalid="ignore"):  # a value beyond float64 in steps lies on none
            off = np.abs(flat - np.rint(flat / step) * step)
        if np.count_nonzero(off <= _STEP_SLACK_MS) * 2 > flat.size:
            return step
    return None


def clock_step_ms(values: Samples) -> float | None:
    """The step of a fine clock, in ms: the smallest difference between two different readings. None with fewer than two."""
    distinct = np.unique(np.asarray(values, dtype=np.float64).ravel())
    return float(np.diff(distinct).min()) if distinct.size > 1 else None
