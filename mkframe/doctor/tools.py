"""The doctor's lines on tools: compilers, NVRTC, CuTe DSL, plugins. Whatever must be run or imported is, in a child process."""

import json
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mkframe.doctor.child import Ended, run_child
from mkframe.doctor.gpus import driver_lines
from mkframe.doctor.line import Line, no, ok, warn

Run = Callable[[Sequence[str], float], Ended]
_COMPILERS = ("c++", "g++", "clang++")
_NVRTC = "from mkframe.graph.nvrtc import version; print(version())"
_CUTE = "import cutlass, cutlass.cute; print(getattr(cutlass, '__version__', 'unknown'))"
_PLUGINS = (
    "import json, sys; from mkframe.plugin.loader import load_registry; found = load_registry(sys.argv[1:]); "
    "print(json.dumps({'engines': len(found.engines), 'failures': [[f.id, f.origin, f.error] for f in found.failures]}))"
)


def gpu_lines(environ: Mapping[str, str], timeout_s: float, run: Run = run_child) -> Iterator[Line]:
    ended = run([sys.executable, "-m", "mkframe.doctor.gpu_facts"], timeout_s)
    try:
        facts: Any = json.loads(ended.output) if ended.code == 0 else None
    except ValueError:
        facts = None
    if facts is None:
        means = "no GPU can be measured"
        yield no("driver", f"NVML failed: {ended.last_error}", means, "check the driver with nvidia-smi", "cuda")
    else:
        yield from driver_lines(facts, environ)


def compiler_lines(
    timeout_s: float, run: Run = run_child, which: Callable[[str], str | None] = shutil.which, include: Path | None = None
) -> Iterator[Line]:
    """torch-compile on a CPU builds C++ against Python.h."""
    means, folder = "torch-compile cannot run on the CPU", include or Path(sysconfig.get_paths()["include"])
    name = next((name for name in _COMPILERS if which(name)), None)
    if name is None:
        yield warn("C++ compiler", "none", means, "install g++ or clang++")
        return
    ended = run([name, "--version"], timeout_s)
    if ended.code != 0:
        yield warn("C++ compiler", f"{name} fails: {ended.last_error}", means, "install g++ or clang++")
    elif not (folder / "Python.h").is_file():
        yield warn("C++ compiler", f"{name}, and Python.h is missing", means, "install the headers of Python (python3-dev or the like)")
    else:
        yield ok("C++ compiler", f"{_first(ended.output)}; Python.h is there", "torch-compile can run on the CPU")


def nvcc_lines(timeout_s: float, run: Run = run_child, which: Callable[[str], str | None] = shutil.which) -> Iterator[Line]:
    if which("nvcc") is None:
        yield ok("nvcc", "none", "not needed: NVRTC and the kernel languages compile")
        return
    ended = run(["nvcc", "--version"], timeout_s)
    release = next((line.strip() for line in ended.output.splitlines() if "release" in line), "")
    if ended.code != 0 or not release:
        yield warn("nvcc", f"fails: {ended.last_error}", "compile-only tests of kernels are skipped", "repair the CUDA toolkit")
    else:
        yield ok("nvcc", release, "compile-only tests of kernels can run")


def nvrtc_lines(timeout_s: float, run: Run = run_child) -> Iterator[Line]:
    ended = run([sys.executable, "-c", _NVRTC], timeout_s)
    if ended.code == 0:
        yield ok("NVRTC", ended.output.strip(), "device probe can compile its kernels")
    else:
        advice = "install a CUDA build of torch, or nvidia-cuda-nvrtc"
        yield warn("NVRTC", f"cannot be loaded ({ended.last_error.rpartition(': ')[2]})", "device probe cannot measure a GPU", advice)


def cute_lines(timeout_s: float, run: Run = run_child) -> Iterator[Line]:
    ended = run([sys.executable, "-c", _CUTE], timeout_s)
    if ended.code == 0:
        yield ok("CuTe DSL", ended.output.strip(), "engines written in it can be compiled")
    else:
        yield warn("CuTe DSL", f"not importable: {ended.last_error}", "engines written in it are unsupported", "install nvidia-cutlass-dsl")


def plugin_lines(paths: Sequence[str], timeout_s: float, run: Run = run_child) -> Iterator[Line]:
    ended = run([sys.executable, "-c", _PLUGINS, *paths], timeout_s)
    try:
        found: Any = json.loads(ended.output.splitlines()[-1]) if ended.code == 0 else None
    except (ValueError, IndexError):
        found = None
    if found is None:
        yield warn("plugins", f"cannot be loaded: {ended.last_error}", "engines are missing", "python -m mkframe engines shows them")
        return
    for name, origin, error in found["failures"]:
        yield warn("plugins", f"{name} ({origin}): {error}", "its engines are missing", "repair or remove it")
    if not found["failures"]:
        yield ok("plugins", f"{found['engines']} engines", "every plugin was loaded")


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
