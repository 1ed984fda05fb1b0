"""Launches are data: what an engine hands to the framework instead of being called by it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Dim = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelNode:
    """One kernel launch, complete: the framework can launch, capture, patch and imitate it without the engine.

    `function` is a CUfunction or CUkernel handle as an integer. `arguments` are in parameter order: a tensor stands for
    its address, an (integer or float, ctypes type) pair for a scalar. `cluster` is (1, 1, 1) without clusters.
    `cooperative` asks for co-residency of all blocks; `programmatic` lets the kernel start before its predecessor ends
    (it must then wait by itself before it reads what the predecessor writes).
    """

    function: int
    grid: Dim
    block: Dim
    arguments: tuple[Any, ...]
    shared_bytes: int = 0
    cluster: Dim = (1, 1, 1)
    cooperative: bool = False
    programmatic: bool = False
    name: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launches:
    """What one call of a bound engine does: kernel nodes in order, or one opaque callable.

    The callable takes nothing, enqueues on torch's current stream, writes only the output and scratch tensors that it
    was bound to, and returns when everything is enqueued (on a CPU: done). `facts` go into the report as they are;
    `on_ready` runs once after the warm-up and before the first sample (to end compiler processes, say).
    """

    call: Callable[[], None] | None = None
    nodes: tuple[KernelNode, ...] = ()
    facts: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    on_ready: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        if (self.call is None) == (not self.nodes):
            raise ValueError("Launches needs kernel nodes or one callable, not both and not neither")
