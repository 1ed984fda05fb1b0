"""The requirements on what an engine leaves behind, in a process in which it has done nothing before."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from mkframe.conformance.bench import Bench, bind
from mkframe.conformance.messages import Broken

_CALLS = 3
_MORE_CALLS = 20
_SHOWN = 80
_OF_COMPILERS = ("TORCHINDUCTOR_", "_TORCHINDUCTOR_", "TRITON_")  # inductor sets some of these itself when it compiles


@dataclass(kw_only=True, slots=True)
class _Trace:
    """What was different after the engine had been bound and called. `printed`: what it wrote to standard output and error."""

    printed: str = ""
    cells: int = 0
    differences: dict[str, str] = field(default_factory=dict)


class TraceBench(Bench):
    """A bench that watches the engine once, the first time that anybody asks."""

    _trace: _Trace | None = None

    def trace(self) -> _Trace:
        if self._trace is None:
            self._trace = self._watched()
        return self._trace

    def _watched(self) -> _Trace:
        trace = _Trace()
        warm_up_torch()
        cells = list(self.few())  # draws all data, so that none of it is taken for the engine's
        before = _state()
        with _captured_output() as output:
            for cell in cells:
                bound = bind(cell)
                bound.call(_CALLS)
                if bound.launches.on_ready is not None:
                    bound.launches.on_ready()
                bound.call(_CALLS)
                warm = _native_threads()
                bound.call(_MORE_CALLS)
                if _native_threads() > warm:
                    trace.differences.setdefault("no threads", f"the process has {_native_threads() - warm} threads more after warm calls")
                trace.cells += 1
                del bound
            sys.stdout.flush()
            sys.stderr.flush()
            trace.printed = output()
        for name, (requirement, value) in _state().items():
            was = before.get(name, (requirement, None))[1]
            if value != was:
                trace.differences.setdefault(requirement, f"{name} was {was} and is {value}"[:300])
        return trace


def warm_up_torch() -> None:
    """Makes torch start the threads that it keeps, and create what it creates once."""
    work = torch.ones(1 << 18)
    for _ in range(3):
        (work * 2).sum()
        torch.mm(torch.ones(256, 256), torch.ones(256, 256))
    torch.mm(torch.ones(256, 256, dtype=torch.float16), torch.ones(256, 256, dtype=torch.float16))


def _state() -> dict[str, tuple[str, Any]]:
    """Everything that an engine must leave as it was: what it is called -> (requirement, value)."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    torch_state = {
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "deterministic algorithms": (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        "anomaly mode": torch.is_anomaly_enabled(),
        "the number of threads": torch.get_num_threads(),
        "the number of interop threads": torch.get_num_interop_threads(),
        "the precision of float32 products": torch.get_float32_matmul_precision(),
        "TF32 in cuDNN": cudnn.allow_tf32,
        "reduced fp16 reductions": matmul.allow_fp16_reduced_precision_reduction,
        "reduced bf16 reductions": matmul.allow_bf16_reduced_precision_reduction,
        "cuDNN's switches": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic),
        "flushing of denormals": float(torch.tensor([1e-310], dtype=torch.float64).mul(1.0)),
    }
    variables = {name: value for name, value in sorted(os.environ.items()) if not name.startswith(_OF_COMPILERS)}
    process_state = {
        "the current folder": os.getcwd(),
        **{f"the handler of {number.name}": _handler(number) for number in signal.Signals},
        **{f"the variable {name}": value for name, value in variables.items()},
        "the number of variables": len(variables),
        "the umask": _umask(),
    }
    return {
        **{name: ("torch state", value) for name, value in torch_state.items()},
        **{name: ("process state", value) for name, value in process_state.items()},
        "the set of Python threads": ("no threads", sorted(thread.name for thread in threading.enumerate())),
        "the set of child processes": ("no children", _children()),
    }


def _handler(number: signal.Signals) -> str:
    return repr(signal.getsignal(number))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _native_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _children() -> list[str]:
    """Running processes whose parent is this one, by name (not those that have ended and wait to be collected)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = entry.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) == os.getpid() and state != "Z":
            found.append(name)
    return sorted(found)


@contextmanager
def _captured_output() -> Iterator[Callable[[], str]]:
    """Sends standard output and error into a file, for Python and for native code alike."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield read
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(kept, start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)


def _left(requirement: str) -> Callable[[TraceBench], str]:
    def check(bench: TraceBench) -> str:
        trace = bench.trace()
        if requirement in trace.differences:
            raise Broken(trace.differences[requirement])
        return f"{trace.cells} cells"

    return check


def silent(bench: TraceBench) -> str:
    trace = bench.trace()
    text = " ".join(trace.printed.split())
    if text:
        raise Broken(f"it prints {text[:_SHOWN]!r}{' ...' if len(text) > _SHOWN else ''}")
    return f"{trace.cells} cells"


CHECKS: Mapping[str, Callable[[TraceBench], str]] = {
    **{name: _left(name) for name in ("no threads", "no children", "torch state", "process state")},
    "silent": silent,
}
