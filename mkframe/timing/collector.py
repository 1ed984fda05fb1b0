"""Python's garbage collector, out of the way of samples."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from mkframe.model.outcome import Rejected


@contextmanager
def collector_off() -> Iterator[None]:
    """No collection inside: it would be the framework's time in an engine's sample. Afterwards the collector is as it was. Raises
    Rejected where somebody has turned it on meanwhile."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
        if gc.isenabled():
            raise Rejected("process state: a call turned Python's garbage collector on, which is off inside a block")
    finally:
        if collecting:
            gc.enable()
