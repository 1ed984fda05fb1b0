"""From a compiled kernel to a KernelNode, and what a report says of it."""

import ctypes
from collections.abc import Sequence
from typing import Any

from mkframe.errors import KernelError
from mkframe.kernels.build import compiled
from mkframe.kernels.load import function_of
from mkframe.kernels.result import Compiled
from mkframe.model.kernel import Kernel, Target
from mkframe.plugin.launches import Dim, KernelNode

_POINTER_BYTES = 8
_SECONDS_PLACES = 3


def node(
    kernel: Kernel,
    target: Target,
    grid: int | Dim,
    arguments: Sequence[Any],
    cooperative: bool = False,
    programmatic: bool = False,
    *,
    api: Any = None,
) -> KernelNode:
    """One launch of a kernel in the current CUDA context, compiled or out of the cache, and loaded.

    grid: blocks, along x where it is one number. arguments: in the order of the kernel's parameters, as KernelNode takes them: tensors,
    and (value, ctypes type) pairs. `api` stands in for the driver in tests.

    Raises KernelError for a kernel that does not compile, a grid that no launch can have, and arguments that are not the kernel's
    parameters; RuntimeError where the driver refuses the kernel.
    """
    blocks = (grid, 1, 1) if isinstance(grid, int) else grid
    code = compiled(kernel, target)
    _check_grid(kernel, blocks)
    _check_arguments(kernel, code, arguments)
    return KernelNode(
        function=function_of(kernel, code, api),
        grid=blocks,
        block=(kernel.block, 1, 1),
        arguments=tuple(arguments),
        shared_bytes=kernel.shared_bytes,
        cluster=(kernel.cluster, 1, 1),
        cooperative=cooperative,
        programmatic=programmatic,
        name=kernel.name,
    )


def facts(kernels: Sequence[Kernel], target: Target) -> dict[str, Any]:
    """What a report says of the kernels that an engine launches, for Launches.facts: `compiled`, one entry for each kernel, with
    registers and spill bytes of a thread, dynamic shared bytes of a block, SHA-256 of PTX and cubin, and the seconds that compiling
    took (`from_cache`: in an earlier process). Raises KernelError."""
    return {"compiled": [_facts(kernel, compiled(kernel, target)) for kernel in dict.fromkeys(kernels)]}


def _facts(kernel: Kernel, code: Compiled) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "arch": code.arch,
        "registers": code.registers,
        "spill_bytes": code.frame_bytes,
        "shared_bytes": kernel.shared_bytes,
        "ptx_sha256": code.ptx_sha256,
        "cubin_sha256": code.cubin_sha256,
        "compile_s": round(code.compile_s, _SECONDS_PLACES),
        "from_cache": code.cached,
    }


def _check_grid(kernel: Kernel, grid: Dim) -> None:
    sizes: tuple[Any, ...] = grid
    if len(sizes) != 3 or any(type(size) is not int or size < 1 for size in sizes):
        raise KernelError(f"kernel {kernel.name}: a grid is three integers from 1 on, not {grid!r}")
    if grid[0] % kernel.cluster:
        raise KernelError(f"kernel {kernel.name}: {grid[0]} blocks along x are no whole number of clusters of {kernel.cluster}")


def _check_arguments(kernel: Kernel, code: Compiled, arguments: Sequence[Any]) -> None:
    given = [_size(argument) for argument in arguments]
    taken = [parameter.size for parameter in code.parameters]
    if given != taken:
        raise KernelError(
            f"kernel {kernel.name} ({kernel.module}) takes parameters of {taken} bytes, and is given "
            f"arguments of {given}; a pointer has 8, an Int32 or Float32 has 4"
        )


def _size(argument: Any) -> int:
    return ctypes.sizeof(argument[1]) if isinstance(argument, tuple) else _POINTER_BYTES
