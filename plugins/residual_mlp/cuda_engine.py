"""What the engines of residual_mlp on CUDA share: one block, half precisions, kernels of the CuTe DSL."""

from collections.abc import Mapping
from typing import Any

from mkframe.kernels import current_target, target_of
from mkframe.plugin import Device, Engine, Launches, Precision, Target
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.workload import MlpCase


class CudaEngine(Engine):
    """Kernels for the architecture of the device, with parameters that a policy chooses."""

    workload = "residual_mlp"
    devices = ("cuda",)
    precisions = ("fp16", "bf16")
    Options = TileOptions

    def unsupported(self, case: MlpCase, precision: Precision, device: Device) -> str | None:
        target = target_of(device)
        if target is None:
            return f"no kernel for compute capability {device.compute_capability}"
        if case.depth > 1:
            return f"one block, not a chain of {case.depth}"
        return self.too_large(case, precision, target)

    def bind(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], options: TileOptions) -> Launches:
        if options != TileOptions():
            raise ValueError(f"engine.{self.id}.options: tile_rows is for the CPU; on CUDA the kernel's policy chooses")
        return self.launches(case, precision, tensors, current_target())

    def too_large(self, case: MlpCase, precision: Precision, target: Target) -> str | None:
        """Why a case does not fit on chip, in words; None where it does."""
        raise NotImplementedError

    def launches(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], target: Target) -> Launches:
        """The launches of a case that is supported, on the device of the current context."""
        raise NotImplementedError
