"""Matrices in shared memory as wgmma takes them: panels of 64 columns, 128 bytes a row, the eight chunks of a row swizzled by the row.

Chunk c of row r of a panel lies at chunk c ^ (r % 8) of its 128 bytes (PTX ISA, asynchronous warpgroup matrices, 128-byte swizzling). A
copy therefore moves whole lines of global memory into whole lines of shared memory, and neither side meets a bank twice.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Uint64
from cutlass.cute.nvgpu import cpasync

from mkframe_plugins.residual_mlp.kernels.configs import PANEL

CHUNK = 8  # halves in 16 bytes
ATOM_BYTES = 1024  # eight rows


@cute.jit
def place(rows: cutlass.Constexpr, row, chunk):
    """Where a chunk lies, in halves; `rows` is the height of the panels."""
    return chunk // 8 * (rows * PANEL) + row * PANEL + ((chunk % 8) ^ (row % 8)) * CHUNK


@cute.jit
def copy_rows(
    source: cute.Pointer,
    pitch: cutlass.Constexpr,
    target: cute.Pointer,
    rows: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    there,
    threads: cutlass.Constexpr,
    tidx,
    half: cutlass.Constexpr,
):
    """rows x columns halves by cp.async, where each row begins at a multiple of 16 bytes; rows from `there` on are left out.

    A warp takes 512 bytes that lie side by side; panel by panel, four rows a warp, was 4 % slower at 96 x 192.
    """
    chunks = columns // CHUNK
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), half, num_bits_per_copy=128)
    layout = cute.make_layout(CHUNK)
    for i in cutlass.range_constexpr(-(-rows * chunks // threads)):
        if cutlass.const_expr(threads % (8 * chunks) == 0):
            # the swizzle is that of the first row, and the compiler folds the rest into an address
            row0 = tidx // chunks
            row = row0 + i * (threads // chunks)
            at = place(rows, row0, tidx % chunks) + i * (threads // chunks * PANEL)
            column = CHUNK * (tidx % chunks)
        else:
            row = (i * threads + tidx) // chunks
            at = place(rows, row, (i * threads + tidx) % chunks)
            column = CHUNK * ((i * threads + tidx) % chunks)
        origin = (source + cute.assume(row * pitch + column, divby=CHUNK)).align(16)
        goal = (target + cute.assume(at, divby=CHUNK)).align(16)
        if cutlass.const_expr(there is None and rows * chunks % threads == 0):
            cute.copy(atom, cute.make_tensor(origin, layout), cute.make_tensor(goal, layout))
        else:
            limit = Int32(rows) if cutlass.const_expr(there is None) else cutlass.min(there, Int32(rows))
            if row < limit:
                cute.copy(atom, cute.make_tensor(origin, layout), cute.make_tensor(goal, layout))


@cute.jit
def descriptor(address: cute.Pointer, lead: cutlass.Constexpr, stride: cutlass.Constexpr, swizzled: cutlass.Constexpr):
    """A matrix descriptor: start address, leading and stride byte offsets in units of 16 bytes, 128-byte swizzling or none."""
    low = ((Int32(address.toint()) & 0x3FFFF) >> 4) | (lead >> 4 << 16)
    return (Uint64(low) & 0xFFFFFFFF) | (Uint64((stride >> 4) | ((1 << 30) if swizzled else 0)) << 32)


def product(
    weights: Uint64,
    rows: Uint64,
    tiles: int,
    width: int,
    tile_step: int,
    weight_steps: list[int],
    row_steps: list[int],
    rows_by_k: bool,
    bf16: bool,
) -> list[Float32]:
    """`tiles` x (64 weight columns x `width` rows), started from zero: wgmma with weights as A and rows as B, waited for.

    weight_steps, row_steps: where each step of 16 along K begins, in bytes from the descriptor; tile_step the same from tile to tile.
    rows_by_k: B has its rows side by side, one line for each k. Lane 4 g + t of warp w gets 16 w + g (+ 8 for e = 1) and rows
    8 j + 2 t + i at 4 j + 2 e + i of each tile's width / 2 sums.
    """
    each, kind = width // 2, "bf16" if bf16 else "f16"
    lines = ["{", ".reg .pred more;", ".reg .b64 a, b;", "wgmma.fence.sync.aligned;"]
    for step, (a, b) in enumerate(zip(weight_steps, row_steps, strict=True)):
        if step < 2:
            lines.append(f"setp.ne.b32 more, {step}, 0;")
        for tile in range(tiles):
            sums = ", ".join(f"{{$w{tile * each + i}}}" for i in range(each))
            lines.append(f"add.s64 a, {{$r0}}, {(a + tile * tile_step) >> 4};")
            lines.append(f"add.s64 b, {{$r1}}, {b >> 4};")
            shape = f"m64n{width}k16.f32.{kind}.{kind}"
            lines.append(f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, a, b, more, 1, 1, 1, {int(rows_by_k)};")
    lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", "}"]
    found = cute.arch.inline_ptx("\n".join(lines), write_only_types=[Float32] * (tiles * each), read_only_args=[weights, rows])
    return list(found)
