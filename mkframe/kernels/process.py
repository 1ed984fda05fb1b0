"""Starts the process that compiles, and reads what it answers."""

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mkframe.errors import KernelError
from mkframe.kernels.sources import package_paths
from mkframe.model.kernel import Kernel
from mkframe.text import one_line

LIMIT_S = 300.0
"""Longest time for one kernel, imports included."""
_CHILD = (
    "import json, os, sys; job = json.load(sys.stdin); os.dup2(os.open(os.devnull, os.O_RDWR), 0); sys.path[:] = job['path']; "
    "from mkframe.kernels.child import child_main; child_main(job)"
)
_POLL_S = 0.2
_LONGEST_COMPLAINT = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """What the host function launches, None where the compiler does not say. `overflows`: the kernel takes more shared memory."""

    shared_bytes: int | None
    block: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None
    overflows: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """What the compiler made of one kernel, in how many seconds, with which flavour of its libraries."""

    ptx: str
    cubin: bytes
    seconds: float
    launch: Launch
    flavour: str | None


def compile_in_child(kernels: Sequence[Kernel], arch: str, limit_s: float = LIMIT_S) -> Generator[Raw | KernelError, None, None]:
    """Compiles kernels for one architecture, in their order and one after the other, in a process of their own. A kernel that ends the
    process or never ends costs itself alone: the others are compiled by another process."""
    left = list(kernels)
    while left:
        with _child(left, arch) as (child, report, complaints):
            for answer in _answers(report, limit_s):
                yield _read(left.pop(0), answer)
                if not left:
                    return
            fate = _fate(child, complaints, limit_s)
        yield KernelError(f"{_whose(left.pop(0))}: {fate}")


def _answers(report: int, limit_s: float) -> Iterator[bytes]:
    """Lines as they come, until the pipe ends or is silent for too long."""
    buffer, deadline = b"", time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if not select.select([report], [], [], _POLL_S)[0]:
            continue
        data = os.read(report, 1 << 20)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line
            deadline = time.monotonic() + limit_s


def _fate(child: "subprocess.Popen[bytes]", complaints: Path, limit_s: float) -> str:
    try:
        code = child.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return f"the compiler came to no end within {limit_s:g} s"
    how = f"was killed with {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    lines = [one_line(line) for line in complaints.read_text(errors="replace").splitlines() if line.strip()]
    return f"the compiler {how}" + (f": {lines[-1][:_LONGEST_COMPLAINT]}" if lines else "")


def _read(kernel: Kernel, answer: bytes) -> Raw | KernelError:
    found = json.loads(answer)
    if "error" in found:
        return KernelError(f"{_whose(kernel)} does not compile: {found['error']}")
    launch = found["launch"]
    return Raw(
        ptx=found["ptx"],
        cubin=base64.b64decode(found["cubin"]),
        seconds=found["seconds"],
        launch=Launch(
            shared_bytes=launch["shared_bytes"],
            block=_dimensions(launch["block"]),
            cluster=_dimensions(launch["cluster"]),
            overflows=launch["overflows"],
        ),
        flavour=found["flavour"],
    )


def _dimensions(found: list[int] | None) -> tuple[int, int, int] | None:
    return None if found is None else (found[0], found[1], found[2])


def _whose(kernel: Kernel) -> str:
    return f"kernel {kernel.name} ({kernel.module}, {kernel.config!r})"


@contextmanager
def _child(kernels: Sequence[Kernel], arch: str) -> Iterator[tuple["subprocess.Popen[bytes]", int, Path]]:
    """The process, in a group that ends with the block, the end of the pipe that it reports to, and what it prints."""
    with tempfile.TemporaryDirectory(prefix="mkframe-kernels-", ignore_cleanup_errors=True) as folder:
        complaints = Path(folder, "complaints")
        report, theirs = os.pipe()
        try:
            with complaints.open("wb") as errors:
                child = subprocess.Popen(
                    [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", _CHILD],  # type: ignore[attr-defined]
                    stdin=subprocess.PIPE,
                    stdout=errors,
                    stderr=errors,
                    pass_fds=(theirs,),
                    cwd=folder,
                    env=_environment(os.environ, arch, folder),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(report)
            raise KernelError(f"the process that compiles kernels cannot be started: {error.strerror or error}") from error
        finally:
            os.close(theirs)
        try:
            assert child.stdin is not None, "it is a pipe"
            with suppress(BrokenPipeError), child.stdin:
                child.stdin.write(json.dumps(_job(kernels, theirs)).encode("ascii"))
            yield child, report, complaints
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            os.close(report)


def _environment(environ: Mapping[str, str], arch: str, folder: str) -> dict[str, str]:
    """Without the user's own settings of the compiler: they would change kernels, and no key knows of them."""
    kept = {name: value for name, value in environ.items() if not name.startswith("CUTE_DSL_")}
    return kept | {
        "CUTE_DSL_ARCH": arch,
        "CUTE_DSL_KEEP": "ir,ptx,cubin",  # else the compiler gives none of them back
        "CUTE_DSL_DUMP_DIR": folder,
        "CUTE_DSL_CACHE_DIR": folder,
    }


def _job(kernels: Sequence[Kernel], report: int) -> dict[str, Any]:
    modules = {module for kernel in kernels for module in (kernel.module, type(kernel.config).__module__)}
    return {
        "path": [os.path.abspath(entry) for entry in sys.path],
        "packages": {module.partition(".")[0]: list(package_paths(module)) for module in modules if package_paths(module)},
        "report": report,
        "kernels": [
            {
                "module": kernel.module,
                "config_module": type(kernel.config).__module__,
                "config_type": type(kernel.config).__qualname__,
                "config": asdict(kernel.config),
            }
            for kernel in kernels
        ],
    }
