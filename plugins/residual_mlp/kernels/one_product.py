"""One product with its bias, relu and, for the second one, x: what each of two launches computes.

A block takes 16 rows and a part of the columns, so that all multiprocessors share the weights; where a warp would have no column of its
own, warps share the steps of K, and their sums are added in the order of warps.
"""

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cuda.bindings.driver import CUstream
from cutlass import Float32, Int32, Int64
from cutlass.cute.runtime import make_fake_stream, make_ptr
from cutlass.cute.typing import AddressSpace

from mkframe_plugins.residual_mlp.kernels.aligned import b_fragments, copy_rows
from mkframe_plugins.residual_mlp.kernels.fragments import (
    element,
    half_of,
    load,
    matrices,
    mma_of,
    multiply,
    part,
    put_element,
    store,
)
from mkframe_plugins.residual_mlp.kernels.product_configs import OneProduct
from mkframe_plugins.residual_mlp.kernels.ragged import copy_bulk, copy_flat, copy_rest, product

CHAINS = 2  # sums that take turns along K, so that one mma need not wait for the last one


@cute.jit
def copy_elements(
    source: cute.Pointer,
    pitch: cutlass.Constexpr,
    target: cute.Pointer,
    target_pitch: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    padded: cutlass.Constexpr,
    there,
    threads: cutlass.Constexpr,
    tidx,
    half: cutlass.Constexpr,
):
    """16 rows that begin anywhere, by elements, with zeros up to `padded` columns and for rows that are not there."""
    lanes = 16 if padded == 16 else 32
    loads, parts = -(-16 * lanes // threads), -(-padded // lanes)
    values = cute.make_rmem_tensor(cute.make_layout((parts, loads)), half)
    values.fill(0.0)
    for i in cutlass.range_constexpr(loads):
        for c in cutlass.range_constexpr(parts):
            row, column = tidx // lanes + i * (threads // lanes), tidx % lanes + lanes * c
            if column < columns and row < there:
                values[c, i] = element(source, row * pitch + column)
    for i in cutlass.range_constexpr(loads):
        for c in cutlass.range_constexpr(parts):
            row, column = tidx // lanes + i * (threads // lanes), tidx % lanes + lanes * c
            if column < padded and row < 16:
                put_element(target, row * target_pitch + column, values[c, i])


@cute.kernel
def kernel(
    mA: cute.Pointer,
    mW: cute.Pointer,
    mB: cute.Pointer,
    mX: cute.Pointer,
    mOut: cute.Pointer,
    rows: Int32,
    config: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    half, threads, depth, columns = half_of(config), config.threads, config.depth, config.columns
    pitch_a, pitch_w, tiles, padded = config.a_room_pitch, config.w_room_pitch, config.column_tiles, config.padded_depth
    lane = tidx % 32
    wid = cute.arch.make_warp_uniform(tidx // 32)
    g = lane // 4
    t = lane % 4
    base = bidx // config.parts * 16
    first = bidx % config.parts * config.part_columns  # of this block's columns
    own = wid % config.column_warps * (8 * tiles)  # where this warp's begin among them
    share = wid // config.column_warps  # of the steps of K
    there = cutlass.min(rows - base, Int32(16))

    smem = cutlass.memory.SmemAllocator()
    sW = smem.allocate_array(half, config.w_room, byte_alignment=16)
    sA = smem.allocate_array(half, 16 * pitch_a, byte_alignment=16)
    sums = smem.allocate_array(Float32, max(config.shared_sums, 1), byte_alignment=16)
    source = mA + cute.assume(Int64(base) * config.a_pitch, divby=8)  # 16 rows are a multiple of 16 bytes
    if cutlass.const_expr(config.aligned):
        copy_rows(mW + cute.assume(first, divby=8), columns, sW, pitch_w, depth, config.part_columns, Int32(depth), threads, tidx, half)
    elif cutlass.const_expr(config.bulk):
        arrived = smem.allocate_array(cutlass.Int64, 1, byte_alignment=8)
        if tidx == 0:
            cute.arch.mbarrier_init(arrived, 1)
            cute.arch.mbarrier_init_fence()
            copy_bulk(mW, sW, depth * columns, arrived, half)
    else:
        copy_flat(mW, sW, depth * columns, threads, tidx, half)
    if cutlass.const_expr(config.a_in_vectors):
        copy_rows(source, config.a_pitch, sA, pitch_a, 16, padded, there, threads, tidx, half)
    else:
        copy_elements(source, config.a_pitch, sA, pitch_a, depth, padded, there, threads, tidx, half)
    cute.arch.cp_async_commit_group()
    if cutlass.const_expr(not config.aligned):
        copy_rest(mW, sW, depth * columns, config.w_room, threads, tidx, half)

    # what the end needs leaves with the rest
    last = Int32(columns - 1)
    bias = cute.make_rmem_tensor(cute.make_layout((2, tiles)), Float32)
    residual = cute.make_rmem_tensor(cute.make_layout((2, tiles, 2)), half)
    for j in cutlass.range_constexpr(tiles):
        for i in cutlass.range_constexpr(2):
            from_column = cutlass.min(first + own + 8 * j + 2 * t + i, last)
            bias[i, j] = element(mB, from_column)
            if cutlass.const_expr(config.residual):
                for r in cutlass.range_constexpr(2):
                    from_row = cutlass.min(base + g + 8 * r, rows - 1)
                    residual[i, j, r] = element(mX, Int64(from_row) * columns + from_column)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    if cutlass.const_expr(not config.aligned and config.bulk):
        cute.arch.mbarrier_wait(arrived, 0)

    mma = mma_of(half)
    rS = cute.make_rmem_tensor(cute.make_layout((4, tiles, CHAINS)), Float32)
    rS.fill(0.0)
    if cutlass.const_expr(config.aligned):
        rA = cute.make_rmem_tensor(cute.make_layout(8), half)
        rB = cute.make_rmem_tensor(cute.make_layout((4, tiles)), half)
        for s in cutlass.range_constexpr(config.steps):
            k = (share * config.steps + s) * 16
            matrices(False, 4, sA, lane % 16 * pitch_a + k + 8 * (lane // 16), rA, half)
            b_fragments(sW, k * pitch_w + own, pitch_w, lane, tiles, rB, half)
            for j in cutlass.range_constexpr(tiles):
                multiply(mma, rA, part(rB, 4 * j, 4), part(rS, 4 * (j + tiles * (s % CHAINS)), 4))
        for j in cutlass.range_constexpr(tiles):
            for i in cutlass.range_constexpr(4):
                rS[i, j, 0] += rS[i, j, 1]
    else:
        low = g * pitch_a
        product(mma, sA, low, low + 8 * pitch_a, sW, first + own + g, columns, t, rS, padded, tiles, False, half)
    if cutlass.const_expr(config.shares > 1):
        if share > 0:
            at = ((share - 1) * config.column_warps + wid % config.column_warps) * 32 + lane
            store(part(rS, 0, 4 * tiles), 4 * tiles, 4, sums, at * (4 * tiles), 4)
        cute.arch.sync_threads()
        if share == 0:
            more = cute.make_rmem_tensor(cute.make_layout((4, tiles)), Float32)
            for p in cutlass.range_constexpr(config.shares - 1):
                load(sums, ((p * config.column_warps + wid) * 32 + lane) * (4 * tiles), more, 4 * tiles, 4, 4)
                for j in cutlass.range_constexpr(tiles):
                    for i in cutlass.range_constexpr(4):
                        rS[i, j, 0] += more[i, j]
    if share == 0:
        pair = cute.make_rmem_tensor(cute.make_layout(2), half)
        both = cute.make_rmem_tensor(cute.make_layout(2), Float32)
        for r in cutlass.range_constexpr(2):
            row = base + g + 8 * r
            for j in cutlass.range_constexpr(tiles):
                column = first + own + 8 * j + 2 * t
                for i in cutlass.range_constexpr(2):
                    value = rS[2 * r + i, j, 0] + bias[i, j]
                    if cutlass.const_expr(config.residual):
                        value += residual[i, j, r].to(Float32)
                    both[i] = cutlass.max(value, Float32(0.0))
                    if cutlass.const_expr(not config.residual):
                        # columns behind the last one are zero: the second product reads rows of h in whole steps
                        pair[i] = (both[i] if column + i < columns else Float32(0.0)).to(half)
                if row < rows:
                    if cutlass.const_expr(not config.residual):
                        if column < config.out_pitch:
                            store(pair, 2, 2, mOut, Int64(row) * config.out_pitch + column, 2)
                    elif cutlass.const_expr(columns % 2 == 0):
                        if column < columns:
                            store(both, 2, 2, mOut, Int64(row) * columns + column, 4)
                    else:
                        for i in cutlass.range_constexpr(2):
                            if column + i < columns:
                                put_element(mOut, Int64(row) * columns + column + i, both[i])


@cute.jit
def launch(
    mA: cute.Pointer,
    mW: cute.Pointer,
    mB: cute.Pointer,
    mX: cute.Pointer,
    mOut: cute.Pointer,
    rows: Int32,
    blocks: Int32,
    stream: CUstream,
    config: cutlass.Constexpr,
):
    kernel(mA, mW, mB, mX, mOut, rows, config).launch(
        grid=(blocks, 1, 1), block=(config.threads, 1, 1), smem=config.shared_bytes, stream=stream
    )


def trace(config: OneProduct):
    half = half_of(config)

    def placeholder(kind):
        return make_ptr(kind, 16, AddressSpace.gmem, assumed_align=16)

    out = placeholder(Float32 if config.residual else half)
    return launch, (
        placeholder(half),
        placeholder(half),
        placeholder(Float32),
        placeholder(half),
        out,
        Int32(1),
        Int32(1),
        make_fake_stream(),
        config,
    )
