"""Which kernel computes a case on a target, with what parameters. Fitted on the development shapes alone: docs/kernels/persistent.md."""

from dataclasses import dataclass

from mkframe.plugin import Kernel, Target
from mkframe_plugins.residual_mlp.kernels.configs import BULK, MMA_K, Aligned, InRegisters, Ragged, WarpGroup, up

_PACKAGE = "mkframe_plugins.residual_mlp.kernels"
_CLUSTERS = ("sm_90a", "sm_100a")
_REGISTER_WEIGHTS = 512  # between 7 x 13, where fragments from global memory win, and 31 x 47, where they lose
_DIRECT_BYTES = 8 << 10  # of both matrices: up to here registers are the faster way into shared memory
_WARP_GROUPS = ("sm_90a",)
_CLUSTER_BYTES = 64 << 10  # of both matrices: between 32 KiB, where a cluster of two loses, and 128 KiB, where it wins
_WARP_GROUP_BYTES = 32 << 10  # of both matrices: at 8 KiB wgmma loses, at 32 KiB it wins
_SPLIT_BYTES = 64 << 10  # of both matrices: at 32 KiB two blocks for a tile win nothing, at 128 KiB they do
_MOST_ROWS = 64  # of a tile of wgmma: a quarter of the registers for sums
_MOST_TILES = 16  # of eight columns in the registers of a warp
_MOST_KEPT_STEPS = 8  # 32 registers of the 128 that a thread of 16 warps has
_BLOCKS_PER_SM = 4
_KEPT_BYTES = 1 << 10  # of shared memory, by the system, for each block

