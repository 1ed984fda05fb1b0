"""The smallest widths: fragments straight from global memory, h in registers.

At these sizes a call is one trip to L2 and back: there is nothing to stage, and the fewest instructions win.
"""

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass import Float32, Int32, Int64

from mkframe_plugins.residual_mlp.kernels.configs import InRegisters, up
from mkframe_plugins.residual_mlp.kernels.fragments import (
    element,
    half_of,
    launcher,
    load,
    mma_of,
    multiply,
    part,
    pointers,
    put_element,
    store,
)


@cute.jit
def take_rows(
    mX: cute.Pointer,
    row0,
    last,
    rA: cute.Tensor,
    rX: cute.Tensor,
    g,
    t,
    channels: cutlass.Constexpr,
    halves: cutlass.Constexpr,
    half: cutlass.Constexpr,
):
    """x of one tile: A fragments (8, steps) with zeros behind the channels, and (2, tiles, 2) where this lane's outputs are."""
    for r in cutlass.range_constexpr(halves):
        source = mX + Int64(cutlass.min(row0 + g + 8 * r, last)) * channels
        for s in cutlass.range_constexpr(up(channels, 16) // 16):
            for q in cutlass.range_constexpr(4):
                value = half(0.0)
                if 16 * s + 4 * t + q < channels:
                    value = element(source, 16 * s + 4 * t + q)
                rA[4 * (q // 2) + 2 * r + q % 2, s] = value
        for j in cutlass.range_constexpr(up(channels, 8) // 8):
            for i in cutlass.range_constexpr(2):
                rX[i, j, r] = element(source, cutlass.min(8 * j + 2 * t + i, Int32(channels - 1)))


@cute.kernel
def mlp(
    mX: cute.Pointer,
    mW1: cute.Pointer,
    mB1: cute.Pointer,
    mW2: cute.Pointer,
    mB2: cute.Pointer,
    mY: cute.Pointer,
    mH: cute.Pointer,
    rows: Int32,
    config: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    workers, _, _ = cute.arch.grid_dim()
    channels, hidden, warps, half = config.channels, config.hidden, config.warps, half_of(config)
    steps, tiles, halves = up(channels, 16) // 16, config.column_tiles, 1 if config.few else 2
    lane = tidx % 32
    wid = tidx // 32
    g = lane // 4
    t = lane % 4
    first = wid * 16  # of this warp's hidden columns
    last = rows - 1
    sums = cutlass.memory.SmemAllocator().allocate_array(Float32, max(config.partials, 1), byte_alignment=16) if warps > 1 else None

    # x leaves first: 1.32 us instead of 1.41 at 1 x 7 x 13
    rA = cute.make_rmem_tensor(cute.make_layout((8, steps)), half)
    rX = cute.make_rmem_tensor(cute.make_layout((2, tiles, 2)), half)
    rA.fill(0.0)
    take_rows(mX, bidx * 16, last, rA, rX, g, t, channels, halves, half)
    # K is dealt in fours: lane t holds channels 16 s + 4 t .. + 3 of step s, in x and in W1 alike
    rW1 = cute.make_rmem_tensor(cute.make_layout((4, 2, steps)), half)
    for s in cutlass.range_constexpr(steps):
        for q in cutlass.range_constexpr(4):
            k = cutlass.min(16 * s + 4 * t + q, Int32(channels - 1))
            for j in cutlass.range_constexpr(2):
                rW1[q, j, s] = element(mW1, k * hidden + cutlass.min(first + 8 * j + g, Int32(hidden - 1)))
    rB1 = cute.make_rmem_tensor(cute.make_layout((2, 2)), Float32)
    for j in cutlass.range_constexpr(2):
        for i in cutlass.range_constexpr(2):
            rB1[i, j] = element(mB1, cutlass.min(first + 8 * j + 2 * t + i, Int32(hidden - 1)))
    rW2 = cute.make_rmem_tensor(cute.make_layout((4, tiles)), half)
    for q in cutlass.range_constexpr(4):
        k = cutlass.min(first + 8 * (q // 2) + 2 * t + q % 2, Int32(hidden - 1))
        for j in cutlass.range_constexpr(tiles):
            rW2[q, j] = element(mW2, k * channels + cutlass.min(8 * j + g, Int32(channels - 1)))
    rB2 = cute.make_rmem_tensor(cute.make_layout((2, tiles)), Float32)
    for j in cutlass.range_constexpr(tiles):
        for i in cutlass.range_constexpr(2):
            rB2[i, j] = element(mB2, cutlass.min(8 * j + 2 * t + i, Int32(channels - 1)))

    mma = mma_of(half)
    turn = Int32(0)
    end = bidx + 1 if cutlass.const_expr(config.single) else cute.ceil_div(rows, 16)
    for tile in cutlass.range(bidx, end, workers, unroll=1):
        if cutlass.const_expr(not config.single):
            if turn > 0:
                take_rows(mX, tile * 16, last, rA, rX, g, t, channels, halves, half)
        rH = cute.make_rmem_tensor(cute.make_layout((4, 2)), Float32)
        rH.fill(0.0)
        for s in cutlass.range_constexpr(steps):
            for j in cutlass.range_constexpr(2):
                multiply(mma, part(rA, 8 * s, 8), part(rW1, 4 * (j + 2 * s), 4), part(rH, 4 * j, 4))
        # the accumulator of product 1 has its columns where the A fragment of product 2 wants them
        rF = cute.make_rmem_tensor(cute.make_layout(8), half)
        for j in cutlass.range_constexpr(2):
            for r in cutlass.range_constexpr(2):
                for i in cutlass.range_constexpr(2):
                    h = cutlass.max(rH[2 * r + i, j] + rB1[i, j], Float32(0.0))
                    if first + 8 * j + 2 * t + i >= hidden:
                        h = Float32(0.0)
                    rF[4 * j + 2 * r + i] = h.to(half)
        if cutlass.const_expr(config.h_global):
            for j in cutlass.range_constexpr(2):
                for r in cutlass.range_constexpr(halves):
                    row = tile * 16 + g + 8 * r
                    if row < rows:
                        store(part(rF, 4 * j + 2 * r, 2), 2, 2, mH, Int64(row) * config.h_pitch + (first + 8 * j + 2 * t), 2)
            cute.arch.sync_threads()
            for j in cutlass.range_constexpr(2):
                for r in cutlass.range_constexpr(halves):
                    row = cutlass.min(tile * 16 + g + 8 * r, last)
                    load(mH, Int64(row) * config.h_pitch + (first + 8 * j + 2 * t), part(rF, 4 * j + 2 * r, 2), 2, 2, 2)
        rY = cute.make_rmem_tensor(cute.make_layout((4, tiles)), Float32)
        rY.fill(0.0)
        for j in cutlass.range_constexpr(tiles):
            multiply(mma, rF, part(rW2, 4 * j, 4), part(rY, 4 * j, 4))
        if cutlass.const_expr(warps > 1):
            base = (turn % config.buffers) * (config.partials // config.buffers)
            for j in cutlass.range_constexpr(tiles):
                for r in cutlass.range_constexpr(halves):
                    store(part(rY, 4 * j + 2 * r, 2), 2, 2, sums, base + (((j * 2 + r) * warps + wid) * 32 + lane) * 2, 4)
            cute.arch.sync_threads()
        for j in cutlass.range_constexpr(tiles):
            for r in cutlass.range_constexpr(halves):
                if wid == (j * halves + r) % warps:
                    pair = cute.make_rmem_tensor(cute.make_layout((2, warps)), Float32)
                    for w in cutlass.range_constexpr(warps):
                        if cutlass.const_expr(warps > 1):
                            load(sums, base + (((j * 2 + r) * warps + w) * 32 + lane) * 2, part(pair, 2 * w, 2), 2, 2, 4)
                        else:
                            for i in cutlass.range_constexpr(2):
                                pair[i, w] = rY[2 * r + i, j]
                    out = tile * 16 + g + 8 * r
                    for i in cutlass.range_constexpr(2):
                        total = pair[i, 0]
                        for w in cutlass.range_constexpr(1, warps):
                            total += pair[i, w]
                        column = 8 * j + 2 * t + i
                        if out < rows and column < channels:
                            y = cutlass.max(total + rB2[i, j] + rX[i, j, r].to(Float32), Float32(0.0))
                            put_element(mY, Int64(out) * channels + column, y)
        turn += 1


def trace(config: InRegisters):
    return launcher(mlp), pointers(config)
