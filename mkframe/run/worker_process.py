"""The coordinator's handle on one worker process."""

import multiprocessing
import signal
from types import TracebackType

from mkframe.run import messages as m
from mkframe.run.worker import worker_main

_STOP_GRACE_S = 2.0


class WorkerDied(Exception):
    """The process ended without being told to. The message says how."""


class WorkerSilent(Exception):
    """The process said nothing for too long, and was killed."""


class WorkerProcess:
    """Starts a worker and talks to it. As a context manager it never leaves a process behind."""

    def __init__(self, setup: m.WorkerSetup) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would carry the coordinator's state, and CUDA does not survive one
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=worker_main, args=(theirs, setup), name=f"mkframe-worker-{setup.process}")
        self._process.start()
        theirs.close()  # so that the end of the worker is the end of the pipe

    def send(self, request: m.Request) -> None:
        """Raises WorkerDied where the process is gone."""
        try:
            self._connection.send(request)
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerDied(self._death()) from None

    def next_event(self, timeout_s: float) -> m.Event:
        """The worker's next message. Raises WorkerDied, or WorkerSilent after `timeout_s` seconds without one."""
        try:
            if not self._connection.poll(timeout_s):
                self.kill()
                raise WorkerSilent(f"no sign of life for {timeout_s:g} s")
            event: m.Event = self._connection.recv()
            return event
        except (EOFError, ConnectionResetError):
            raise WorkerDied(self._death()) from None

    def stop(self) -> None:
        """Asks the worker to end, and makes it."""
        try:
            self._connection.send(m.Stop())
            self._process.join(_STOP_GRACE_S)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.kill()

    def kill(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def _death(self) -> str:
        self._process.join(_STOP_GRACE_S)
        code = self._process.exitcode
        if code is None:
            self.kill()
            return "it closed its connection"
        return f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it exited with code {code}"

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
