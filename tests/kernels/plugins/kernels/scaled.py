"""out = config.factor * x, one element a thread. Not the workload's formula: this plugin is only compiled."""

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32
from cutlass.cute.runtime import make_fake_stream, make_ptr
from cutlass.cute.typing import AddressSpace

from .copying import flat  # noqa: TID252


@cute.kernel
def scaled_kernel(x: cute.Pointer, out: cute.Pointer, n: Int32, config: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * config.block + thread
    value = Float32(0.0)
    if i < n:
        if cutlass.const_expr(config.stack):
            rX = cute.make_rmem_tensor(cute.make_layout(128), Float32)
            for j in cutlass.range(n, unroll=1):
                rX[j % 128] = rX[(j * j) % 128] + flat(x, 1 << 30)[j]
            value = rX[n % 128]
        flat(out, 1 << 30)[i] = flat(x, 1 << 30)[i] * config.factor + value


@cute.jit
def scaled(x: cute.Pointer, out: cute.Pointer, n: Int32, stream: CUstream, config: cutlass.Constexpr):
    grid = ((n + config.block - 1) // config.block, 1, 1)
    scaled_kernel(x, out, n, config).launch(grid=grid, block=(config.block, 1, 1), smem=0, stream=stream)


def trace(config):
    pointers = [make_ptr(Float32, 16, AddressSpace.gmem, assumed_align=4) for _ in range(2)]
    return scaled, (*pointers, Int32(1), make_fake_stream(), config)
