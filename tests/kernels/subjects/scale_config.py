"""The compile-time parameters of scale.py, for processes without the CuTe DSL."""

from dataclasses import dataclass, replace

from mkframe.kernels import Kernel


@dataclass(frozen=True)
class Scale:
    """words: floats that the kernel allocates in shared memory; shared_bytes: what its launch asks for, -1: whatever is needed.
    stack: it indexes a local array. fault: what its trace does instead of tracing."""

    block: int = 128
    factor: int = 3
    words: int = 0
    shared_bytes: int = 0
    cluster: int = 1
    stack: bool = False
    launches: int = 1
    fault: str = ""

    def with_factor(self, factor: int) -> "Scale":
        return replace(self, factor=factor)


def kernel(config: Scale = Scale(), **declared: object) -> Kernel:
    """A true declaration of scale.py's kernel, but for what is `declared` otherwise."""
    true = {"shared_bytes": max(config.shared_bytes, 0), "block": config.block, "cluster": config.cluster}
    return Kernel(module="scale", config=config, name="scale", **(true | declared))  # type: ignore[arg-type]
