"""A cell as what its processes say: one logarithm of a median each, their mean, and Student's t over it."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mkframe.stats.samples import Samples

UNSEEN_SPREAD = 0.07
"""Standard deviation taken for processes where only one was measured: the upper end of what processes were seen to differ by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """What the processes of one cell say of its time: mean of the logarithms of their medians, the variance of that mean,
    its degrees of freedom (infinite where the spread is taken and not measured)."""

    center: float
    variance: float
    freedom: float

    def interval(self, confidence: float) -> tuple[float, float]:
        half = _t_quantile(self.freedom, confidence) * math.sqrt(self.variance)
        return self.center - half, self.center + half


def process_logs(samples: Samples, round_process: tuple[int, ...]) -> dict[int, float]:
    """Logarithm of each process's median over all its samples; -inf for a median of zero."""
    owner = np.asarray(round_process)
    medians = {process: float(np.median(samples[owner == process])) for process in sorted(set(round_process))}
    return {process: math.log(median) if median > 0 else -math.inf for process, median in medians.items()}


def level_of_samples(samples: Samples, round_process: tuple[int, ...], step_ms: float | None) -> Level | None:
    """None where a median is zero and has no logarithm."""
    logs = np.array(list(process_logs(samples, round_process).values()))
    if not np.isfinite(logs).all():
        return None
    return level_of_logs(logs, reading_variance(step_ms, float(logs.mean())))


def level_of_logs(logs: NDArray[np.float64], least: float) -> Level:
    """`least`: variance of a process that the clock's step hides, however well the readings agree."""
    if logs.size < 2:
        return Level(center=float(logs[0]), variance=UNSEEN_SPREAD**2, freedom=math.inf)
    return Level(center=float(logs.mean()), variance=max(float(logs.var(ddof=1)), least) / logs.size, freedom=logs.size - 1)


def reading_variance(step_ms: float | None, log_ms: float) -> float:
    """Variance of a reading, relative to the time, that a clock with this step rounds: step^2 / 12."""
    return 0.0 if step_ms is None else (step_ms / math.exp(log_ms)) ** 2 / 12


def difference(one: Level, other: Level) -> Level:
    """one - other, independent of each other, with the degrees of freedom of Welch and Satterthwaite; where the numbers of
    processes differ, those of the smaller one, because Welch's are too many when the small sample happens to look calm."""
    variance = one.variance + other.variance
    if one.freedom != other.freedom and math.isfinite(max(one.freedom, other.freedom)):
        freedom = min(one.freedom, other.freedom)
    elif variance == 0:
        freedom = one.freedom
    else:
        share = (one.variance / variance) ** 2 / one.freedom + (other.variance / variance) ** 2 / other.freedom
        freedom = 1 / share if share > 0 else math.inf
    return Level(center=one.center - other.center, variance=variance, freedom=freedom)


@lru_cache(maxsize=4096)
def _t_quantile(freedom: float, confidence: float) -> float:
    """Half width, in standard errors, of the central interval of Student's t (of the normal distribution where infinite)."""
    from scipy.special import ndtri, stdtrit  # here: importing it takes longer than most commands

    share = (1 + confidence) / 2
    return float(stdtrit(freedom, share) if math.isfinite(freedom) else ndtri(share))
