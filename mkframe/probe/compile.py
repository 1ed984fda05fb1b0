"""The probe's kernels: CUDA C++ files of this package, compiled by NVRTC for the device that is there."""

from importlib import resources

from mkframe.graph import nvrtc

SOURCES = ("launch.cu", "stream.cu")


def source(name: str) -> str:
    """The text of one of SOURCES."""
    return resources.files("mkframe.probe").joinpath("kernels", name).read_text(encoding="utf-8")


def compiled(name: str, architecture: str) -> bytes:
    """The cubin of a source for `sm_90` and the like. Raises RunError where NVRTC is missing or refuses it."""
    return nvrtc.cubin(source(name), name, architecture)
