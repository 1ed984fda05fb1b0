"""Compile-time parameters of the kernels, and what follows from them. Sizes in elements, `shared_bytes` in bytes."""

from dataclasses import dataclass

MMA_ROWS, MMA_COLUMNS, MMA_K = 16, 8, 16  # mma.sync m16n8k16
WARP = 32
BULK = ("sm_90a", "sm_100a", "sm_120a")  # bulk copies completing on an mbarrier
PANEL = 64  # columns that one wgmma takes, 128 bytes a row
_HALF_BYTES, _FLOAT_BYTES = 2, 4
PAD = 8  # halves behind a row in shared memory: rows of ldmatrix then lie in different banks
QUARTER_PAD = 4  # the same for loads of four halves, of rows that are dealt in quarters
_ALIGNMENT = 256  # for what the allocator rounds up


def up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


class OneBlock:
    """What most of them have: a block takes a tile by itself."""

    __slots__ = ()

    @property
    def cluster(self) -> int:
        """Blocks that are launched together."""
        return 1

    @property
    def blocks_per_tile(self) -> int:
        return self.cluster


@dataclass(frozen=True, kw_only=True, slots=True)
class InRegisters(OneBlock):
    """h never leaves the registers: a warp owns 16 hidden columns and runs both products on them.

    few: no tile has more than eight rows. single: a worker has one tile. h_global: h goes through global memory.
    """

    channels: int
    hidden: int
    few: bool
    single: bool
    bf16: bool
    h_global: bool

    @property
    def warps(self) -> int:
        return up(self.hidden, MMA_K) // MMA_K

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def column_tiles(self) -> int:
        return up(self.channels, MMA_COLUMNS) // MMA_COLUMNS

    @property
    def rows(self) -> int:
        return MMA_ROWS

    @property
    def buffers(self) -> int:
        return 1 if self.single else 2

    @property
    def partials(self) -> int:
        """float32 sums of all warps, in shared memory; none where one warp has everything."""
        return self.buffers * self.warps * self.column_tiles * MMA_ROWS * MMA_COLUMNS if self.warps > 1 else 0

    @property
    def shared_bytes(self) -> int:
        return _FLOAT_BYTES * self.partials + _ALIGNMENT if self.partials else 0

    @property
    def h_pitch(self) -> int:
        return up(self.hidden, MMA_K)


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned(OneBlock):
    """channels and hidden are multiples of 16: 16-byte copies into padded rows, fragments by ldmatrix.

    warps: each takes 1/warps of the hidden columns, then of the channels. row_tiles: tiles of 16 rows that a worker takes at a time.
    ranks: blocks of a cluster, between which the hidden columns are split; 2 * row_tiles where it is not 1. direct: weights come through
    registers instead of cp.async. single, bf16, h_global: as in InRegisters.
    """

    channels: int
    hidden: int
    warps: int
    row_tiles: int
    ranks: int
    direct: bool
    single: bool
    bf16: bool
    h_global: bool

    @property
    def cluster(self) -> int:
        return self.ranks

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def rows(self) -> int:
        return MMA_ROWS * self.row_tiles

    @property
    def rank_hidden(self) -> int:
        return self.hidden // self.ranks

    @property
    def hidden_tiles(self) -> int:
        """Tiles of eight hidden columns that a warp has."""
        return self.rank_hidden // MMA_COLUMNS // self.warps

    @property
    def column_tiles(self) -> int:
        return self.channels // MMA_COLUMNS // self.warps

    @property
    def channel_pitch(self) -> int:
        return self.channels + PAD

    @property
    def hidden_pitch(self) -> int:
        return self.rank_hidden + PAD

    @property
    def h_pitch(self) -> int:
        return self.hidden

    @property
    def buffers(self) -> int:
        return 1 if self.single else 2

    @property
    def exchanged(self) -> int:
        """float32 partial sums that a block gets from the others of its cluster for one tile."""
        return (self.ranks - 1) * self.threads * 2 * self.column_tiles

    @property
    def shared_bytes(self) -> int:
        weights = self.channels * self.hidden_pitch + self.rank_hidden * self.channel_pitch
        tiles = self.buffers * self.rows * (self.channel_pitch + (0 if self.h_global else self.hidden_pitch))
        exchange = _FLOAT_BYTES * self.buffers * self.exchanged + 16 if self.ranks > 1 else 0
        return _HALF_BYTES * (weights + tiles) + exchange + _ALIGNMENT


