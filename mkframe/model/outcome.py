"""What can become of a cell."""

from enum import StrEnum


class Outcome(StrEnum):
    """The end of a cell. Only PASSED carries timings."""

    PASSED = "passed"
    INCORRECT = "incorrect"
    UNSUPPORTED = "unsupported"
    UNSTABLE = "unstable"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OOM = "oom"
    REJECTED = "rejected"
    INCOMPLETE = "incomplete"


class Rejected(Exception):
    """One clause: the defence that a cell does not stand, whatever its outputs are. It ends the cell as REJECTED."""


class Verdict(StrEnum):
    """How one engine's time stands to a baseline's. UNDECIDED where the clock or the spread cannot tell."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNDECIDED = "UNDECIDED"


_STEP_ROUNDING = 0.01
"""Event times are float32: the difference of two readings is a whole number of steps but for this share of one."""


def within_a_step(one_ms: float, other_ms: float, step_ms: float | None) -> bool:
    """Whether two medians differ by no more than one step of their clock: such are never ranked. False where the step is unknown."""
    return step_ms is not None and abs(one_ms - other_ms) <= step_ms * (1 + _STEP_ROUNDING)
