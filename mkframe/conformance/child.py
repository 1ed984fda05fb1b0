"""The process that holds the engine under test: takes names of requirements, answers with what was found."""

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.connection import Connection
from typing import Any

from mkframe.conformance.messages import Beat, Broken, Ended, NotAsked, Ready, Refused, Setup
from mkframe.conformance.requirements import Phase, Result
from mkframe.errors import SelectionError, UsageError
from mkframe.processes import adopt_orphans, descendants, end

_PR_SET_PDEATHSIG = 1
_LONGEST_REASON = 300


def child_main(connection: Connection, setup: Setup, phase: Phase) -> None:
    """Entry point of the process. Ends when the connection does."""
    _detach()
    try:
        subject, checks, context = _prepared(connection, setup, phase)
        connection.send(Ready())
        with context:
            while True:
                name: str = connection.recv()
                connection.send(_answer(checks[name], subject))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    end(descendants(os.getpid()))
    os._exit(0)  # an engine's threads must not keep the process alive


def _prepared(connection: Connection, setup: Setup, phase: Phase) -> tuple[Any, Any, AbstractContextManager[Any]]:
    """The subject, the functions of its phase, and the context in which they run (on CUDA: a stream that is not the default)."""
    if phase in (Phase.PLUGIN, Phase.QUESTIONS):
        from mkframe.conformance import questions

        return questions.Subject(setup), questions.CHECKS, nullcontext()
    uuids = [device.uuid for device in setup.devices if device.uuid is not None]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)  # before torch is imported
    import torch

    from mkframe.conformance import cells, traces

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # as in a worker
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    def beat(doing: str) -> None:
        connection.send(Beat(doing=doing))

    bench = traces.TraceBench(setup, beat)
    assert bench.engine is not None, "it loaded in the first phase"
    context = torch.cuda.stream(torch.cuda.Stream()) if uuids else nullcontext()
    return bench, cells.CHECKS if phase is Phase.CELLS else traces.CHECKS, context


def _answer(check: Callable[[Any], str], subject: Any) -> Ended | Refused:
    try:
        return Ended(result=Result.PASS, reason=check(subject))
    except Broken as broken:
        return Ended(result=Result.FAIL, reason=_line(str(broken)), healthy=_healthy())
    except NotAsked as skipped:
        return Ended(result=Result.SKIP, reason=_line(str(skipped)))
    except (SelectionError, UsageError) as error:
        return Refused(reason=_line(str(error)))
    except BaseException as error:  # SystemExit too: an engine that exits has failed a requirement, and no more
        where = getattr(subject, "where", "")
        reason = _line(f"{where}{': ' if where else ''}{type(error).__name__}: {error}")
    return Ended(result=Result.FAIL, reason=reason, healthy=_healthy())


def _healthy() -> bool:
    """Whether the device still answers: an illegal access poisons a CUDA context for good."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return True
    try:
        torch.cuda.synchronize()
    except Exception:
        return False
    return True


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_REASON]


def _detach() -> None:
    """Leaves Ctrl-C to the parent, dies with it, and keeps standard output clean for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)  # so that the parent can end what an engine has started
    adopt_orphans()
    os.dup2(2, 1)
    faulthandler.enable()