@dataclass(frozen=True, kw_only=True, slots=True)
class Ragged(OneBlock):
    """Any widths: the weights lie in shared memory as they lie in global memory, fragments are built from 2-byte loads.

    bulk: weights come by bulk copies (sm_90 and later), else by cp.async. kept_steps: so many times 16 rows of W2 pass through the place of
    W1 into registers, where both matrices do not fit into shared memory. few, single, bf16, h_global: as in InRegisters.
    """

    channels: int
    hidden: int
    warps: int
    bulk: bool
    kept_steps: int
    few: bool
    single: bool
    bf16: bool
    h_global: bool

    @property
    def threads(self) -> int:
        return WARP * self.warps

    @property
    def rows(self) -> int:
        return MMA_ROWS

    @property
    def padded_channels(self) -> int:
        return up(self.channels, MMA_K)

    @property
    def padded_hidden(self) -> int:
        return up(self.hidden, MMA_K)

    @property
    def hidden_tiles(self) -> int:
        return -(-self.padded_hidden // MMA_COLUMNS // self.warps)

    @property
    def column_tiles(self) -> int:
        return -(-up(self.channels, MMA_COLUMNS) // MMA_COLUMNS // self.warps)

    @property
    def w1_room(self) -> int:
        """W1, then zeros for the rows of the last step of K and for what the last columns of the last warp read beyond a row."""
        return up(self.padded_channels * self.hidden + MMA_COLUMNS * self.hidden_tiles * self.warps - self.hidden, 8)

    @property
    def w2_room(self) -> int:
        """The same for those rows of W2 that stay in shared memory."""
        rows = self.padded_hidden - MMA_K * self.kept_steps
        return up(rows * self.channels + MMA_COLUMNS * self.column_tiles * self.warps - self.channels, 8)

    @property
    def x_pitch(self) -> int:
        return self.padded_channels + QUARTER_PAD

    @property
    def hidden_pitch(self) -> int:
        return MMA_COLUMNS * self.hidden_tiles * self.warps + QUARTER_PAD

    @property
    def h_pitch(self) -> int:
        return MMA_COLUMNS * self.hidden_tiles * self.warps

    @property
    def buffers(self) -> int:
        return 1 if self.single else 2

    @property
    def shared_bytes(self) -> int:
        tiles = self.buffers * MMA_ROWS * (self.x_pitch + (0 if self.h_global else self.hidden_pitch))
        return _HALF_BYTES * (self.w1_room + self.w2_room + tiles) + 24 + _ALIGNMENT


@dataclass(frozen=True, kw_only=True, slots=True)
class WarpGroup(OneBlock):
    """channels and hidden are multiples of 16, on Hopper: wgmma takes weights as its 64-row side and `rows` rows of x, a multiple of 8,
    as its other side.

    groups: warp groups, which share the tiles of 64 columns. splits: blocks that share a tile of rows; each computes h and finishes
    channels / splits, a multiple of 8. single, bf16, h_global: as in InRegisters.
    """

    channels: int
    hidden: int
    rows: int
    groups: int
    splits: int
    single: bool
    bf16: bool
    h_global: bool

    @property
    def blocks_per_tile(self) -> int:
        return self.splits

    @property
    def threads(self) -> int:
        return 4 * WARP * self.groups

    @property
    def part_columns(self) -> int:
        return self.channels // self.splits

    @property
    def hidden_panels(self) -> int:
        return up(self.hidden, PANEL) // PANEL

    @property
    def column_panels(self) -> int:
        return up(self.part_columns, PANEL) // PANEL

    @property
    def hidden_tiles(self) -> int:
        """Tiles of 64 hidden columns that a warp group has; the last ones may hold nothing."""
        return -(-self.hidden_panels // self.groups)

    @property
    def column_tiles(self) -> int:
        return -(-self.column_panels // self.groups)

    @property
    def x_room(self) -> int:
        """Panels of x, in halves."""
        return up(self.channels, PANEL) * self.rows

    @property
    def w1_room(self) -> int:
        return self.groups * self.hidden_tiles * PANEL * self.channels

    @property
    def w2_room(self) -> int:
        return self.groups * self.column_tiles * PANEL * self.hidden

    @property
    def h_room(self) -> int:
        """h of one tile, in halves."""
        return self.hidden * self.rows

    @property
    def shared_bytes(self) -> int:
        return _HALF_BYTES * (self.x_room + self.w1_room + self.w2_room + self.h_room) + 1024 + _ALIGNMENT
