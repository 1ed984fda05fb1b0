"""NVRTC: CUDA C++ to a cubin for the device at hand."""

from typing import Any

from mkframe.errors import RunError
from mkframe.graph.driver import check, driver


def cubin(source: str, name: str, architecture: str) -> bytes:
    """Compiles a source text for `sm_90` and the like; `name` stands for the file in messages.

    Raises RunError where NVRTC is missing or refuses the source.
    """
    nvrtc = _nvrtc()
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], []))
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if int(status) != 0:
            raise RunError(f"{name} does not compile for {architecture}: {_log(nvrtc, program)}")
        code = bytes(_check(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
        _check(nvrtc, nvrtc.nvrtcGetCUBIN(program, code))
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def function_of(code: bytes, name: str) -> int:
    """Loads a cubin in the current context and returns the handle (CUfunction) of one of its kernels, for KernelNode."""
    cu = driver()
    return int(check(cu.cuModuleGetFunction(check(cu.cuModuleLoadData(code)), name.encode())))


def version() -> str:
    """NVRTC's version. Raises RunError where it is missing."""
    nvrtc = _nvrtc()
    major, minor = _check(nvrtc, nvrtc.nvrtcVersion())
    return f"{major}.{minor}"


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # the library itself is loaded by the first call
    except (ImportError, RuntimeError, OSError) as error:
        raise RunError(
            "NVRTC, which compiles our CUDA kernels, cannot be loaded; install nvidia-cuda-nvrtc (a CUDA build of torch brings it): "
            f"{type(error).__name__}"
        ) from error
    return nvrtc


def _check(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RunError(f"NVRTC failed: {nvrtc.nvrtcResult(status).name}")
    return values[0] if len(values) == 1 else tuple(values)


def _log(nvrtc: Any, program: Any) -> str:
    log = b" " * _check(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    _check(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return " ".join(log.decode(errors="replace").rstrip("\0").split())[:400]
