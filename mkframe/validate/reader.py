"""Bytes of a file, within a limit, without waiting for anything and without a traceback."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from mkframe.validate.finding import Finding, error

RULE = "read"
SIZE_LIMIT = 64 * 2**20
_PART = 2**20
"""Bytes that are asked for at once: a raw file gets a buffer of that size, whatever it holds."""
TOO_LARGE = "the file is larger than the limit of"


def read_file(path: str | Path, limit: int = SIZE_LIMIT, *, follow_link: bool = True, named: bool = True) -> bytes | Finding:
    """The content of a regular file of at most `limit` bytes, or the finding that says why not. `named`: somebody named it on a command
    line, and is told what else to name."""
    try:
        with open(path, "rb", buffering=0, opener=_open_without_waiting if follow_link else _open_itself) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return error(RULE, "this is not a regular file" + ("; use - to read from standard input" if named else ""))
            return read_stream(file, limit)
    except FileNotFoundError:
        return error(RULE, "no such file")
    except IsADirectoryError:
        return error(RULE, "this is a folder" + ("; name the report inside it" if named else ""))
    except (OSError, ValueError) as problem:
        return error(RULE, f"the file cannot be opened: {_reason(problem)}")


def _open_without_waiting(path: str, flags: int) -> int:
    # Opening a pipe that nobody writes to would wait for ever.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _open_itself(path: str, flags: int) -> int:
    return _open_without_waiting(path, flags | getattr(os, "O_NOFOLLOW", 0))


def read_stream(stream: BinaryIO, limit: int = SIZE_LIMIT) -> bytes | Finding:
    """All of a binary stream of at most `limit` bytes, or the finding that says why not."""
    parts: list[bytes] = []
    left = limit + 1
    try:
        while left > 0 and (part := stream.read(min(left, _PART))):
            parts.append(part)
            left -= len(part)
    except (OSError, ValueError) as problem:
        return error(RULE, f"the file cannot be read: {_reason(problem)}")
    if left <= 0:
        return error(RULE, f"{TOO_LARGE} {limit} bytes")
    return b"".join(parts)


def _reason(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or str(problem)
