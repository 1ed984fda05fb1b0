"""Standard output that may be closed, broken or full."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def silence_stdout() -> None:
    """Sends everything that is still to come, and what is still buffered, nowhere: a broken output is told once."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def console(least_width: int) -> "Console":
    """rich's console on standard output, at least `least_width` columns wide where that is no terminal. A reader that goes away
    raises BrokenPipeError here as everywhere; rich alone would end the program with 1."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    found = Plain(highlight=False)
    return found if found.is_terminal else Plain(highlight=False, width=least_width)
