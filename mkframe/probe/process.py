"""The probe runs in a process of its own: the command line holds no CUDA context, and what breaks there breaks nothing here."""

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from mkframe.errors import DeviceError, MkframeError, RunError
from mkframe.model.device import Device

SILENCE_LIMIT_S = 180.0
_PR_SET_PDEATHSIG = 1
_GRACE_S = 5.0

Target = Callable[[Connection, Device], None]


def measure_in_child(
    device: Device, say: Callable[[str], None], *, target: "Target | None" = None, silence_limit_s: float = SILENCE_LIMIT_S
) -> dict[str, Any]:
    """The document of the device's card. `say` gets each line of progress. Raises what the probe raised, and RunError where its
    process ends or says nothing for too long."""
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    ours, theirs = context.Pipe()
    process = context.Process(target=target or probe_main, args=(theirs, device), name="mkframe-probe")
    process.start()
    theirs.close()
    try:
        while True:
            if not ours.poll(silence_limit_s):
                raise RunError(f"device probe: no sign of life for {silence_limit_s:g} s; nothing was written")
            kind, value = ours.recv()
            if kind == "card":
                process.join(_GRACE_S)
                document: dict[str, Any] = value
                return document
            if kind == "error":
                raise value
            say(value)
    except EOFError:
        process.join(_GRACE_S)
        raise RunError(f"device probe: its process {_end(process.exitcode)}; nothing was written") from None
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def probe_main(connection: Connection, device: Device) -> None:
    """Entry point of the process."""
    _detach()
    if device.uuid is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device.uuid  # before torch is imported
    try:
        connection.send(("card", _measured(device, lambda text: connection.send(("say", text)))))
    except MkframeError as error:
        connection.send(("error", error))
    except (BrokenPipeError, ConnectionResetError):
        return  # nobody is there to read it
    except Exception as error:
        text = " ".join(str(error).split())[:400]
        connection.send(("error", RunError(f"device probe: {type(error).__name__}: {text}; nothing was written")))


def _measured(device: Device, say: Callable[[str], None]) -> dict[str, Any]:
    if device.kind == "cpu":
        from mkframe.probe.cpu import probe_cpu

        return probe_cpu(device, say=say).document()
    from mkframe.probe.cuda_gpu import CudaGpu
    from mkframe.probe.session import probe_gpu

    if device.uuid is None or device.driver is None:
        raise DeviceError("device probe: the driver gives this device no UUID")
    say("compiling kernels")
    return probe_gpu(CudaGpu(device.uuid, device.driver), say=say).document()


def _detach() -> None:
    """Leaves Ctrl-C to the command line, dies with it, keeps standard output clean for it, and shows where a crash happened."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(2, 1)
    faulthandler.enable()


def _end(code: int | None) -> str:
    if code is None:
        return "closed its connection"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
