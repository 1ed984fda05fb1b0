"""The key of a compiled kernel: the hash of everything that it depends on."""

import ctypes
import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mkframe import canonical
from mkframe.errors import KernelError
from mkframe.kernels.result import FORMAT
from mkframe.kernels.sources import read_source, source_files
from mkframe.model.kernel import Kernel

_PACKAGE = "nvidia-cutlass-dsl"
_FLAVOUR = re.compile(r"cu(\d+)")


def key_of(kernel: Kernel, arch: str) -> str:
    """64 hex digits over the sources of the kernel (kernels.sources), its configuration, the architecture and the compiler.

    Raises KernelError where a source or the compiler is missing.
    """
    config = type(kernel.config)
    files = source_files(kernel.module, config.__module__)
    return canonical.digest(
        {
            "format": FORMAT,
            "module": kernel.module,
            "sources": {module: canonical.sha256(read_source(file)) for module, file in files.items()},
            "config": f"{config.__module__}:{kernel.config!r}",
            "launch": [kernel.shared_bytes, kernel.block, kernel.cluster],
            "arch": arch,
            "compiler": compiler(),
        }
    )


@cache
def compiler() -> tuple[str, ...]:
    """Versions of the CuTe DSL and its libraries, and which of the installed flavours ("cu12", "cu13") it takes here.

    Raises KernelError where it is not installed.
    """
    taken = flavour()
    try:
        packages = (_PACKAGE, f"{_PACKAGE}-libs-base", f"{_PACKAGE}-libs-{taken}")
        return (*(f"{name} {version(name)}" for name in packages), taken)
    except PackageNotFoundError as error:
        raise KernelError(f"{error.name} is not installed; pip install {_PACKAGE} (Linux only)") from None


def flavour() -> str:
    """The flavour that the CuTe DSL takes: the newest that the driver can load, the newest installed where there is no driver.
    Raises KernelError where none is installed."""
    spec = find_spec("nvidia_cutlass_dsl")
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    there = {int(found[1]) for folder in folders for entry in os.listdir(folder) if (found := _FLAVOUR.fullmatch(entry))}
    major = _driver_major()
    usable = [number for number in there if major is None or number <= major]
    if not usable:
        raise KernelError(
            f"no CuTe DSL for this driver (CUDA {major}) is installed; pip install {_PACKAGE}"
            if there
            else f"the CuTe DSL, which compiles kernels, is not installed; pip install {_PACKAGE} (Linux only)"
        )
    return f"cu{max(usable)}"


def _driver_major() -> int | None:
    """The driver's CUDA version, without initialising it; None where there is no driver."""
    number = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return None
    return None if failed else number.value // 1000
