"""What went wrong in a cell, as an outcome and a reason."""

import torch

from mkframe.check.cell import CheckFailed
from mkframe.check.rotation import OutOfReach
from mkframe.errors import WorkloadError
from mkframe.model.outcome import Outcome, Rejected
from mkframe.redact import storable
from mkframe.text import told

LONGEST_REASON = 500
_CPU_MEMORY_WORDS = ("can't allocate memory", "not enough memory")


def classify(error: BaseException, doing: str) -> tuple[Outcome, str]:
    """The outcome that an exception means, and one line that says what happened, fit for a report."""
    text = storable(told(error, kind=False))
    if isinstance(error, CheckFailed):
        return Outcome.INCORRECT, text
    if isinstance(error, WorkloadError | Rejected):
        return Outcome.REJECTED, text
    if isinstance(error, OutOfReach):
        return Outcome.UNSUPPORTED, text
    out_of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or any(word in text for word in _CPU_MEMORY_WORDS)
    reason = f"{type(error).__name__} while {doing}: {text}"
    return (Outcome.OOM if out_of_memory else Outcome.CRASHED), storable(reason)[:LONGEST_REASON]
