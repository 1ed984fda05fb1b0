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
