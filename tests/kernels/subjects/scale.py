"""A small kernel for the tests: y = factor x, one element a thread."""

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32
from cutlass.cute.runtime import make_fake_stream, make_ptr
from cutlass.cute.typing import AddressSpace


@cute.kernel
def scale_kernel(x: cute.Pointer, y: cute.Pointer, n: Int32, config: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * config.block + thread
    mX = cute.make_tensor(x, cute.make_layout(1 << 30))
    mY = cute.make_tensor(y, cute.make_layout(1 << 30))
    shift = Float32(0.0)
    if cutlass.const_expr(config.words > 0):
        words = cutlass.memory.SmemAllocator().allocate_array(Float32, config.words, byte_alignment=128)
        sX = cute.make_tensor(words, cute.make_layout(config.words))
        sX[thread % config.words] = Float32(1.0) * thread
        cute.arch.sync_threads()
        shift = sX[(thread + 1) % config.words]
    if i < n:
        mY[i] = mX[i] * config.factor + shift


@cute.jit
def scale(x: cute.Pointer, y: cute.Pointer, n: Int32, stream: CUstream, config: cutlass.Constexpr):
    scale_kernel(x, y, n, config).launch(
        grid=((n + config.block - 1) // config.block, 1, 1),
        block=(config.block, 1, 1),
        cluster=(config.cluster, 1, 1) if config.cluster > 1 else None,
        smem=config.shared_bytes,
        stream=stream,
    )


def trace(config):
    def pointer():
        return make_ptr(Float32, 16, AddressSpace.gmem, assumed_align=4)

    return scale, (pointer(), pointer(), Int32(1), make_fake_stream(), config)
