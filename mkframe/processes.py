"""The processes that a process has started: found, and ended with it."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep

_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.005


class GroupLeader:
    """A started process that leads a process group of its own (`os.setpgid(0, 0)` in it). Whoever holds one ends it with `kill`.

    The group is ended before the leader is waited for, which keeps its number taken; `is_alive` and `exitcode` of the process would
    wait for it, so they are for afterwards. Its sentinel would not do either: a process that was forked from it holds that open.
    """

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None, "it was started"
        self._process = process
        self._pid = process.pid
        self._reaped = False

    def ended_within(self, seconds: float) -> bool:
        """Whether the process has ended, without waiting for it in the sense of wait(2)."""
        deadline = monotonic() + seconds
        while not self._reaped:
            if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return True
            if monotonic() >= deadline:
                return False
            sleep(_POLL_S)
        return True

    def kill(self) -> None:
        """Ends the process and whatever it has started: its descendants, those with a session of their own included as long as it
        runs itself, and its group."""
        if not self._reaped:
            end(descendants(self._pid))
            self._process.kill()
            self.reap()

    def reap(self) -> None:
        """Waits for the process; its group goes with it."""
        if self._reaped:
            return
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        self._process.join()
        self._reaped = True


def adopt_orphans() -> None:
    """Whoever loses its parent below this process becomes a child of it, and no child of init: it is found, and it can be ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(parent: int | None = None) -> dict[int, str]:
    """Running children of a process, of this one by itself: pid -> name. Those that have ended and wait to be collected are none.
    Nothing where there is no /proc."""
    if parent is None and not _has_any():
        return {}
    return {pid: name for pid, (name, its_parent) in _running().items() if its_parent == (parent or os.getpid())}


def descendants(ancestor: int) -> set[int]:
    """Children of a process, and theirs."""
    running = _running()
    found: set[int] = set()
    front = {ancestor}
    while front:
        front = {pid for pid, (_, parent) in running.items() if parent in front} - found
        found |= front
    return found


def end(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _has_any() -> bool:
    """Cheap, and the usual answer is no: looking through /proc takes milliseconds."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _running() -> dict[int, tuple[str, int]]:
    """pid -> (name, parent)."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text(errors="replace").partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        state, parent = rest.split()[:2]
        if state not in "ZX":
            found[int(entry.parent.name)] = (name, int(parent))
    return found
