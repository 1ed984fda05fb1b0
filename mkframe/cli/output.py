"""Standard output that may be closed, broken or full."""

import os
import sys


def silence_stdout() -> None:
    """Sends everything that is still to come, and what is still buffered, nowhere: a broken output is told once."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
