"""What the CPU engines of residual_mlp share: one tile of rows through one block, with every buffer named by its caller.

A CPU has no product of half operands that ends in float32, so the operands are widened first: weights once per call, tiles
of rows as they come. Both conversions are exact, and stand for what a kernel does when it loads them on chip.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mkframe.plugin import Engine, Launches, Precision, Role, TensorSpec
from mkframe_plugins.residual_mlp.workload import MlpCase


@dataclass(frozen=True, kw_only=True, slots=True)
class TileOptions:
    """tile_rows: rows that a worker takes at a time on a CPU, at least 1."""

    tile_rows: int = 128

    def __post_init__(self) -> None:
        if self.tile_rows < 1:
            raise ValueError(f"tile_rows must be at least 1, not {self.tile_rows}")


class CpuSchedule(Engine):
    """Base of the CPU engines."""

    workload = "residual_mlp"
    devices: tuple[str, ...] = ("cpu",)
    precisions = ("fp16", "bf16", "fp32")
    limits = "CPU only so far: no CUDA kernel yet; no tf32 (a CPU has no TF32 product)"
    Options = TileOptions


def scratch(*shape: int, dtype: str) -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype, role=Role.SCRATCH)


def tile_scratch(case: MlpCase, precision: Precision, tile_rows: int) -> dict[str, TensorSpec]:
    """Buffers that every schedule needs, each only where the contract or the depth asks for it.

    wide_W1 (depth, channels, hidden), wide_W2 (depth, hidden, channels): narrow weights in float32.
    tile_x (tile, channels): one tile of a block's input in float32.
    tile_z (tile, hidden): the accumulator of the first product, then h in float32.
    """
    tile = min(tile_rows, case.rows)
    specs: dict[str, TensorSpec] = {}
    if precision.hidden != "float32":
        specs["wide_W1"] = scratch(case.depth, case.channels, case.hidden, dtype="float32")
        specs["wide_W2"] = scratch(case.depth, case.hidden, case.channels, dtype="float32")
        specs["tile_z"] = scratch(tile, case.hidden, dtype="float32")
    if precision.input != "float32" or case.depth > 1:
        specs["tile_x"] = scratch(tile, case.channels, dtype="float32")
    return specs


def row_tiles(case: MlpCase, tile_rows: int) -> tuple[slice, ...]:
    """The row tiles in the order in which a CPU's one worker, the calling thread, visits them: its grid stride is one tile."""
    return tuple(slice(first, min(first + tile_rows, case.rows)) for first in range(0, case.rows, tile_rows))


def head(buffer: Any, tile: slice) -> Any:
    """The first rows of a tile-sized buffer, as many as the tile has."""
    return buffer[: tile.stop - tile.start]


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """One block in float32: w1 (channels, hidden), b1, w2 (hidden, channels), b2; and the narrow matrices that w1 and w2 are
    widened from, None where they are the workload's own."""

    w1: Any
    b1: Any
    w2: Any
    b2: Any
    narrow_w1: Any
    narrow_w2: Any

    def load(self) -> None:
        """Part of every call: the weights are taken as they are."""
        if self.narrow_w1 is not None:
            self.w1.copy_(self.narrow_w1)
            self.w2.copy_(self.narrow_w2)


def weights_of(case: MlpCase, tensors: Mapping[str, Any]) -> tuple[Weights, ...]:
    """The blocks of a case, as views of its tensors."""
    own = {name: tensors[name] if case.depth > 1 else tensors[name].unsqueeze(0) for name in ("W1", "b1", "W2", "b2")}
    narrow = "wide_W1" in tensors
    return tuple(
        Weights(
            w1=tensors["wide_W1"][block] if narrow else own["W1"][block],
            b1=own["b1"][block],
            w2=tensors["wide_W2"][block] if narrow else own["W2"][block],
            b2=own["b2"][block],
            narrow_w1=own["W1"][block] if narrow else None,
            narrow_w2=own["W2"][block] if narrow else None,
        )
        for block in range(case.depth)
    )


def convert(source: Any, target: Any) -> None:
    """target = source in target's dtype, rounded once where that is narrower; nothing where both are one buffer."""
    if target is not source:
        target.copy_(source)


def first_product(x: Any, weights: Weights, z: Any, h: Any, mm: Callable[..., Any]) -> None:
    """h = hidden(relu(x W1 + b1)) for one tile: float32 in z, which is h itself where the contract's h is float32."""
    mm(x, weights.w1, out=z)
    z.add_(weights.b1).relu_()
    convert(z, h)


def second_product(h: Any, z: Any, x: Any, weights: Weights, y: Any, mm: Callable[..., Any]) -> None:
    """y = relu(h W2 + b2 + x) for one tile in float32; a narrow h is widened into z first."""
    convert(h, z)
    mm(z, weights.w2, out=y)
    y.add_(weights.b2).add_(x).relu_()


def launches(call: Callable[[], None], tiles: Sequence[Any]) -> Launches:
    return Launches(call=call, facts=MappingProxyType({"tiles": len(tiles), "workers": 1}))
