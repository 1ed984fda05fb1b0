"""Standard output that may be closed, broken or full."""

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_STDOUT, _STDERR = 1, 2


def stand_in_for_closed_streams() -> bool:
    """Puts the null device where this process was started without a standard stream (`>&-`). Else the next file that is opened gets
    the stream's number, and what children and compiled code print ends up in it. A closed input stays None: who reads it says so.
    Returns whether standard output was closed: what is written to its stand-in reaches nobody."""
    output_is_closed = False
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            output_is_closed |= number == _STDOUT
            opened = os.open(os.devnull, os.O_RDWR)
            assert opened == number, "open takes the lowest free number"
            os.set_inheritable(number, True)
    sys.stdout = sys.stdout or _null("w")
    sys.stderr = sys.stderr or _null("w")
    return output_is_closed


def _null(mode: str) -> io.TextIOWrapper:
    opened = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115  # for as long as the program runs
    assert isinstance(opened, io.TextIOWrapper)
    return opened


def silence_stdout() -> None:
    """Sends everything that is still to come, and what is still buffered, nowhere: a broken output is told once."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(text: str) -> None:
    """A line on standard error, if that can be written."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr)
    drop_unwritable_stderr()


def drop_unwritable_stderr() -> None:
    """Sends what standard error cannot take nowhere: Python would end with a code of its own, in place of ours."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)


def console(least_width: int) -> "Console":
    """rich's console on standard output, at least `least_width` columns wide where that is no terminal. A reader that goes away
    raises BrokenPipeError here as everywhere; rich alone would end the program with 1."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    found = Plain(highlight=False)
    return found if found.is_terminal else Plain(highlight=False, width=least_width)
