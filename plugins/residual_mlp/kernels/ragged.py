"""Any widths, odd and prime ones: the weights lie in shared memory as they lie in global memory, rows without any padding.

A row then begins at any 2-byte place: fragments are built from 2-byte loads of shared memory, global memory is read in large pieces. x and
h are padded. What a fragment reads beyond a matrix is zero, or belongs to a column that nobody stores.
"""

import cutlass
import cutlass.cute as cute
import cutlass.memory
from cutlass import Float32, Int32, Int64
from cutlass.cute.nvgpu import cpasync

from mkframe_plugins.residual_mlp.kernels.configs import Ragged
from mkframe_plugins.residual_mlp.kernels.dealing import dealt
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
def copy_flat(
    source: cute.Pointer, target: cute.Pointer, count: cutlass.Constexpr, threads: cutlass.Constexpr, tidx, half: cutlass.Constexpr
):
    """The whole 16 bytes of `count` neighbours by cp.async."""
    vectors = count // 8
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), half, num_bits_per_copy=128)
    layout = cute.make_layout(8)
    for i in cutlass.range(cute.ceil_div(vectors, threads), unroll=4):
        at = i * threads + tidx
        if at < vectors:
            origin = (source + cute.assume(8 * at, divby=8)).align(16)
            place = (target + cute.assume(8 * at, divby=8)).align(16)
            cute.copy(atom, cute.make_tensor(origin, layout), cute.make_tensor(place, layout))


@cute.jit
def copy_bulk(source: cute.Pointer, target: cute.Pointer, count: cutlass.Constexpr, arrived: cute.Pointer, half: cutlass.Constexpr):
    """The same by one bulk copy; called by one thread."""
    whole = count // 8 * 8
    if cutlass.const_expr(whole > 0):
        cute.arch.mbarrier_arrive_and_expect_tx(arrived, 2 * whole)
        layout = cute.make_layout(whole)
        atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), half)
        cute.copy(atom, cute.make_tensor(source, layout), cute.make_tensor(target, layout), mbar_ptr=arrived)
    else:
        cute.arch.mbarrier_arrive(arrived)


