"""A word to whoever waits."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WAIT_S = 2.0


@contextmanager
def tell_if_slow(tell: Callable[[str], None], text: str) -> Iterator[None]:
    """Calls `tell(text)` once where the body takes longer than WAIT_S."""
    timer = threading.Timer(WAIT_S, tell, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # no half a line beside what comes next, and no thread when a process is forked
