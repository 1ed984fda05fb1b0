"""The threads of this process: calls that are warm start none."""

import os
import threading
from time import monotonic, sleep

from mkframe.model.outcome import Rejected

NAME = "threads"
_LINGER_S, _POLL_S = 0.05, 0.001


class Threads:
    """The threads that are there when it is made, right after a warm-up: torch and drivers start theirs on first use."""

    def __init__(self) -> None:
        self._python = set(threading.enumerate())
        self._native = _native()

    def check(self) -> None:
        """Raises Rejected where a thread is there that was not. One that ended meanwhile is no lie."""
        python = [thread.name for thread in threading.enumerate() if thread not in self._python]
        native = len(self._new_native())
        if python or native:
            named = f" ({', '.join(python[:3])})" if python else ""
            raise Rejected(f"{NAME}: warm calls left {max(len(python), native)} thread(s) more in the process{named}")

    def _new_native(self) -> set[str]:
        """Looks again for a moment: the kernel lists a thread a little longer than those who joined it see it."""
        latest = monotonic() + _LINGER_S
        while (new := _native() - self._native) and monotonic() < latest:
            sleep(_POLL_S)
        return new


def _native() -> set[str]:
    """Kernel ids of the threads; none where there is no /proc."""
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()
