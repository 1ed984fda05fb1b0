"""The hierarchical bootstrap of a median: processes, then rounds, then samples."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mkframe.stats.samples import Samples

RESAMPLES = 500
CONFIDENCE = 0.95


@lru_cache(maxsize=8)
def _resampled_rounds(round_process: tuple[int, ...], resamples: int) -> NDArray[np.int64]:
    """(resamples, rounds) indices of rounds: processes drawn first, then the rounds of each drawn process."""
    generator = np.random.default_rng(len(round_process))
    members = [np.flatnonzero(np.asarray(round_process) == process) for process in sorted(set(round_process))]
    rows = []
    for _ in range(resamples):
        processes = generator.integers(len(members), size=len(members))
        drawn = np.concatenate([generator.choice(members[p], size=members[p].size) for p in processes])
        rows.append(np.resize(drawn, len(round_process)))  # processes may differ in rounds
    return np.stack(rows)


def bootstrap_medians(
    samples: Samples, round_process: tuple[int, ...], generator: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Medians of hierarchical resamples (processes, then rounds, then samples), shape (resamples,), in ms.

    `samples` is (rounds, samples per round); `round_process[r]` is the process of round r. The rounds of resample i are
    the same for every call with the same `round_process`, so that two engines measured side by side stay paired.
    """
    rounds = _resampled_rounds(round_process, resamples)
    count = samples.shape[1]
    columns = generator.integers(count, size=(*rounds.shape, count))
    picked = samples[rounds[:, :, None], columns].reshape(resamples, -1)
    medians: NDArray[np.float64] = np.median(picked, axis=1)
    return medians


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """The central 95 % of bootstrap values."""
    low, high = np.quantile(values, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return float(low), float(high)
