"""A kernel that is compiled ahead of its launch, and the architecture that it is compiled for."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

_MOST_THREADS = 1024
_LARGEST_CLUSTER = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a kernel is compiled for: `arch` as the compiler names it ("sm_90a"), the SMs of the device (None where no device is
    named) and the shared memory that one block may ask for, in bytes."""

    arch: str
    multiprocessors: int | None
    shared_bytes_per_block: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One compile-time instance of a kernel.

    module: import name of a module with `trace(config) -> (host function, arguments)`: what `cute.compile(host function, *arguments)`
        takes. It is imported in another process and may import cutlass; the host function launches one kernel.
    config: a frozen dataclass of ints, strings and booleans, out of a module that does not import cutlass.
    shared_bytes: dynamic shared memory of a block; the launch in the host function asks for as many (`smem=...`).
    block, cluster: threads of a block and blocks of a cluster, along x.
    name: for people and for the nodes of a graph.
    expects: beginnings of PTX instructions that must be there ("mma.sync", "cp.async.bulk"), the evidence of how it computes.

    Raises ValueError for anything else.
    """

    module: str
    config: Any
    shared_bytes: int
    block: int
    name: str
    cluster: int = 1
    expects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        module: Any = self.module  # whatever a plugin gives
        if not isinstance(module, str) or not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f"module must be the import name of a module, not {module!r}")
        _check_config(self.config)
        _check_count("shared_bytes", self.shared_bytes, 0, 2**31 - 1)
        _check_count("block", self.block, 1, _MOST_THREADS)
        _check_count("cluster", self.cluster, 1, _LARGEST_CLUSTER)
        name: Any = self.name
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ValueError(f"name must be a printable text, not {name!r}")
        expects: Any = self.expects
        if not isinstance(expects, tuple) or not all(isinstance(text, str) and text for text in expects):
            raise ValueError(f"expects must be a tuple of PTX instructions, not {expects!r}")


def _check_config(config: Any) -> None:
    kind = type(config)
    if isinstance(config, type) or not is_dataclass(config) or not getattr(kind, "__dataclass_params__").frozen:  # noqa: B009
        raise ValueError(f"config must be an instance of a frozen dataclass, not {kind.__name__}")
    if "." in kind.__qualname__:
        raise ValueError(f"config: {kind.__qualname__} must stand at the top of its module, where another process finds it")
    for item in fields(config):
        value = getattr(config, item.name)
        if type(value) not in (int, str, bool):
            raise ValueError(f"config.{item.name} must be an int, a str or a bool, not {type(value).__name__}")
        if not item.init:
            raise ValueError(f"config.{item.name} must be a parameter of {kind.__name__}")


def _check_count(name: str, value: Any, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}, not {value!r}")
