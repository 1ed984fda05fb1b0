"""Engine persistent: a worker owns whole row tiles and takes each through every block, h in a buffer of tile size.

On a CPU the calling thread is the one worker, and torch spreads each product of its tile over the threads that it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mkframe.plugin import Engine, Launches, Precision, TensorSpec
from mkframe_plugins.residual_mlp import cpu_schedules as cpu
from mkframe_plugins.residual_mlp.persistent_cuda import PersistentCuda
from mkframe_plugins.residual_mlp.workload import MlpCase


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tile:
    """Views of one tile. `x` is its input in float32, `h` what lies between the products (`z` where that is float32),
    `between` a block's y before the next block and `rounded` the same in the input dtype."""

    source: Any
    x: Any
    z: Any
    h: Any
    y: Any
    between: Any
    rounded: Any


class Persistent(cpu.CpuSchedule):
    """h never leaves the worker."""

    id = "persistent"
    devices = ("cpu", "cuda")
    limits = PersistentCuda.limits

    def on(self, kind: str) -> Engine:
        return self if kind == "cpu" else PersistentCuda()

    def scratch(self, case: MlpCase, precision: Precision, options: cpu.TileOptions) -> Mapping[str, TensorSpec]:
        """Beside cpu.tile_scratch: h (tile, hidden); with depth > 1 tile_y (tile, channels) float32 and, where the input is
        narrow, tile_next (tile, channels) in its dtype."""
        tile = min(options.tile_rows, case.rows)
        specs = cpu.tile_scratch(case, precision, options.tile_rows)
        specs["h"] = cpu.scratch(self.hidden_rows(case, tile), case.hidden, dtype=precision.hidden)
        if case.depth > 1:
            specs["tile_y"] = cpu.scratch(tile, case.channels, dtype="float32")
            if precision.input != "float32":
                specs["tile_next"] = cpu.scratch(tile, case.channels, dtype=precision.input)
        return specs

    def hidden_rows(self, case: MlpCase, tile: int) -> int:
        """Rows of the buffer for h: one tile."""
        return tile

    def hidden_of(self, h: Any, tile: slice) -> Any:
        """The part of h that a tile uses: every tile the same."""
        return cpu.head(h, tile)

    def bind(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], options: cpu.TileOptions) -> Launches:
        import torch

        mm = torch.mm
        weights = cpu.weights_of(case, tensors)
        tiles = tuple(self._tile(rows, tensors) for rows in cpu.row_tiles(case, options.tile_rows))
        last = case.depth - 1

        def call() -> None:
            for block in weights:
                block.load()
            for tile in tiles:
                cpu.convert(tile.source, tile.x)
                for index, block in enumerate(weights):
                    cpu.first_product(tile.x, block, tile.z, tile.h, mm)
                    cpu.second_product(tile.h, tile.z, tile.x, block, tile.y if index == last else tile.between, mm)
                    if index != last:
                        cpu.convert(tile.between, tile.rounded)
                        cpu.convert(tile.rounded, tile.x)

        return cpu.launches(call, tiles)

    def _tile(self, rows: slice, tensors: Mapping[str, Any]) -> _Tile:
        source, h = tensors["x"][rows], self.hidden_of(tensors["h"], rows)
        between = cpu.head(tensors["tile_y"], rows) if "tile_y" in tensors else None
        return _Tile(
            source=source,
            x=cpu.head(tensors["tile_x"], rows) if "tile_x" in tensors else source,
            z=cpu.head(tensors["tile_z"], rows) if "tile_z" in tensors else h,
            h=h,
            y=tensors["y"][rows],
            between=between,
            rounded=cpu.head(tensors["tile_next"], rows) if "tile_next" in tensors else between,
        )


ENGINES = (Persistent(),)
