"""Widths that are multiples of 16: weights and rows through padded shared memory, fragments by ldmatrix, h in shared memory.

A block holds its weights for as long as it lives and takes one tile of rows after another. In a cluster each block has a part of the
hidden columns; what it adds to the rows of another one is pushed into that one's shared memory, and summed in the order of ranks.
"""

from math import gcd

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import cpasync

from mkframe_plugins.residual_mlp.kernels.configs import Aligned
from mkframe_plugins.residual_mlp.kernels.fragments import half_of, launcher, load, matrices, mma_of, multiply, part, pointers, store


@cute.jit
def copy_rows(
    source: cute.Pointer,
    source_pitch: cutlass.Constexpr,
    target: cute.Pointer,
    target_pitch: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    there,
    threads: cutlass.Constexpr,
    tidx,
    half: cutlass.Constexpr,
):
    """rows x columns halves into shared memory by cp.async, 16 bytes each; rows from `there` on are left out."""
    vectors = columns // 8
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), half, num_bits_per_copy=128)
    layout = cute.make_layout(8)
    for i in cutlass.range_constexpr(-(-rows * vectors // threads)):
        # the quotient is split where that lets the compiler fold `i` into an address
        row = i * (threads // vectors) + tidx // vectors if threads % vectors == 0 else (i * threads + tidx) // vectors
        column = 8 * (tidx % vectors if threads % vectors == 0 else (i * threads + tidx) % vectors)
        if row < there:
            origin = (source + cute.assume(row * source_pitch + column, divby=8)).align(16)
            place = (target + cute.assume(row * target_pitch + column, divby=8)).align(16)
            cute.copy(atom, cute.make_tensor(origin, layout), cute.make_tensor(place, layout))


@cute.jit
def fetch_rows(
    source: cute.Pointer,
    pitch: cutlass.Constexpr,
    registers: cute.Tensor,
    rows: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    tidx,
):
    """The same into registers; the last rows again where the threads are more than the vectors."""
    vectors = columns // 8
    for i in cutlass.range_constexpr(-(-rows * vectors // threads)):
        row = cutlass.min((i * threads + tidx) // vectors, Int32(rows - 1))
        load(source, row * pitch + 8 * ((i * threads + tidx) % vectors), part(registers, 8 * i, 8), 8, 8, 2)


@cute.jit
def put_rows(
    registers: cute.Tensor,
    target: cute.Pointer,
    pitch: cutlass.Constexpr,
    rows: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    tidx,
):
    vectors = columns // 8
    for i in cutlass.range_constexpr(-(-rows * vectors // threads)):
        row = (i * threads + tidx) // vectors
        if row < rows:
            store(part(registers, 8 * i, 8), 8, 8, target, row * pitch + 8 * ((i * threads + tidx) % vectors), 2)


@cute.jit
def a_from_global(ptr: cute.Pointer, low, high, step: cutlass.Constexpr, t, target: cute.Tensor):
    """The A fragment of one step; low and high are where rows g and g + 8 begin."""
    for e in cutlass.range_constexpr(2):
        load(ptr, low + (16 * step + 8 * e + 2 * t), part(target, 4 * e, 2), 2, 2, 2)
        load(ptr, high + (16 * step + 8 * e + 2 * t), part(target, 4 * e + 2, 2), 2, 2, 2)


@cute.jit
def b_fragments(
    ptr: cute.Pointer, offset, pitch: cutlass.Constexpr, lane, tiles: cutlass.Constexpr, target: cute.Tensor, half: cutlass.Constexpr
):
    """B fragments (4, tiles) of one step: 16 rows of K, 8 * tiles columns from `offset` on."""
    row = offset + (lane % 16) * pitch
    for pair in cutlass.range_constexpr(tiles // 2):
        matrices(True, 4, ptr, row + 16 * pair + 8 * (lane // 16), part(target, 8 * pair, 8), half)
    if cutlass.const_expr(tiles % 2 == 1):
        matrices(True, 2, ptr, row + 8 * (tiles - 1), part(target, 4 * (tiles - 1), 4), half)


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
    channels, hidden, half = config.channels, config.rank_hidden, half_of(config)
    threads, ranks, row_tiles = config.threads, config.ranks, config.row_tiles
    x_pitch, h_pitch = config.channel_pitch, config.hidden_pitch
    tiles1, tiles2 = config.hidden_tiles, config.column_tiles
    lane = tidx % 32
    wid = cute.arch.make_warp_uniform(tidx // 32)
    g = lane // 4
    t = lane % 4
    rank = cute.arch.block_idx_in_cluster() if cutlass.const_expr(ranks > 1) else Int32(0)
    worker = bidx // ranks
    workers = blocks // ranks
    last = rows - 1

    smem = cutlass.memory.SmemAllocator()
    sW1 = smem.allocate_array(half, channels * h_pitch, byte_alignment=16)
    sW2 = smem.allocate_array(half, hidden * x_pitch, byte_alignment=16)
    sX = smem.allocate_array(half, config.buffers * config.rows * x_pitch, byte_alignment=16)
    if cutlass.const_expr(not config.h_global):
        sH = smem.allocate_array(half, config.buffers * config.rows * h_pitch, byte_alignment=16)
    if cutlass.const_expr(ranks > 1):
        sums = smem.allocate_array(Float32, config.buffers * config.exchanged, byte_alignment=16)
        arrived = smem.allocate_array(cutlass.Int64, 2, byte_alignment=8)

    first_row = worker * config.rows
    copy_rows(
        mX + cute.assume(Int64(first_row) * channels, divby=16),
        channels,
        sX,
        x_pitch,
        config.rows,
        channels,
        cutlass.min(rows - first_row, Int32(config.rows)),
        threads,
        tidx,
        half,
    )
    origin1 = mW1 + cute.assume(rank * hidden, divby=16)
    origin2 = mW2 + cute.assume(rank * (hidden * channels), divby=16)
    if cutlass.const_expr(config.direct):
        vectors = -(-channels * hidden // 8 // threads)
        rW1 = cute.make_rmem_tensor(cute.make_layout(8 * vectors), half)
        rW2 = cute.make_rmem_tensor(cute.make_layout(8 * vectors), half)
        cute.arch.cp_async_commit_group()
        fetch_rows(origin1, config.hidden, rW1, channels, hidden, threads, tidx)
        fetch_rows(origin2, channels, rW2, hidden, channels, threads, tidx)
    else:
        copy_rows(origin1, config.hidden, sW1, h_pitch, channels, hidden, Int32(channels), threads, tidx, half)
        cute.arch.cp_async_commit_group()
        copy_rows(origin2, channels, sW2, x_pitch, hidden, channels, Int32(hidden), threads, tidx, half)
        cute.arch.cp_async_commit_group()
    if cutlass.const_expr(ranks > 1):
        if tidx == 0:
            cute.arch.mbarrier_init(arrived, 1)
            cute.arch.mbarrier_init(arrived + 1, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive()
    hidden0 = wid * (8 * tiles1)  # the first of this warp's columns in either product
    column0 = wid * (8 * tiles2)
    rB1 = cute.make_rmem_tensor(cute.make_layout((2, tiles1)), Float32)
    rB2 = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), Float32)
    for j in cutlass.range_constexpr(tiles1):
        load(mB1, rank * hidden + hidden0 + 8 * j + 2 * t, part(rB1, 2 * j, 2), 2, 2, 4)
    for j in cutlass.range_constexpr(tiles2):
        load(mB2, column0 + 8 * j + 2 * t, part(rB2, 2 * j, 2), 2, 2, 4)
    mma = mma_of(half)
    if cutlass.const_expr(config.direct):
        put_rows(rW1, sW1, h_pitch, channels, hidden, threads, tidx)
        cute.arch.cp_async_wait_group(0)
    else:
        cute.arch.cp_async_wait_group(1)
    cute.arch.sync_threads()

    turn = Int32(0)
    end = worker + 1 if cutlass.const_expr(config.single) else cute.ceil_div(rows, config.rows)
    for tile in cutlass.range(worker, end, workers, unroll=1):
        base = tile * config.rows
        buffer = turn % config.buffers
        x0 = buffer * (config.rows * x_pitch)
        h0 = buffer * (config.rows * h_pitch)
        if cutlass.const_expr(not config.single):
            if turn > 0:
                cute.arch.cp_async_wait_group(0)
                cute.arch.sync_threads()
            following = base + workers * config.rows
            if following < rows:
                copy_rows(
                    mX + cute.assume(Int64(following) * channels, divby=16),
                    channels,
                    sX + (config.rows * x_pitch - x0),
                    x_pitch,
                    config.rows,
                    channels,
                    cutlass.min(rows - following, Int32(config.rows)),
                    threads,
                    tidx,
                    half,
                )

        # product 1: every row of the tile, this warp's hidden columns
        rH = cute.make_rmem_tensor(cute.make_layout((4, tiles1, row_tiles)), Float32)
        rA = cute.make_rmem_tensor(cute.make_layout((8, row_tiles)), half)
        rB = cute.make_rmem_tensor(cute.make_layout((4, max(tiles1, tiles2))), half)
        rH.fill(0.0)
        for s in cutlass.range_constexpr(channels // 16):
            for m in cutlass.range_constexpr(row_tiles):
                matrices(False, 4, sX, x0 + (16 * m + lane % 16) * x_pitch + 16 * s + 8 * (lane // 16), part(rA, 8 * m, 8), half)
            b_fragments(sW1, 16 * s * h_pitch + hidden0, h_pitch, lane, tiles1, rB, half)
            for m in cutlass.range_constexpr(row_tiles):
                for j in cutlass.range_constexpr(tiles1):
                    multiply(mma, part(rA, 8 * m, 8), part(rB, 4 * j, 4), part(rH, 4 * (j + tiles1 * m), 4))
        pair = cute.make_rmem_tensor(cute.make_layout(2), half)
        for m in cutlass.range_constexpr(row_tiles):
            for j in cutlass.range_constexpr(tiles1):
                for r in cutlass.range_constexpr(2):
                    for i in cutlass.range_constexpr(2):
                        pair[i] = cutlass.max(rH[2 * r + i, j, m] + rB1[i, j], Float32(0.0)).to(half)
                    column = hidden0 + 8 * j + 2 * t
                    row = 16 * m + g + 8 * r
                    if cutlass.const_expr(config.h_global):
                        if base + row < rows:
                            store(pair, 2, 2, mH, Int64(base + row) * config.hidden + (rank * hidden + column), 2)
                    else:
                        store(pair, 2, 2, sH, h0 + row * h_pitch + column, 2)
        if cutlass.const_expr(config.direct):
            if turn == 0:
                put_rows(rW2, sW2, x_pitch, hidden, channels, threads, tidx)
        else:
            if turn == 0:
                cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()

        # product 2: this warp's channels
        rY = cute.make_rmem_tensor(cute.make_layout((4, tiles2, row_tiles)), Float32)
        rY.fill(0.0)
        for s in cutlass.range_constexpr(hidden // 16):
            for m in cutlass.range_constexpr(row_tiles):
                if cutlass.const_expr(config.h_global):
                    low = Int64(cutlass.min(base + 16 * m + g, last)) * config.hidden + rank * hidden
                    high = Int64(cutlass.min(base + 16 * m + g + 8, last)) * config.hidden + rank * hidden
                    a_from_global(mH, low, high, s, t, part(rA, 8 * m, 8))
                else:
                    matrices(False, 4, sH, h0 + (16 * m + lane % 16) * h_pitch + 16 * s + 8 * (lane // 16), part(rA, 8 * m, 8), half)
            b_fragments(sW2, 16 * s * x_pitch + column0, x_pitch, lane, tiles2, rB, half)
            for m in cutlass.range_constexpr(row_tiles):
                for j in cutlass.range_constexpr(tiles2):
                    multiply(mma, part(rA, 8 * m, 8), part(rB, 4 * j, 4), part(rY, 4 * (j + tiles2 * m), 4))

        values = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), half)
        total = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), Float32)
        if cutlass.const_expr(ranks > 1):
            # half tile q (eight rows) is finished by rank q
            if tidx == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(arrived + buffer, 4 * config.exchanged)
            if turn == 0:
                cute.arch.cluster_wait()
            slot = sums + buffer * config.exchanged
            for peer in cutlass.range_constexpr(1, ranks):
                to = (rank + peer) % ranks
                sent = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), Float32)
                for q in cutlass.range_constexpr(ranks):
                    if to == q:
                        for j in cutlass.range_constexpr(tiles2):
                            for i in cutlass.range_constexpr(2):
                                sent[i, j] = rY[2 * (q % 2) + i, j, q // 2]
                words = cute.recast_tensor(part(sent, 0, 2 * tiles2), Int32)
                place = slot + ((ranks - 1 - peer) * threads + tidx) * (2 * tiles2)
                if cutlass.const_expr(tiles2 % 2 == 0):
                    for i in cutlass.range_constexpr(tiles2 // 2):
                        quad = (words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3])
                        cute.arch.store_async_dsmem((place + 4 * i).align(16), quad, arrived + buffer, to)
                else:
                    for i in cutlass.range_constexpr(tiles2):
                        cute.arch.store_async_dsmem((place + 2 * i).align(8), (words[2 * i], words[2 * i + 1]), arrived + buffer, to)
            own = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), Float32)
            for q in cutlass.range_constexpr(ranks):
                if rank == q:
                    for j in cutlass.range_constexpr(tiles2):
                        for i in cutlass.range_constexpr(2):
                            own[i, j] = rY[2 * (q % 2) + i, j, q // 2]
            for j in cutlass.range_constexpr(tiles2):
                load(sX, x0 + (8 * rank + g) * x_pitch + column0 + 8 * j + 2 * t, part(values, 2 * j, 2), 2, 2, 2)
            cute.arch.mbarrier_wait(arrived + buffer, (turn // config.buffers) % 2)
            got = cute.make_rmem_tensor(cute.make_layout((2, tiles2, ranks)), Float32)
            for peer in cutlass.range_constexpr(1, ranks):
                width = gcd(2 * tiles2, 4)
                load(slot, ((peer - 1) * threads + tidx) * (2 * tiles2), part(got, 2 * tiles2 * peer, 2 * tiles2), 2 * tiles2, width, 4)
            # what rank p sent lies at place (p - rank) mod ranks; every rank adds in the order of ranks
            total.fill(0.0)
            for p in cutlass.range_constexpr(ranks):
                for peer in cutlass.range_constexpr(ranks):
                    if (rank + peer) % ranks == p:
                        for j in cutlass.range_constexpr(tiles2):
                            for i in cutlass.range_constexpr(2):
                                total[i, j] += own[i, j] if cutlass.const_expr(peer == 0) else got[i, j, peer]
            row = base + 8 * rank + g
            if row < rows:
                for j in cutlass.range_constexpr(tiles2):
                    for i in cutlass.range_constexpr(2):
                        total[i, j] = cutlass.max(total[i, j] + rB2[i, j] + values[i, j].to(Float32), Float32(0.0))
                    store(part(total, 2 * j, 2), 2, 2, mY, Int64(row) * channels + (column0 + 8 * j + 2 * t), 4)
        else:
            for m in cutlass.range_constexpr(row_tiles):
                for r in cutlass.range_constexpr(2):
                    row = base + 16 * m + g + 8 * r
                    for j in cutlass.range_constexpr(tiles2):
                        load(sX, x0 + (16 * m + g + 8 * r) * x_pitch + column0 + 8 * j + 2 * t, part(values, 2 * j, 2), 2, 2, 2)
                    if row < rows:
                        for j in cutlass.range_constexpr(tiles2):
                            for i in cutlass.range_constexpr(2):
                                y = rY[2 * r + i, j, m] + rB2[i, j] + values[i, j].to(Float32)
                                total[i, j] = cutlass.max(y, Float32(0.0))
                            store(part(total, 2 * j, 2), 2, 2, mY, Int64(row) * channels + (column0 + 8 * j + 2 * t), 4)
        if cutlass.const_expr(not config.single):
            cute.arch.cp_async_commit_group()
        turn += 1


def trace(config: Aligned):
    return launcher(mlp), pointers(config)
