"""A small kernel for the tests: y = factor x, one element a thread (and neighbours in a block, where it uses shared memory)."""

import os
import sys
import time

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
        if cutlass.const_expr(config.stack):
            rX = cute.make_rmem_tensor(cute.make_layout(128), Float32)
            for j in cutlass.range_constexpr(128):
                rX[j] = mX[i + j]
            for j in cutlass.range(n, unroll=1):
                rX[j % 128] = rX[(j * j) % 128] + mX[j]
            shift = rX[n % 128]
        mY[i] = mX[i] * config.factor + shift


@cute.jit
def scale(x: cute.Pointer, y: cute.Pointer, n: Int32, stream: CUstream, config: cutlass.Constexpr):
    for number in cutlass.range_constexpr(config.launches):
        scale_kernel(x, y, n, config.with_factor(config.factor + number)).launch(
            grid=((n + config.block - 1) // config.block, 1, 1),
            block=(config.block, 1, 1),
            cluster=(config.cluster, 1, 1) if config.cluster > 1 else None,
            smem=config.shared_bytes if config.shared_bytes >= 0 else None,
            stream=stream,
        )


def trace(config):
    _fail(config.fault)

    def pointer():
        return make_ptr(Float32, 16, AddressSpace.gmem, assumed_align=4)

    return scale, (pointer(), pointer(), Int32(1), make_fake_stream(), config)


def _fail(fault):
    if fault == "raise":
        raise ValueError("no such schedule\nfor this width")
    if fault == "exit":
        sys.exit(3)
    if fault == "abort":
        print("assertion failed in the compiler", file=sys.stderr, flush=True)
        os.abort()
    if fault == "hang":
        time.sleep(600)
    if fault == "print":
        print("a compiler may print")
