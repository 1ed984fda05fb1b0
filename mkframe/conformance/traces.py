"""The requirements on what an engine leaves behind, in a process in which it has done nothing before."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from mkframe.check.process_state import ProcessState
from mkframe.conformance.bench import Bench, bind
from mkframe.conformance.messages import Broken
from mkframe.processes import children

_CALLS = 3
_MORE_CALLS = 100
_SHOWN = 80
_LONGEST = 300


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
        state, threads, processes = ProcessState(), _python_threads(), children()
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
        for change in state.changes():
            trace.differences.setdefault(change.setting.kind, str(change))
        if (now := _python_threads()) != threads:
            trace.differences.setdefault("no threads", f"the set of Python threads was {threads} and is {now}"[:_LONGEST])
        if left := children().items() - processes.items():
            names = sorted(name for _, name in left)
            trace.differences.setdefault("no children", f"it left {len(left)} child process(es): {', '.join(names)}"[:_LONGEST])
        return trace


def warm_up_torch() -> None:
    """Makes torch start the threads that it keeps, and create what it creates once."""
    work = torch.ones(1 << 18)
    for _ in range(3):
        (work * 2).sum()
        torch.mm(torch.ones(256, 256), torch.ones(256, 256))
    torch.mm(torch.ones(256, 256, dtype=torch.float16), torch.ones(256, 256, dtype=torch.float16))


def _native_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _python_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())


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
