"""Compile-time parameters of one product of two launches, and the rule that picks them. Sizes in elements, `shared_bytes` in bytes."""

from dataclasses import dataclass

from mkframe.plugin import Kernel, Target
from mkframe_plugins.residual_mlp.kernels.configs import BULK, MMA_COLUMNS, MMA_K, MMA_ROWS, PAD, QUARTER_PAD, WARP, up

_MODULE = "mkframe_plugins.residual_mlp.kernels.one_product"
_BLOCKS_PER_SM = 2  # more than these share too little of what each has to fetch
_PARTS = (32, 64, 128)  # columns of a block, at most
_WARPS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class OneProduct:
    """out (rows, columns) = relu(a (rows, depth) w (depth, columns) + bias [+ x]).

    a_pitch: halves from one row of a to the next. part_columns: of a block, a multiple of 8. aligned: both widths are multiples of 16, and
    a block holds its part of w in padded rows; else all of w lies flat. bulk: it comes by a bulk copy. residual: x is added and the result
    is float32; else it is rounded, into rows of `out_pitch` halves.
    """

    depth: int
    columns: int
    a_pitch: int
    part_columns: int
    aligned: bool
    bulk: bool
    residual: bool
    bf16: bool

    @property
    def parts(self) -> int:
        return -(-self.out_columns // self.part_columns)

    @property
    def out_columns(self) -> int:
        """Columns that are computed: those of h up to whole steps of the second product."""
        return self.columns if self.residual else self.out_pitch

    @property
    def out_pitch(self) -> int:
        return up(self.columns, MMA_K)

    @property
    def threads(self) -> int:
        return WARP * self.column_warps * self.shares

    @property
    def column_warps(self) -> int:
        """Warps side by side."""
        return next(warps for warps in (_WARPS, 2, 1) if self.part_columns // MMA_COLUMNS % warps == 0)

    @property
    def shares(self) -> int:
        """Warps that share the steps of K of the same columns."""
        shares = _WARPS // self.column_warps
        return shares if self.aligned and self.padded_depth // MMA_K % shares == 0 else 1

    @property
    def column_tiles(self) -> int:
        return self.part_columns // MMA_COLUMNS // self.column_warps

    @property
    def steps(self) -> int:
        return self.padded_depth // MMA_K // self.shares

    @property
    def padded_depth(self) -> int:
        return up(self.depth, MMA_K)

    @property
    def a_in_vectors(self) -> bool:
        """Rows of a begin at multiples of 16 bytes and hold whole steps of K: those of h have zeros behind them."""
        return self.a_pitch % 8 == 0 and self.a_pitch >= self.padded_depth

    @property
    def a_room_pitch(self) -> int:
        return self.padded_depth + (PAD if self.a_in_vectors else QUARTER_PAD)

    @property
    def w_room_pitch(self) -> int:
        return self.part_columns + PAD

    @property
    def w_room(self) -> int:
        if self.aligned:
            return self.depth * self.w_room_pitch
        return up(self.padded_depth * self.columns + self.parts * self.part_columns + MMA_COLUMNS * self.column_tiles, 8)

    @property
    def shared_sums(self) -> int:
        return (self.shares - 1) * self.column_warps * WARP * 4 * self.column_tiles

    @property
    def shared_bytes(self) -> int:
        return 2 * (self.w_room + MMA_ROWS * self.a_room_pitch) + 4 * max(self.shared_sums, 4) + 8 + 256


def candidates(depth: int, columns: int, a_pitch: int, *, residual: bool, bf16: bool, arch: str) -> tuple[OneProduct, ...]:
    """One for each part that columns may be dealt in, the narrowest first."""
    aligned = depth % MMA_K == 0 and columns % MMA_K == 0
    wanted = columns if residual else up(columns, MMA_K)
    parts = [part for part in _PARTS if part == _PARTS[0] or part < 2 * wanted]
    if aligned:
        parts = [max(width for width in range(MMA_K, min(part, columns) + 1, MMA_K) if columns % width == 0) for part in parts]
    return tuple(
        OneProduct(
            depth=depth,
            columns=columns,
            a_pitch=a_pitch,
            part_columns=part,
            aligned=aligned,
            bulk=not aligned and arch in BULK and depth * columns >= 8,
            residual=residual,
            bf16=bf16,
        )
        for part in dict.fromkeys(parts)
    )


def chosen(found: tuple[OneProduct, ...], rows: int, target: Target) -> tuple[OneProduct, ...]:
    """Of the candidates that fit on chip the narrowest with which blocks are not too many, else the widest; all that fit where the number
    of multiprocessors is not known; none where none fits."""
    fitting = tuple(config for config in found if config.shared_bytes <= target.shared_bytes_per_block)
    if target.multiprocessors is None:
        return fitting
    most = _BLOCKS_PER_SM * target.multiprocessors
    return tuple(config for config in fitting if -(-rows // MMA_ROWS) * config.parts <= most)[:1] or fitting[-1:]


def kernel_of(config: OneProduct) -> Kernel:
    copies = ["cp.async.bulk", "mbarrier"] if config.bulk else ["cp.async"]
    return Kernel(
        module=_MODULE,
        config=config,
        shared_bytes=config.shared_bytes,
        block=config.threads,
        cluster=1,
        name="mlp-second-product" if config.residual else "mlp-first-product",
        expects=("mma.sync", *copies, *(["ldmatrix"] if config.aligned else [])),
    )
