"""Hopper: weights are the A side of wgmma, as they lie, and eight or more rows of x its B side; h and y come out transposed.

A tile of rows is shared by `splits` blocks: each computes h and finishes a part of the channels, so that none holds all of W2. The
accumulators of the first product, a pair of rows for one hidden column, are what the second one wants side by side.
"""

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass import Float32, Int32, Int64

from mkframe_plugins.residual_mlp.kernels.configs import PANEL, WarpGroup
from mkframe_plugins.residual_mlp.kernels.fragments import element, half_of, launcher, load, pointers, put_element, store
from mkframe_plugins.residual_mlp.kernels.panels import ATOM_BYTES, CHUNK, copy_rows, descriptor, place, product


@cute.jit
def h_through_global(
    mine: cute.Pointer, target: cute.Pointer, count: cutlass.Constexpr, threads: cutlass.Constexpr, tidx, half: cutlass.Constexpr
):
    """h of this block's tile back from global memory, in the order in which it lies in shared memory."""
    for i in cutlass.range_constexpr(-(-count // CHUNK // threads)):
        at = CHUNK * (i * threads + tidx)
        if at < count:
            vector = cute.make_rmem_tensor(cute.make_layout(CHUNK), half)
            load(mine, at, vector, CHUNK, CHUNK, 2)
            store(vector, CHUNK, CHUNK, target, at, 2)


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
    blocks, _, _ = cute.arch.grid_dim()
    channels, hidden, half, threads, width = config.channels, config.hidden, half_of(config), config.threads, config.rows
    groups, splits, each1, each2 = config.groups, config.splits, config.hidden_tiles, config.column_tiles
    columns = config.part_columns
    lane = tidx % 32
    group = cute.arch.make_warp_uniform(tidx // 128)
    band = 16 * (cute.arch.make_warp_uniform(tidx // 32) % 4)  # of the 64 columns of a tile
    g = lane // 4
    t = lane % 4
    worker = bidx // splits
    workers = blocks // splits
    piece = bidx % splits
    column0 = piece * columns

    smem = cutlass.memory.SmemAllocator()
    sX = smem.allocate_array(half, config.x_room, byte_alignment=ATOM_BYTES)
    sW1 = smem.allocate_array(half, config.w1_room, byte_alignment=ATOM_BYTES)
    sW2 = smem.allocate_array(half, config.w2_room, byte_alignment=ATOM_BYTES)
    sH = smem.allocate_array(half, config.h_room, byte_alignment=128)

    # everything is on its way before anybody waits
    base = worker * width
    source = mX + cute.assume(Int64(base) * channels, divby=CHUNK)
    copy_rows(mW1, hidden, sW1, channels, hidden, None, threads, tidx, half)
    copy_rows(source, channels, sX, width, channels, rows - base, threads, tidx, half)
    cute.arch.cp_async_commit_group()
    copy_rows(mW2 + cute.assume(column0, divby=CHUNK), channels, sW2, hidden, columns, None, threads, tidx, half)
    cute.arch.cp_async_commit_group()
    rB1 = cute.make_rmem_tensor(cute.make_layout((2, each1)), Float32)
    rB2 = cute.make_rmem_tensor(cute.make_layout((2, each2)), Float32)
    for e in cutlass.range_constexpr(2):
        for i in cutlass.range_constexpr(each1):
            rB1[e, i] = element(mB1, cutlass.min(PANEL * (group + groups * i) + band + 8 * e + g, Int32(hidden - 1)))
        for i in cutlass.range_constexpr(each2):
            rB2[e, i] = element(mB2, cutlass.min(column0 + PANEL * (group + groups * i) + band + 8 * e + g, Int32(channels - 1)))

    turn = Int32(0)
    end = worker + 1 if cutlass.const_expr(config.single) else cute.ceil_div(rows, width)
    for tile in cutlass.range(worker, end, workers, unroll=1):
        base = tile * width
        if cutlass.const_expr(not config.single):
            if turn > 0:
                cute.arch.sync_threads()  # nobody reads the last tile any more
                source = mX + cute.assume(Int64(base) * channels, divby=CHUNK)
                copy_rows(source, channels, sX, width, channels, rows - base, threads, tidx, half)
                cute.arch.cp_async_commit_group()
                cute.arch.cp_async_commit_group()  # the place of W2, which is here
        cute.arch.cp_async_wait_group(1)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()

        # product 1: h transposed, a warp group takes every groups-th tile of 64 hidden columns
        image = mH + cute.assume(Int64(tile * splits + piece) * config.h_room, divby=CHUNK)
        if group < config.hidden_panels:
            sums = product(
                descriptor(sW1 + group * (channels * PANEL), ATOM_BYTES, ATOM_BYTES, True),
                descriptor(sX, ATOM_BYTES, ATOM_BYTES, True),
                each1,
                width,
                2 * groups * channels * PANEL,
                [2 * ATOM_BYTES * s for s in range(channels // 16)],
                [s // 4 * (2 * width * PANEL) + s % 4 * 32 for s in range(channels // 16)],
                False,
                config.bf16,
            )
            pair = cute.make_rmem_tensor(cute.make_layout(2), half)
            for i in cutlass.range_constexpr(each1):
                for e in cutlass.range_constexpr(2):
                    eight = PANEL * (group + groups * i) + band + 8 * e
                    if eight < hidden:
                        for j in cutlass.range_constexpr(width // 8):
                            for q in cutlass.range_constexpr(2):
                                h = cutlass.max(sums[i * (width // 2) + 4 * j + 2 * e + q] + rB1[e, i], Float32(0.0))
                                pair[q] = h.to(half)
                            at = eight * width + PANEL * j + CHUNK * g + 2 * t
                            if cutlass.const_expr(config.h_global):
                                store(pair, 2, 2, image, at, 2)
                            else:
                                store(pair, 2, 2, sH, at, 2)
        if cutlass.const_expr(config.h_global):
            cute.arch.sync_threads()
            h_through_global(image, sH, config.h_room, threads, tidx, half)
        # x once more, for the sum; it is there, and the second product is not waited for by anybody else
        residual = cute.make_rmem_tensor(cute.make_layout((2, 2, width // 8, each2)), Float32)
        for i in cutlass.range_constexpr(each2):
            for e in cutlass.range_constexpr(2):
                chunk = cutlass.min((column0 + PANEL * (group + groups * i) + band) // CHUNK + e, Int32(channels // CHUNK - 1))
                for j in cutlass.range_constexpr(width // 8):
                    for q in cutlass.range_constexpr(2):
                        value = element(sX, place(width, 8 * j + 2 * t + q, chunk) + g)
                        residual[q, e, j, i] = value.to(Float32) + rB2[e, i]
        cute.arch.cp_async_wait_group(0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()

        # product 2: y transposed
        if group < config.column_panels:
            outs = product(
                descriptor(sW2 + group * (hidden * PANEL), ATOM_BYTES, ATOM_BYTES, True),
                descriptor(sH, 16 * width, 128, False),
                each2,
                width,
                2 * groups * hidden * PANEL,
                [2 * ATOM_BYTES * s for s in range(hidden // 16)],
                [32 * width * s for s in range(hidden // 16)],
                True,
                config.bf16,
            )
            for i in cutlass.range_constexpr(each2):
                for e in cutlass.range_constexpr(2):
                    eight = PANEL * (group + groups * i) + band + 8 * e
                    if eight < columns:
                        for j in cutlass.range_constexpr(width // 8):
                            for q in cutlass.range_constexpr(2):
                                row = base + 8 * j + 2 * t + q
                                if row < rows:
                                    y = outs[i * (width // 2) + 4 * j + 2 * e + q] + residual[q, e, j, i]
                                    put_element(mY, Int64(row) * channels + (column0 + eight + g), cutlass.max(y, Float32(0.0)))
        turn += 1


def trace(config: WarpGroup):
    return launcher(mlp), pointers(config)
