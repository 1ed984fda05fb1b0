"""The threads of this process: calls that are warm start none."""

import os
import threading

from mkframe.model.outcome import Rejected

NAME = "threads"


class Threads:
    """The threads that are there when it is made, right after a warm-up: torch and drivers start theirs on first use."""

    def __init__(self) -> None:
        self._python = set(threading.enumerate())
        self._native = _native()

    def check(self) -> None:
        """Raises Rejected where a thread is there that was not. One that ended meanwhile is no lie."""
        python = [thread.name for thread in threading.enumerate() if thread not in self._python]
        native = len(_native() - self._native)
        if python or native:
            named = f" ({', '.join(python[:3])})" if python else ""
            raise Rejected(f"{NAME}: warm calls left {max(len(python), native)} thread(s) more in the process{named}")


def _native() -> set[str]:
    """Kernel ids of the threads; none where there is no /proc."""
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()
