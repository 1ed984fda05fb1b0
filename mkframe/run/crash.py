"""Where a process was when a signal ended it: what its faulthandler wrote, in a few words."""

import re
from pathlib import PurePath

from mkframe.redact import storable

FRAMES = 4
_FRAME = re.compile(rb'^  File "(?P<file>[^\n]*)", line (?P<line>[0-9]+) in (?P<name>[^\n]+)$', re.MULTILINE)
_MOST = 60  # characters of one name


def where(dump: bytes) -> str:
    """`crash (faults.py:21), bind (faults.py:60)`: the innermost frames of the thread that a signal met, innermost first. Empty where
    `dump` shows none, as after a signal that nothing can handle. Folders are left out: a reason stands in a report."""
    found = [
        f"{_short(match['name'])} ({_short(match['file'], path=True)}:{match['line'].decode()})"
        for match, _ in zip(_FRAME.finditer(dump), range(FRAMES), strict=False)
    ]
    return ", ".join(found)


def _short(text: bytes, path: bool = False) -> str:
    plain = text.decode("ascii", "backslashreplace")
    return storable(PurePath(plain).name if path else plain)[:_MOST]
