"""The coordinator's handle on one worker process."""

import multiprocessing
import os
import signal
from multiprocessing import resource_tracker

from mkframe.processes import GroupLeader
from mkframe.run import messages as m
from mkframe.run.crash import where
from mkframe.run.worker import HELD_SIGNALS, worker_main

_STOP_GRACE_S = 2.0
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
_DUMP_BYTES = 65536  # what a pipe holds


class WorkerDied(Exception):
    """The process ended without being told to. The message says how; `killed`: by a signal that comes from outside, as from a kernel
    that is short of memory, and not from what the process does."""

    def __init__(self, how: str, killed: bool = False) -> None:
        super().__init__(how)
        self.killed = killed


class WorkerSilent(Exception):
    """The process said nothing for too long, and was killed."""


class WorkerProcess:
    """Starts a worker and talks to it. Whoever holds one ends it, with `stop` or `kill`."""

    def __init__(self, setup: m.WorkerSetup) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would carry the coordinator's state, and CUDA does not survive one
        self._connection, theirs = context.Pipe()
        self._crash, crash = context.Pipe(duplex=False)
        self._process = context.Process(
            target=worker_main, args=(theirs, crash, setup), name=f"mkframe-worker-{setup.process}", daemon=True
        )
        resource_tracker.ensure_running()  # here: it unblocks signals when it starts
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)  # until the worker has said what it does with them
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._leader = GroupLeader(self._process)
        theirs.close()  # so that the end of the worker is the end of the pipe
        crash.close()

    def send(self, request: m.Request) -> None:
        """Raises WorkerDied where the process is gone."""
        try:
            self._connection.send(request)
        except (BrokenPipeError, ConnectionResetError):
            raise self._death() from None

    def next_event(self, timeout_s: float) -> m.Event:
        """The worker's next message. Raises WorkerDied, or WorkerSilent after `timeout_s` seconds without one."""
        try:
            if not self._connection.poll(timeout_s):
                self.kill()
                raise WorkerSilent(f"no sign of life for {timeout_s:g} s")
            event: m.Event = self._connection.recv()
            return event
        except (EOFError, ConnectionResetError):
            raise self._death() from None

    def stop(self) -> None:
        """Asks the worker to end, and makes it."""
        try:
            self._connection.send(m.Stop())
            self._leader.ended_within(_STOP_GRACE_S)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.kill()

    def kill(self) -> None:
        """Ends the worker and whatever it has started."""
        self._leader.kill()

    def _death(self) -> WorkerDied:
        if not self._leader.ended_within(_STOP_GRACE_S):
            self.kill()
            return WorkerDied("it closed its connection")
        self._leader.reap()
        code = self._process.exitcode
        assert code is not None, "it has been waited for"
        if code >= 0:
            return WorkerDied(f"it exited with code {code}")
        number = signal.Signals(-code)
        return WorkerDied(f"it was killed by {number.name}{self._place()}", killed=number in _FROM_OUTSIDE)

    def _place(self) -> str:
        """Where in its Python code it was, if its faulthandler could say so. Never waits: a fork of it may hold the pipe open."""
        os.set_blocking(self._crash.fileno(), False)
        try:
            found = where(os.read(self._crash.fileno(), _DUMP_BYTES))
        except BlockingIOError:
            return ""
        return f" in {found}" if found else ""
