"""The worker process: holds the engines of one case on one device, checks them, times them, streams everything back.

Nothing here decides what runs: the coordinator asks, the worker answers. Only this side imports torch.
"""

import ctypes
import faulthandler
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from mkframe.errors import MkframeError
from mkframe.originals import Originals
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry
from mkframe.processes import adopt_orphans, descendants, end
from mkframe.redact import storable
from mkframe.run import messages as m

if TYPE_CHECKING:
    from mkframe.run.worker_device import WorkerDevice

_PR_SET_PDEATHSIG = 1
HELD_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Blocked while the worker starts, so that a Ctrl-C meets no half-made interpreter."""


def worker_main(connection: Connection, crash: Connection, setup: m.WorkerSetup) -> None:
    """Entry point of the process. Ends when told to, when its coordinator is gone, or after a fault of the device. Where a signal
    met it goes down the pipe `crash`."""
    _detach()
    _tell_crashes(crash)
    if setup.device_kind == "cuda":
        assert setup.device_uuid is not None, "the plan names CUDA devices by UUID"
        os.environ["CUDA_VISIBLE_DEVICES"] = setup.device_uuid  # before torch is imported
    try:
        from mkframe.run.watched import of_worker
        from mkframe.run.worker_device import prepare

        originals = of_worker()
        registry = load_registry(setup.plugin_paths, originals, setup.unsafe_plugins)
        device = prepare(setup)
    except MkframeError as error:
        connection.send(m.WorkerFailed(reason=str(error), usage=True))
        return
    except Exception as error:
        connection.send(m.WorkerFailed(reason=storable(f"{type(error).__name__}: {error}"), usage=False))
        return
    try:
        connection.send(device.hello)
        with device.current():
            _serve(connection, setup, registry, device, originals)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the coordinator is gone, and with it everybody who could want the rest
    finally:
        end(descendants(os.getpid()))


def _detach() -> None:
    """Leaves Ctrl-C to the coordinator, dies with it, and keeps standard output clean for it. A process group of its own lets the
    coordinator end what an engine has started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)
    adopt_orphans()
    os.dup2(2, 1)


def _tell_crashes(crash: Connection) -> None:
    """One thread's frames fit into a pipe, and what does not is dropped: a dying process must not wait for a reader. Whoever has
    asked Python for its faulthandler (PYTHONFAULTHANDLER=1) gets all of it on the terminal instead."""
    if not faulthandler.is_enabled():
        os.set_blocking(crash.fileno(), False)
        faulthandler.enable(file=crash.fileno(), all_threads=False)


def _serve(connection: Connection, setup: m.WorkerSetup, registry: Registry, device: "WorkerDevice", originals: Originals) -> None:
    """Answers requests until Stop. Ends early where the device was lost: what it still holds cannot be trusted."""
    from mkframe.run.opened_case import DeviceLost, OpenedCase

    opened: OpenedCase | None = None
    worker = os.getpid()

    def send(event: m.Event) -> None:
        if os.getpid() != worker:  # a fork of an engine that came back
            os._exit(0)
        connection.send(event)

    try:
        while True:
            match connection.recv():
                case m.OpenCase() as request:
                    opened = OpenedCase(send, setup, registry, device, originals)
                    opened.open(request)
                case m.RoundRequest() as request:
                    assert opened is not None, "a round needs an open case"
                    opened.run_round(request)
                case m.CloseCase():
                    assert opened is not None, "only an open case can be closed"
                    opened.close()
                    opened = None
                    device.release()
                    connection.send(m.CaseClosed())
                case m.Stop():
                    return
    except DeviceLost:
        return