Config = InRegisters | Aligned | WarpGroup | Ragged


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """kernel and the grid that its workers make: `blocks` along x."""

    kernel: Kernel
    blocks: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What a schedule depends on."""

    rows: int
    channels: int
    hidden: int
    bf16: bool
    h_global: bool


def schedules(shape: Shape, target: Target) -> tuple[Schedule, ...]:
    """The schedule of a case, or the two that are possible where the number of multiprocessors is not known; none where the weights do
    not fit on chip."""
    counts = (target.multiprocessors,) if target.multiprocessors is not None else (1, shape.rows)
    found = dict.fromkeys(_schedule(shape, target, count) for count in counts)
    return tuple(schedule for schedule in found if schedule is not None)


def _schedule(shape: Shape, target: Target, multiprocessors: int) -> Schedule | None:
    for single in (True, False):
        config = _config(shape, target, single, multiprocessors)
        if config is None:
            continue
        tiles = -(-shape.rows // config.rows)
        per_sm = min(_BLOCKS_PER_SM, target.shared_bytes_per_block // (config.shared_bytes + _KEPT_BYTES)) or 1
        workers = max(1, multiprocessors * per_sm // config.blocks_per_tile)
        if single == (tiles <= workers):
            return Schedule(kernel=_kernel(config), blocks=min(tiles, workers) * config.blocks_per_tile)
    return None


def _config(shape: Shape, target: Target, single: bool, multiprocessors: int) -> Config | None:
    for config in _candidates(shape, target, single, multiprocessors):
        if config.shared_bytes <= target.shared_bytes_per_block and _fits_registers(config):
            return config
    return None


def _candidates(shape: Shape, target: Target, single: bool, multiprocessors: int) -> tuple[Config, ...]:
    """In the order of preference."""
    few, common = shape.rows <= 8, (shape.channels, shape.hidden, single, shape.bf16, shape.h_global)
    found: list[Config] = []
    if shape.channels * shape.hidden <= _REGISTER_WEIGHTS:
        found.append(_in_registers(few, *common))
    if shape.channels % MMA_K == 0 and shape.hidden % MMA_K == 0:
        if target.arch in _WARP_GROUPS and 4 * shape.channels * shape.hidden >= _WARP_GROUP_BYTES:
            found.append(_warp_group(shape, single, multiprocessors))
        found.extend(_aligned(shape, single, ranks) for ranks in _ranks(shape, target))
    steps = range(min(_MOST_KEPT_STEPS, shape.hidden // MMA_K) + 1)
    for warps, kept in ((4 if max(shape.hidden, shape.channels) <= 64 else 8, 0), *((16, kept) for kept in steps)):
        found.append(
            Ragged(
                channels=shape.channels,
                hidden=shape.hidden,
                warps=warps,
                bulk=target.arch in BULK,
                kept_steps=kept,
                few=few,
                single=single,
                bf16=shape.bf16,
                h_global=shape.h_global,
            )
        )
    return tuple(found)


def _in_registers(few: bool, channels: int, hidden: int, single: bool, bf16: bool, h_global: bool) -> InRegisters:
    return InRegisters(channels=channels, hidden=hidden, few=few, single=single, bf16=bf16, h_global=h_global)


def _warp_group(shape: Shape, single: bool, multiprocessors: int) -> WarpGroup:
    """As few rows a tile as give every multiprocessor one block at most."""
    splits = 2 if 4 * shape.channels * shape.hidden > _SPLIT_BYTES else 1
    rows = up(-(-shape.rows * splits // multiprocessors), 8)
    return WarpGroup(
        channels=shape.channels,
        hidden=shape.hidden,
        rows=min(max(rows, 8 * splits), _MOST_ROWS),
        groups=2 if shape.hidden > 192 else 1,
        splits=splits,
        single=single,
        bf16=shape.bf16,
        h_global=shape.h_global,
    )


def _ranks(shape: Shape, target: Target) -> tuple[int, ...]:
    """Sizes of a cluster, the best first; larger ones only where the weights need them."""
    possible = [ranks for ranks in (1, 2, 4) if shape.hidden % (ranks * MMA_K) == 0 and (ranks == 1 or target.arch in _CLUSTERS)]
    if 2 in possible and 4 * shape.channels * shape.hidden > _CLUSTER_BYTES:
        possible.remove(1)
        possible.append(1)
    return tuple(possible)


def _aligned(shape: Shape, single: bool, ranks: int) -> Aligned:
    columns, hidden = shape.channels // 8, shape.hidden // 8 // ranks
    warps = next(
        (count for count in (4, 3, 2, 8, 6, 16, 1) if _split(columns, count) and _split(hidden, count)),
        1,
    )
    return Aligned(
        channels=shape.channels,
        hidden=shape.hidden,
        warps=warps,
        row_tiles=max(1, ranks // 2),
        ranks=ranks,
        direct=ranks == 1 and 4 * shape.channels * shape.hidden <= _DIRECT_BYTES,
        single=single,
        bf16=shape.bf16,
        h_global=shape.h_global,
    )


def _split(tiles: int, warps: int) -> bool:
    return tiles % warps == 0 and tiles // warps <= _MOST_TILES


def _fits_registers(config: Config) -> bool:
    if isinstance(config, WarpGroup):
        return config.hidden_tiles <= 4 and config.column_tiles <= 4
    if isinstance(config, InRegisters):
        return config.warps <= 4 and config.column_tiles <= _MOST_TILES
    return max(config.hidden_tiles, config.column_tiles) * (config.row_tiles if isinstance(config, Aligned) else 1) <= _MOST_TILES


def _kernel(config: Config) -> Kernel:
    words = {InRegisters: "in_registers", Aligned: "aligned", WarpGroup: "warpgroup", Ragged: "ragged"}
    name = words[type(config)]
    expects = ["mma.sync"]
    if isinstance(config, WarpGroup):
        expects = ["wgmma.mma_async", "cp.async"]
    elif isinstance(config, Aligned):
        expects += ["cp.async", "ldmatrix", *(["st.async", "mbarrier"] if config.ranks > 1 else [])]
    elif isinstance(config, Ragged):
        expects += ["cp.async.bulk", "mbarrier"] if config.bulk and config.channels * config.hidden >= 8 else ["cp.async"]
    return Kernel(
        module=f"{_PACKAGE}.{name}",
        config=config,
        shared_bytes=config.shared_bytes,
        block=config.threads,
        cluster=config.cluster,
        name=f"mlp-{name.replace('_', '-')}" + ("-h-global" if config.h_global else ""),
        expects=tuple(expects),
    )
