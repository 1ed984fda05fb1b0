"""Statistics of samples: summaries, the step of a clock, intervals of medians, and when two medians may be ranked.

The rule for ranking and its error rates: docs/compare.md, benchmarks/compare_error_table.py.
"""

from mkframe.decision import ONE_PROCESS_LIMIT, SAME_WITHIN, Comparison
from mkframe.stats.bootstrap import CONFIDENCE, RESAMPLES, bootstrap_medians, interval
from mkframe.stats.clock_step import STEP_SAMPLES, clock_step_ms, event_step_ms
from mkframe.stats.processes import UNSEEN_SPREAD
from mkframe.stats.rule import (
    RATIO_CONFIDENCE,
    compare,
    compare_apart,
    median_interval,
    unseen_ratio,
)
from mkframe.stats.samples import Samples, summarize

__all__ = [
    "CONFIDENCE",
    "ONE_PROCESS_LIMIT",
    "RATIO_CONFIDENCE",
    "RESAMPLES",
    "SAME_WITHIN",
    "STEP_SAMPLES",
    "UNSEEN_SPREAD",
    "Comparison",
    "Samples",
    "bootstrap_medians",
    "clock_step_ms",
    "compare",
    "compare_apart",
    "event_step_ms",
    "interval",
    "median_interval",
    "summarize",
    "unseen_ratio",
]
