"""The probe's kernels: CUDA C++ files of this package, compiled by NVRTC for the device that is there."""

from importlib import resources
from typing import Any

from mkframe.errors import RunError

SOURCES = ("launch.cu", "stream.cu")


def source(name: str) -> str:
    """The text of one of SOURCES."""
    return resources.files("mkframe.probe").joinpath("kernels", name).read_text(encoding="utf-8")


def compiled(name: str, architecture: str) -> bytes:
    """The cubin of a source for `sm_90` and the like. Raises RunError where NVRTC is missing or refuses it."""
    nvrtc = _nvrtc()
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source(name).encode(), name.encode(), 0, [], []))
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(status) != 0:
            raise RunError(f"device probe: {name} does not compile for {architecture}: {_log(nvrtc, program)}")
        code = bytes(_check(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
        _check(nvrtc, nvrtc.nvrtcGetCUBIN(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def nvrtc_version() -> str:
    """Raises RunError where NVRTC is missing."""
    nvrtc = _nvrtc()
    major, minor = _check(nvrtc, nvrtc.nvrtcVersion())
    return f"{major}.{minor}"


def _nvrtc() -> Any:
    missing = (
        "device probe: NVRTC, which compiles its kernels, cannot be loaded; install nvidia-cuda-nvrtc (a CUDA build of torch brings it)"
    )
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # the library itself is loaded by the first call
    except (ImportError, RuntimeError, OSError) as error:
        raise RunError(f"{missing}: {type(error).__name__}") from error
    return nvrtc


def _check(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RunError(f"device probe: NVRTC failed: {nvrtc.nvrtcResult(status).name}")
    return values[0] if len(values) == 1 else tuple(values)


def _log(nvrtc: Any, program: Any) -> str:
    log = b" " * _check(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    _check(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return " ".join(log.decode(errors="replace").rstrip("\0").split())[:400]
