"""The process that compiles: it alone imports the CuTe DSL. One job on standard input, one line of JSON for each kernel on a pipe."""

import base64
import ctypes
import importlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from mkframe.text import told

_PR_SET_PDEATHSIG = 1
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SHARED = re.compile(r"smem\.config_smem_size = (\d+)")
_DIMENSIONS = r"exact_{what}_dim = array<i64: (\d+), (\d+), (\d+)>"
_OVERFLOW = re.compile(r'global internal constant @(\w+)\("[^"]*may exceed available memory set in kernel launch')
_FLAVOUR = re.compile(r"\.(cu\d+)\.")
_LONGEST_MESSAGE = 600


def child_main(job: Mapping[str, Any]) -> None:
    """Compiles what the job asks for and ends. `arch` and the folder for dumps are in the environment (CUTE_DSL_...)."""
    report = int(job["report"])
    os.set_inheritable(report, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(2, 1)  # whatever the compiler prints
    with os.fdopen(report, "w", encoding="ascii") as pipe:
        for name, paths in job["packages"].items():
            _make_package(name, paths)
        for kernel in job["kernels"]:
            try:
                answer = _compiled(kernel)
            except BaseException as error:  # SystemExit too: a kernel that does not compile costs itself alone
                answer = {"error": _ESCAPES.sub("", told(error))[:_LONGEST_MESSAGE]}
            pipe.write(json.dumps(answer) + "\n")
            pipe.flush()
    os._exit(0)  # nothing of the compiler is to be waited for


def _make_package(name: str, paths: list[str]) -> None:
    """A package that only the asking process knows (a folder of plugins), so that its modules can be imported here too."""
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return
    module = ModuleType(name)
    module.__path__ = list(paths)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__spec__.submodule_search_locations = list(paths)
    sys.modules[name] = module


def _compiled(kernel: Mapping[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    import cutlass.cute as cute

    kind = getattr(importlib.import_module(kernel["config_module"]), kernel["config_type"])
    config = kind(**kernel["config"])
    began = max(began, _imported_at(kernel["module"]))
    function, arguments = importlib.import_module(kernel["module"]).trace(config)
    compiled = cute.compile(function, *arguments)
    ptx, cubin = compiled.__ptx__, compiled.__cubin__
    if not isinstance(ptx, str) or not isinstance(cubin, bytes):
        raise RuntimeError("the CuTe DSL gave no PTX and cubin back")
    return {
        "ptx": ptx,
        "cubin": base64.b64encode(cubin).decode(),
        "seconds": time.perf_counter() - began,
        "launch": _launch(compiled.__mlir__ or "", str(compiled.ir_module)),
        "flavour": _flavour(),
    }


def _imported_at(module: str) -> float:
    """Imports a module, so that its time does not count, and returns when that was done."""
    importlib.import_module(module)
    return time.perf_counter()


def _launch(traced: str, lowered: str) -> dict[str, Any]:
    """What the host function launches, out of the compiler's own text; None for what it does not say. `overflows`: the kernel allocates
    more shared memory than the launch asks for."""
    shared = _SHARED.search(traced)
    overflow = _OVERFLOW.search(lowered)
    return {
        "shared_bytes": None if shared is None else int(shared[1]),
        "block": _dimensions(traced, "block"),
        "cluster": _dimensions(traced, "cluster"),
        "overflows": overflow is not None and f"addressof @{overflow[1]} " in lowered,
    }


def _dimensions(traced: str, what: str) -> list[int] | None:
    found = re.search(_DIMENSIONS.format(what=what), traced)
    return None if found is None else [int(size) for size in found.groups()]


def _flavour() -> str | None:
    library = sys.modules.get("cutlass._mlir._mlir_libs._cutlass_ir")
    found = _FLAVOUR.search(os.path.basename(getattr(library, "__file__", None) or ""))
    return None if found is None else found[1]
