"""Engines persistent and persistent-global on CUDA: one launch, every worker takes whole row tiles through both products."""

import ctypes
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mkframe.kernels import facts, kernel_sources, node
from mkframe.plugin import Kernel, Launches, Precision, Role, Target, TensorSpec
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.cuda_engine import CudaEngine
from mkframe_plugins.residual_mlp.kernels.configs import up
from mkframe_plugins.residual_mlp.kernels.policy import Schedule, Shape, schedules
from mkframe_plugins.residual_mlp.workload import MlpCase

_MODULES = ("in_registers", "aligned", "warpgroup", "ragged")
_COVERED_ROWS, _COVERED = 64, 128  # multiples of what every schedule covers at a time
_MOST_SPLITS = 2  # blocks that each keep an h of their own for a tile


class PersistentCuda(CudaEngine):
    """h stays in registers or shared memory of its worker. Weights are taken as they are."""

    id = "persistent"
    limits = "on CUDA depth 1, fp16 and bf16, weights that fit on chip; has run on Hopper, for others it compiles and has never run"
    h_global = False

    def too_large(self, case: MlpCase, precision: Precision, target: Target) -> str | None:
        if schedules(self._shape(case, precision), target):
            return None
        weights = 4 * case.channels * case.hidden
        return f"{weights >> 10} KiB of weights do not fit on chip ({target.shared_bytes_per_block >> 10} KiB a block): see streamed"

    def kernels(self, case: MlpCase, precision: Precision, target: Target, options: TileOptions) -> tuple[Kernel, ...]:
        return tuple(schedule.kernel for schedule in schedules(self._shape(case, precision), target))

    def launches(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], target: Target) -> Launches:
        schedule = self._schedule(case, precision, target)
        names = ("x", "W1", "b1", "W2", "b2", "y")
        # a kernel without h in global memory does not touch its place, and any tensor may stand there
        arguments = (*(tensors[name] for name in names), tensors.get("h", tensors["x"]), (case.rows, ctypes.c_int32))
        launch = node(schedule.kernel, target, schedule.blocks, arguments)
        return Launches(nodes=(launch,), facts=MappingProxyType(facts((schedule.kernel,), target)))

    def sources(self) -> tuple[str, ...]:
        return kernel_sources(*(f"mkframe_plugins.residual_mlp.kernels.{module}" for module in _MODULES))

    def _schedule(self, case: MlpCase, precision: Precision, target: Target) -> Schedule:
        return schedules(self._shape(case, precision), target)[0]

    def _shape(self, case: MlpCase, precision: Precision) -> Shape:
        bf16 = precision.input == "bfloat16"
        return Shape(rows=case.rows, channels=case.channels, hidden=case.hidden, bf16=bf16, h_global=self.h_global)


class PersistentGlobalCuda(PersistentCuda):
    """The same owner, tiles, barriers and order of work, with h through a buffer in global memory."""

    id = "persistent-global"
    h_global = True

    def scratch(self, case: MlpCase, precision: Precision, options: TileOptions) -> Mapping[str, TensorSpec]:
        """h in the contract's dtype, for what the workers of any schedule cover; each schedule lays it out as it likes."""
        shape = (_MOST_SPLITS * up(case.rows, _COVERED_ROWS), up(case.hidden, _COVERED))
        return {"h": TensorSpec(shape=shape, dtype=precision.hidden, role=Role.SCRATCH)}
