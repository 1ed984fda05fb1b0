"""Kernels written in the CuTe DSL: compiled in a process of their own, kept on disk, launched as KernelNodes.

kernel = Kernel(module="my_package.kernels.scale", config=Scale(block=128), shared_bytes=0, block=128, name="scale")
launch = node(kernel, current_target(), grid, (x, y, (n, ctypes.c_int32)))

Neither torch nor the CuTe DSL is imported here. docs/compile.md says how a kernel module is written.
"""

from mkframe.errors import KernelError
from mkframe.kernels.build import compile_kernels, compiled
from mkframe.kernels.nodes import facts, node
from mkframe.kernels.result import Compiled
from mkframe.kernels.sources import kernel_sources
from mkframe.kernels.targets import SHARED_BYTES, arch_of, current_target, target, target_of
from mkframe.model.kernel import Kernel, Target

__all__ = [
    "SHARED_BYTES",
    "Compiled",
    "Kernel",
    "KernelError",
    "Target",
    "arch_of",
    "compile_kernels",
    "compiled",
    "current_target",
    "facts",
    "kernel_sources",
    "node",
    "target",
    "target_of",
]
