"""Two reports side by side: what may be compared, which cells got faster or slower, and how sure that is. docs/compare.md."""

from mkframe.compare.conditions import require_same
from mkframe.compare.report import Report, load
from mkframe.compare.result import Outcome, compare_reports

__all__ = ["Outcome", "Report", "compare_reports", "load", "require_same"]