@cute.jit
def copy_rest(
    source: cute.Pointer,
    target: cute.Pointer,
    count: cutlass.Constexpr,
    room: cutlass.Constexpr,
    threads: cutlass.Constexpr,
    tidx,
    half: cutlass.Constexpr,
):
    """What is no whole 16 bytes, and zeros up to `room`."""
    whole = count // 8 * 8
    for i in cutlass.range_constexpr(-(-(room - whole) // threads)):
        at = whole + i * threads + tidx
        value = half(0.0)
        if at < count:
            value = element(source, at)
        if at < room:
            put_element(target, at, value)


@cute.jit
def keep_fragments(
    b: cute.Pointer, column, pitch: cutlass.Constexpr, t, target: cute.Tensor, steps: cutlass.Constexpr, tiles: cutlass.Constexpr
):
    """B fragments (4, tiles, steps) of a warp into registers. What lies beyond a row is the next one, in a column that nobody stores."""
    for s in cutlass.range_constexpr(steps):
        for j in cutlass.range_constexpr(tiles):
            for q in cutlass.range_constexpr(4):
                target[q, j, s] = element(b, (16 * s + 4 * t + q) * pitch + column + 8 * j)


@cute.jit
def product_with_kept(
    mma: cute.MmaAtom,
    a: cute.Pointer,
    low,
    high,
    kept: cute.Tensor,
    t,
    accumulator: cute.Tensor,
    steps: cutlass.Constexpr,
    tiles: cutlass.Constexpr,
    few: cutlass.Constexpr,
    half: cutlass.Constexpr,
):
    """`product` with B fragments that are there already."""
    rA = cute.make_rmem_tensor(cute.make_layout(8), half)
    rV = cute.make_rmem_tensor(cute.make_layout(4), half)
    rA.fill(0.0)
    for s in cutlass.range_constexpr(steps):
        for r in cutlass.range_constexpr(1 if few else 2):
            load(a, (low if r == 0 else high) + 16 * s + 4 * t, rV, 4, 4, 2)
            for q in cutlass.range_constexpr(4):
                rA[4 * (q // 2) + 2 * r + q % 2] = rV[q]
        for j in cutlass.range_constexpr(tiles):
            multiply(mma, rA, part(kept, 4 * (j + tiles * s), 4), part(accumulator, 4 * j, 4))


@cute.jit
def step(
    mma: cute.MmaAtom,
    a: cute.Pointer,
    low,
    high,
    b: cute.Pointer,
    corner,
    pitch: cutlass.Constexpr,
    rA: cute.Tensor,
    accumulator: cute.Tensor,
    tiles: cutlass.Constexpr,
    few: cutlass.Constexpr,
    half: cutlass.Constexpr,
):
    """One step of K: four neighbours of either row of a, and below `corner` the four rows of b that belong to them."""
    rV = cute.make_rmem_tensor(cute.make_layout(4), half)
    rB = cute.make_rmem_tensor(cute.make_layout(4), half)
    for r in cutlass.range_constexpr(1 if few else 2):
        load(a, low if r == 0 else high, rV, 4, 4, 2)
        for q in cutlass.range_constexpr(4):
            rA[4 * (q // 2) + 2 * r + q % 2] = rV[q]
    for j in cutlass.range_constexpr(tiles):
        for q in cutlass.range_constexpr(4):
            rB[q] = element(b, corner + q * pitch + 8 * j)
        multiply(mma, rA, rB, part(accumulator, 4 * j, 4))


@cute.jit
def product(
    mma: cute.MmaAtom,
    a: cute.Pointer,
    low,
    high,
    b: cute.Pointer,
    column,
    pitch: cutlass.Constexpr,
    t,
    accumulator: cute.Tensor,
    depth: cutlass.Constexpr,
    tiles: cutlass.Constexpr,
    few: cutlass.Constexpr,
    half: cutlass.Constexpr,
):
    """accumulator (4, tiles) += a b. a's rows g and g + 8 begin at low and high; b (depth, pitch) lies without padding, and `column` is
    the column that this lane has of the first tile. Rows of b are dealt to the lanes as `dealt` says."""
    rA = cute.make_rmem_tensor(cute.make_layout(8), half)
    rA.fill(0.0)
    size = dealt(depth, pitch)
    rest = depth % size
    for n in cutlass.range(depth // size, unroll_full=depth <= 256, unroll=1):
        for s in cutlass.range_constexpr(size // 16):
            first = n * size + size // 4 * t + 4 * s
            step(mma, a, low + first, high + first, b, first * pitch + column, pitch, rA, accumulator, tiles, few, half)
    for s in cutlass.range_constexpr(rest // 16):
        first = depth - rest + rest // 4 * t + 4 * s
        step(mma, a, low + first, high + first, b, first * pitch + column, pitch, rA, accumulator, tiles, few, half)


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
    channels, hidden, half, threads = config.channels, config.hidden, half_of(config), config.threads
    x_pitch, h_pitch, padded = config.x_pitch, config.hidden_pitch, config.padded_channels
    tiles1, tiles2, halves = config.hidden_tiles, config.column_tiles, 1 if config.few else 2
    lane = tidx % 32
    wid = cute.arch.make_warp_uniform(tidx // 32)
    g = lane // 4
    t = lane % 4
    last = rows - 1

    smem = cutlass.memory.SmemAllocator()
    kept, count = config.kept_steps, channels * hidden
    beyond = 16 * kept * channels  # elements of W2 that do not stay in shared memory
    sW1 = smem.allocate_array(half, config.w1_room, byte_alignment=16)
    sW2 = smem.allocate_array(half, config.w2_room, byte_alignment=16)
    sX = smem.allocate_array(half, config.buffers * 16 * x_pitch, byte_alignment=16)
    if cutlass.const_expr(not config.h_global):
        sH = smem.allocate_array(half, config.buffers * 16 * h_pitch, byte_alignment=16)
    hidden0 = wid * (8 * tiles1)  # the first of this warp's columns in either product
    column0 = wid * (8 * tiles2)
    rK = cute.make_rmem_tensor(cute.make_layout((4, tiles2, max(kept, 1))), half)
    if cutlass.const_expr(config.bulk):
        arrived = smem.allocate_array(cutlass.Int64, 3, byte_alignment=8)
        if tidx == 0:
            for i in cutlass.range_constexpr(3):
                cute.arch.mbarrier_init(arrived + i, 1)
            cute.arch.mbarrier_init_fence()
            if cutlass.const_expr(kept > 0):
                copy_bulk(mW2, sW1, beyond, arrived + 2, half)
            else:
                copy_bulk(mW1, sW1, count, arrived, half)
            copy_bulk(mW2 + beyond, sW2, count - beyond, arrived + 1, half)
        if cutlass.const_expr(kept > 0):
            cute.arch.sync_threads()
            cute.arch.mbarrier_wait(arrived + 2, 0)
            keep_fragments(sW1, column0 + g, channels, t, rK, kept, tiles2)
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            if tidx == 0:
                copy_bulk(mW1, sW1, count, arrived, half)
    else:
        if cutlass.const_expr(kept > 0):
            copy_flat(mW2, sW1, beyond, threads, tidx, half)
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            keep_fragments(sW1, column0 + g, channels, t, rK, kept, tiles2)
            cute.arch.sync_threads()
        copy_flat(mW1, sW1, count, threads, tidx, half)
        cute.arch.cp_async_commit_group()
        copy_flat(mW2 + beyond, sW2, count - beyond, threads, tidx, half)
        cute.arch.cp_async_commit_group()

    # x: a row is read by 16 or 32 neighbouring lanes, and written with zeros up to the padded width
    lanes = 16 if padded == 16 else 32
    row_step = threads // lanes
    loads = -(-(8 if config.few else 16) // row_step)
    columns = -(-padded // lanes)
    x_row = tidx // lanes
    x_column = tidx % lanes
    rX = cute.make_rmem_tensor(cute.make_layout((columns, loads)), half)
    for i in cutlass.range_constexpr(loads):
        for c in cutlass.range_constexpr(columns):
            rX[c, i] = half(0.0)
            row = bidx * 16 + x_row + i * row_step
            if x_column + lanes * c < channels and row < rows:
                rX[c, i] = element(mX, Int64(row) * channels + (x_column + lanes * c))
    rB1 = cute.make_rmem_tensor(cute.make_layout((2, tiles1)), Float32)
    rB2 = cute.make_rmem_tensor(cute.make_layout((2, tiles2)), Float32)
    for j in cutlass.range_constexpr(tiles1):
        for i in cutlass.range_constexpr(2):
            rB1[i, j] = element(mB1, cutlass.min(hidden0 + 8 * j + 2 * t + i, Int32(hidden - 1)))
    for j in cutlass.range_constexpr(tiles2):
        for i in cutlass.range_constexpr(2):
            rB2[i, j] = element(mB2, cutlass.min(column0 + 8 * j + 2 * t + i, Int32(channels - 1)))
    copy_rest(mW1, sW1, count, config.w1_room, threads, tidx, half)
    copy_rest(mW2 + beyond, sW2, count - beyond, config.w2_room, threads, tidx, half)
    for i in cutlass.range_constexpr(loads):
        for c in cutlass.range_constexpr(columns):
            if x_column + lanes * c < padded and x_row + i * row_step < 16:
                put_element(sX, (x_row + i * row_step) * x_pitch + x_column + lanes * c, rX[c, i])
    mma = mma_of(half)
    if cutlass.const_expr(config.bulk):
        cute.arch.sync_threads()
        cute.arch.mbarrier_wait(arrived, 0)
    else:
        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()

    turn = Int32(0)
    end = bidx + 1 if cutlass.const_expr(config.single) else cute.ceil_div(rows, 16)
    for tile in cutlass.range(bidx, end, workers, unroll=1):
        base = tile * 16
        buffer = turn % config.buffers
        x0 = buffer * (16 * x_pitch)
        h0 = buffer * (16 * h_pitch)
        following = base + workers * 16
        if cutlass.const_expr(not config.single):
            for i in cutlass.range_constexpr(loads):
                for c in cutlass.range_constexpr(columns):
                    row = following + x_row + i * row_step
                    if x_column + lanes * c < channels and row < rows:
                        rX[c, i] = element(mX, Int64(row) * channels + (x_column + lanes * c))

        # product 1: every row of the tile, this warp's hidden columns
        rH = cute.make_rmem_tensor(cute.make_layout((4, tiles1)), Float32)
        rH.fill(0.0)
        low = x0 + g * x_pitch
        product(mma, sX, low, low + 8 * x_pitch, sW1, hidden0 + g, hidden, t, rH, padded, tiles1, config.few, half)
        pair = cute.make_rmem_tensor(cute.make_layout(2), half)
        for j in cutlass.range_constexpr(tiles1):
            for r in cutlass.range_constexpr(halves):
                column = hidden0 + 8 * j + 2 * t
                for i in cutlass.range_constexpr(2):
                    h = cutlass.max(rH[2 * r + i, j] + rB1[i, j], Float32(0.0))
                    if column + i >= hidden:
                        h = Float32(0.0)
                    pair[i] = h.to(half)
                if cutlass.const_expr(config.h_global):
                    if base + g + 8 * r < rows:
                        store(pair, 2, 2, mH, Int64(base + g + 8 * r) * config.h_pitch + column, 2)
                else:
                    store(pair, 2, 2, sH, h0 + (g + 8 * r) * h_pitch + column, 2)
        values = cute.make_rmem_tensor(cute.make_layout((2, tiles2, 2)), half)
        for r in cutlass.range_constexpr(halves):
            for j in cutlass.range_constexpr(tiles2):
                place = x0 + (g + 8 * r) * x_pitch + cutlass.min(column0 + 8 * j + 2 * t, Int32(padded - 2))
                load(sX, place, part(values, 2 * (j + tiles2 * r), 2), 2, 2, 2)
        if cutlass.const_expr(not config.single):
            for i in cutlass.range_constexpr(loads):
                for c in cutlass.range_constexpr(columns):
                    if x_column + lanes * c < channels and x_row + i * row_step < 16:
                        put_element(sX, (16 * x_pitch - x0) + (x_row + i * row_step) * x_pitch + x_column + lanes * c, rX[c, i])
            if turn == 0:  # zeros that the first tile has put into its own buffer alone
                for i in cutlass.range_constexpr(loads):
                    for c in cutlass.range_constexpr(columns):
                        where = x_column + lanes * c
                        if where >= channels and where < padded and x_row + i * row_step < 16:
                            put_element(sX, 16 * x_pitch + (x_row + i * row_step) * x_pitch + where, half(0.0))
        if cutlass.const_expr(not config.bulk):
            if turn == 0:
                cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        if cutlass.const_expr(config.bulk):
            cute.arch.mbarrier_wait(arrived + 1, 0)

        # product 2: this warp's channels
        rY = cute.make_rmem_tensor(cute.make_layout((4, tiles2)), Float32)
        rY.fill(0.0)
        rest, depth = 16 * kept, config.padded_hidden - 16 * kept
        if cutlass.const_expr(config.h_global):
            low_h = cutlass.min(base + g, last)
            high_h = (cutlass.min(base + g + 8, last) - low_h) * config.h_pitch
            rows_h = mH + Int64(low_h) * config.h_pitch
            product_with_kept(mma, rows_h, Int32(0), high_h, rK, t, rY, kept, tiles2, config.few, half)
            product(mma, rows_h + rest, Int32(0), high_h, sW2, column0 + g, channels, t, rY, depth, tiles2, config.few, half)
        else:
            low_s = h0 + g * h_pitch
            high_s = low_s + 8 * h_pitch
            product_with_kept(mma, sH, low_s, high_s, rK, t, rY, kept, tiles2, config.few, half)
            product(mma, sH + rest, low_s, high_s, sW2, column0 + g, channels, t, rY, depth, tiles2, config.few, half)
        for r in cutlass.range_constexpr(halves):
            out = base + g + 8 * r
            for j in cutlass.range_constexpr(tiles2):
                for i in cutlass.range_constexpr(2):
                    channel = column0 + 8 * j + 2 * t + i
                    if out < rows and channel < channels:
                        y = rY[2 * r + i, j] + rB2[i, j] + values[i, j, r].to(Float32)
                        put_element(mY, Int64(out) * channels + channel, cutlass.max(y, Float32(0.0)))
        turn += 1


def trace(config: Ragged):
    return launcher(mlp), pointers(config)
