"""Engine conventional: two phases a block, first h of all rows, then y of all rows, with h through memory between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mkframe.plugin import Engine, Launches, Precision, TensorSpec
from mkframe_plugins.residual_mlp import cpu_schedules as cpu
from mkframe_plugins.residual_mlp.conventional_cuda import ConventionalCuda
from mkframe_plugins.residual_mlp.workload import MlpCase


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tile:
    """Views of one tile: `source` is the input of the first block, `following` that of the others, `x` either in float32."""

    source: Any
    following: Any
    x: Any
    z: Any
    h: Any
    y: Any


class Conventional(cpu.CpuSchedule):
    """What a chain of separate kernels does; a phase ends before the next one begins."""

    id = "conventional"
    devices = ("cpu", "cuda")
    limits = ConventionalCuda.limits

    def on(self, kind: str) -> Engine:
        return self if kind == "cpu" else ConventionalCuda()

    def scratch(self, case: MlpCase, precision: Precision, options: cpu.TileOptions) -> Mapping[str, TensorSpec]:
        """Beside cpu.tile_scratch: h (rows, hidden); with depth > 1 next_x (rows, channels) in the input dtype."""
        specs = cpu.tile_scratch(case, precision, options.tile_rows)
        specs["h"] = cpu.scratch(case.rows, case.hidden, dtype=precision.hidden)
        if case.depth > 1:
            specs["next_x"] = cpu.scratch(case.rows, case.channels, dtype=precision.input)
        return specs

    def bind(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], options: cpu.TileOptions) -> Launches:
        import torch

        mm = torch.mm
        weights = cpu.weights_of(case, tensors)
        tiles = tuple(self._tile(rows, tensors) for rows in cpu.row_tiles(case, options.tile_rows))
        last = case.depth - 1

        def call() -> None:
            for index, block in enumerate(weights):
                block.load()
                for tile in tiles:
                    cpu.convert(tile.following if index else tile.source, tile.x)
                    cpu.first_product(tile.x, block, tile.z, tile.h, mm)
                for tile in tiles:
                    cpu.convert(tile.following if index else tile.source, tile.x)
                    cpu.second_product(tile.h, tile.z, tile.x, block, tile.y, mm)
                    if index != last:
                        cpu.convert(tile.y, tile.following)

        return cpu.launches(call, tiles)

    def _tile(self, rows: slice, tensors: Mapping[str, Any]) -> _Tile:
        source, h = tensors["x"][rows], tensors["h"][rows]
        return _Tile(
            source=source,
            following=tensors["next_x"][rows] if "next_x" in tensors else None,
            x=cpu.head(tensors["tile_x"], rows) if "tile_x" in tensors else source,
            z=cpu.head(tensors["tile_z"], rows) if "tile_z" in tensors else h,
            h=h,
            y=tensors["y"][rows],
        )


ENGINES = (Conventional(),)
