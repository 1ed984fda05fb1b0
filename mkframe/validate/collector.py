"""Python's collector of cycles, paused while documents are built and looked through.

Neither makes cycles, and each of the collector's rounds walks every object that a large document has: half of the time, and for files
of millions of small objects nine tenths.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No cycle is collected inside. As it was before afterwards, whatever happens, so that pauses may lie within each other."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
