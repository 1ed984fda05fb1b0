"""Engines that are right and careless: with what they say, what they write when the clock runs, what they leave behind."""

import gc
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from mkframe.plugin import Engine, Launches

SLEEP_S = "98765.4321"
LATE = 30  # with the first timed block


class Careful(Engine):
    workload = "residual_mlp"
    devices = ("cpu",)
    precisions = ("fp16",)
    id = "careful"

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        return Launches(call=self.call(tensors), facts=self.facts())

    def facts(self) -> Any:
        return {"steps": 2}

    def call(self, t: Mapping[str, Any]) -> Any:
        import torch

        def run() -> None:
            h = torch.relu(t["x"].float() @ t["W1"].float() + t["b1"]).half()
            torch.clamp(h.float() @ t["W2"].float() + t["b2"] + t["x"].float(), min=0, out=t["y"])

        return run


class FactsObject(Careful):
    id = "facts-object"

    def facts(self) -> Any:
        return {"a": object()}


class FactsNan(Careful):
    id = "facts-nan"

    def facts(self) -> Any:
        return {"a": float("nan")}


class FactsLoop(Careful):
    id = "facts-loop"

    def facts(self) -> Any:
        loop: dict[str, Any] = {}
        loop["a"] = loop
        return loop


class FactsPath(Careful):
    id = "facts-path"

    def facts(self) -> Any:
        return {"cubin": "/srv/somebody/kernels/x.cubin"}


class Surrogate(Careful):
    id = "surrogate"

    def call(self, t: Mapping[str, Any]) -> Any:
        raise RuntimeError("half a character: \ud800")


class Unprintable(Careful):
    id = "unprintable"

    def call(self, t: Mapping[str, Any]) -> Any:
        class Mute(Exception):
            def __str__(self) -> str:
                raise ValueError

        raise Mute


class TellsAPath(Careful):
    id = "tells-a-path"

    def call(self, t: Mapping[str, Any]) -> Any:
        return open("/srv/somebody/kernels/x.cubin")


class MissingSource(Careful):
    id = "missing-source"

    def sources(self) -> tuple[str, ...]:
        return ("/srv/somebody/kernels/x.cubin",)


class OddSource(Careful):
    id = "odd-source"

    def sources(self) -> Any:
        return 5


class BindsNothing(Careful):
    id = "binds-nothing"

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Any:
        return None


class WritesInputLate(Careful):
    id = "writes-input-late"

    def call(self, t: Mapping[str, Any]) -> Any:
        right, calls = super().call(t), [0]

        def run() -> None:
            right()
            calls[0] += 1
            if calls[0] == 20:
                t["x"].add_(1)

        return run


class LeavesAProcess(Careful):
    id = "leaves-a-process"

    def call(self, t: Mapping[str, Any]) -> Any:
        subprocess.Popen(["sleep", SLEEP_S])
        return super().call(t)


class LeavesAFork(Careful):
    id = "leaves-a-fork"

    def call(self, t: Mapping[str, Any]) -> Any:
        subprocess.Popen(["sh", "-c", f"sleep {SLEEP_S} & wait"], close_fds=False)
        return super().call(t)


class Untidy(Careful):
    """Changes what belongs to the process, at the clock, and leaves it so."""

    def __init__(self, name: str, change: Any) -> None:
        self.id = name
        self._change = change

    def call(self, t: Mapping[str, Any]) -> Any:
        right, calls = super().call(t), [0]

        def run() -> None:
            right()
            calls[0] += 1
            if calls[0] == LATE:
                self._change()

        return run


def other_folder() -> None:
    os.chdir("/")


def other_variable() -> None:
    os.environ["CARELESS"] = "1"


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def other_dtype() -> None:
    import torch

    torch.set_default_dtype(torch.float64)


def flushing() -> None:
    import torch

    torch.set_flush_denormal(True)


def strict_numpy() -> None:
    import numpy as np

    np.seterr(all="raise")


def collecting() -> None:
    gc.enable()


def late_fork() -> None:
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", SLEEP_S])


def late_daemon() -> None:
    """In a session of its own, and its parent is gone. Waits until it runs under its own name: exec closes the pipe."""
    ended, held = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", SLEEP_S])
        os._exit(0)
    os.close(held)
    os.read(ended, 1)
    os.close(ended)


def fork_that_returns() -> None:
    os.fork()


UNTIDY = (other_folder, other_variable, deaf, other_dtype, flushing, strict_numpy, collecting, late_fork, late_daemon)

ENGINES = tuple(Untidy(change.__name__.replace("_", "-"), change) for change in (*UNTIDY, fork_that_returns)) + tuple(
    kind()
    for kind in (
        Careful,
        FactsObject,
        FactsNan,
        FactsLoop,
        FactsPath,
        Surrogate,
        Unprintable,
        TellsAPath,
        MissingSource,
        OddSource,
        BindsNothing,
        WritesInputLate,
        LeavesAProcess,
        LeavesAFork,
    )
)
