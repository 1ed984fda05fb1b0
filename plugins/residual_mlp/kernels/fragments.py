"""Device functions that the kernels share. Pointers stand for the first element; offsets and sizes are in elements.

mma.sync m16n8k16 gives lane 4 g + t these places: of A rows g and g + 8 and columns 2t, 2t + 1, 2t + 8, 2t + 9; of B the same rows and
column g; of C rows g and g + 8 and columns 2t, 2t + 1 (PTX ISA, matrix fragments for mma.m16n8k16 with .f16).
"""

from typing import Any

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import BFloat16, Float16, Float32, Int32
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_stream, make_ptr
from cutlass.cute.typing import AddressSpace


def half_of(config: Any) -> Any:
    return BFloat16 if config.bf16 else Float16


@cute.jit
def load(
    ptr: cute.Pointer, offset, target: cute.Tensor, count: cutlass.Constexpr, width: cutlass.Constexpr, element_bytes: cutlass.Constexpr
):
    """`count` neighbours into registers, `width` of them a load. ptr + offset must be aligned to one load."""
    for i in cutlass.range_constexpr(count // width):
        source = (ptr + cute.assume(offset + i * width, divby=width)).align(width * element_bytes)
        place = cute.make_tensor(target.iterator + i * width, cute.make_layout(width))
        cute.autovec_copy(cute.make_tensor(source, cute.make_layout(width)), place)


@cute.jit
def store(
    source: cute.Tensor, count: cutlass.Constexpr, width: cutlass.Constexpr, ptr: cute.Pointer, offset, element_bytes: cutlass.Constexpr
):
    """The other way round."""
    for i in cutlass.range_constexpr(count // width):
        target = (ptr + cute.assume(offset + i * width, divby=width)).align(width * element_bytes)
        part = cute.make_tensor(source.iterator + i * width, cute.make_layout(width))
        cute.autovec_copy(part, cute.make_tensor(target, cute.make_layout(width)))


@cute.jit
def element(ptr: cute.Pointer, offset):
    return cute.make_tensor(ptr + offset, cute.make_layout(1))[0]


@cute.jit
def put_element(ptr: cute.Pointer, offset, value):
    cute.make_tensor(ptr + offset, cute.make_layout(1))[0] = value


@cute.jit
def matrices(
    transposed: cutlass.Constexpr, number: cutlass.Constexpr, ptr: cute.Pointer, offset, target: cute.Tensor, half: cutlass.Constexpr
):
    """ldmatrix: `number` 8 x 8 matrices into 2 * number halves of every lane; each lane names one row of eight halves."""
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transposed, number), half)
    source = (ptr + cute.assume(offset, divby=8)).align(16)
    layout = cute.make_layout((2 * number, 1))
    cute.copy(atom, cute.make_tensor(source, layout), cute.make_tensor(target.iterator, layout))


@cute.jit
def multiply(mma: cute.MmaAtom, a: cute.Tensor, b: cute.Tensor, accumulator: cute.Tensor):
    """accumulator (4 floats) += a (8 halves) b (4 halves)."""
    c = cute.make_tensor(accumulator.iterator, cute.make_layout((4, 1, 1)))
    cute.gemm(mma, c, cute.make_tensor(a.iterator, cute.make_layout((8, 1))), cute.make_tensor(b.iterator, cute.make_layout((4, 1))), c)


@cute.jit
def part(tensor: cute.Tensor, offset: cutlass.Constexpr, size: cutlass.Constexpr):
    """A view of registers."""
    return cute.make_tensor(tensor.iterator + offset, cute.make_layout(size))


def mma_of(half: Any) -> Any:
    return cute.make_mma_atom(warp.MmaF16BF16Op(half, Float32, (16, 8, 16)))


def launcher(mlp: Any) -> Any:
    """The host function of a kernel over one grid, for `trace`: it takes what `pointers` places."""

    @cute.jit
    def launch(
        mX: cute.Pointer,
        mW1: cute.Pointer,
        mB1: cute.Pointer,
        mW2: cute.Pointer,
        mB2: cute.Pointer,
        mY: cute.Pointer,
        mH: cute.Pointer,
        rows: Int32,
        blocks: Int32,
        stream: CUstream,
        config: cutlass.Constexpr,
    ):
        mlp(mX, mW1, mB1, mW2, mB2, mY, mH, rows, config).launch(
            grid=(blocks, 1, 1),
            block=(config.threads, 1, 1),
            cluster=(config.cluster, 1, 1),
            smem=config.shared_bytes,
            stream=stream,
        )

    return launch


def pointers(config: Any) -> tuple[Any, ...]:
    """Placeholders for x, W1, b1, W2, b2, y, h and the number of rows: what every kernel here takes. Only types and alignment count."""
    half = half_of(config)

    def placeholder(kind: Any) -> Any:
        return make_ptr(kind, 16, AddressSpace.gmem, assumed_align=16)

    return (
        placeholder(half),
        placeholder(half),
        placeholder(Float32),
        placeholder(half),
        placeholder(Float32),
        placeholder(Float32),
        placeholder(half),
        Int32(1),
        Int32(1),
        make_fake_stream(),
        config,
    )
