"""The producer test: a kernel that writes the input late stands right before the engine, a reader right after it.

On compute capability 9.0 and later the producer lets the next kernel start at once. An engine whose first launch carries a
programmatic edge must wait by itself before it reads its input; one that does not computes on the old one.
"""

import ctypes
from functools import cache
from importlib import resources

import torch

from mkframe.check.buffers import PATTERNS, poison, read_back
from mkframe.check.case_data import BASE, FRESH, CaseData
from mkframe.check.cell import BoundCell, Evidence, load
from mkframe.graph.capture import capture
from mkframe.graph.launch import callable_of
from mkframe.graph.nvrtc import cubin, function_of
from mkframe.plugin.launches import KernelNode, Launches

NAME = "producer"
DELAY_NS = 200_000
_BLOCKS, _THREADS = 32, 256
_UNIT_BYTES = 2


def check_producer(bound: BoundCell, data: CaseData, stream: torch.cuda.Stream, evidence: Evidence) -> None:
    """Captures producer, engine and reader in one graph, and demands the right output for the input that came late.

    Raises CheckFailed through `evidence`; RunError where NVRTC is missing.
    """
    late = {name: torch.empty_like(bound.tensors[name]) for name in data.dynamic}
    for name, tensor in late.items():
        tensor.copy_(data.variants[FRESH].stored[name])
    seen = {name: torch.empty_like(bound.tensors[name]) for name in data.outputs}
    produce = callable_of(Launches(nodes=tuple(_late_copy(bound.tensors[name], late[name]) for name in data.dynamic)))

    def chain() -> None:
        produce()
        bound.call()
        for name, tensor in seen.items():
            tensor.copy_(bound.tensors[name])

    replay = capture(chain, stream, read=False).replay
    load(bound.tensors, data, BASE)
    poison(bound.tensors, bound.specs, PATTERNS[0])
    torch.cuda.synchronize()
    replay()
    torch.cuda.synchronize()
    evidence.add(NAME, data.judge(read_back(seen, data.outputs), FRESH))
    load(bound.tensors, data, BASE)


def _late_copy(target: torch.Tensor, source: torch.Tensor) -> KernelNode:
    units = target.numel() * target.element_size() // _UNIT_BYTES
    return KernelNode(
        name="late_copy",
        function=_function(),
        grid=(_BLOCKS, 1, 1),
        block=(_THREADS, 1, 1),
        arguments=(target, source, (units, ctypes.c_uint64), (DELAY_NS, ctypes.c_uint64)),
    )


def source_text() -> str:
    """The CUDA C++ of the producer."""
    return resources.files("mkframe.check").joinpath("kernels", "late_copy.cu").read_text(encoding="utf-8")


@cache
def _function() -> int:
    major, minor = torch.cuda.get_device_capability()
    return function_of(cubin(source_text(), "late_copy.cu", f"sm_{major}{minor}"), "late_copy")
