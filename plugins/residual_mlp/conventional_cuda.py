"""Engine conventional on CUDA: two launches, h of all rows between them in global memory."""

import ctypes
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from mkframe.kernels import current_target, facts, kernel_sources, node, target_of
from mkframe.plugin import Device, Engine, Kernel, Launches, Precision, Role, Target, TensorSpec
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.kernels.configs import MMA_K, MMA_ROWS, up
from mkframe_plugins.residual_mlp.kernels.product_configs import OneProduct, kernel_of, one_product
from mkframe_plugins.residual_mlp.workload import MlpCase


class ConventionalCuda(Engine):
    """What a chain of separate kernels does, with the fewest of them."""

    id = "conventional"
    workload = "residual_mlp"
    devices = ("cuda",)
    precisions = ("fp16", "bf16")
    limits = (
        "on CUDA depth 1, fp16 and bf16, odd widths whose weights fit on chip; has run on Hopper, for others it compiles and has never run"
    )
    Options = TileOptions

    def unsupported(self, case: MlpCase, precision: Precision, device: Device) -> str | None:
        target = target_of(device)
        if target is None:
            return f"no kernel for compute capability {device.compute_capability}"
        if case.depth > 1:
            return f"one block, not a chain of {case.depth}"
        for config in self._configs(case, precision, target):
            if config.shared_bytes > target.shared_bytes_per_block:
                most = target.shared_bytes_per_block >> 10
                return f"{config.shared_bytes >> 10} KiB of weights and rows do not fit on chip ({most} KiB a block)"
        return None

    def kernels(self, case: MlpCase, precision: Precision, target: Target, options: TileOptions) -> tuple[Kernel, ...]:
        return tuple(dict.fromkeys(kernel_of(config) for config in self._configs(case, precision, target)))

    def scratch(self, case: MlpCase, precision: Precision, options: TileOptions) -> Mapping[str, TensorSpec]:
        """h (rows, hidden up to whole steps) in the contract's dtype."""
        return {"h": TensorSpec(shape=(case.rows, up(case.hidden, MMA_K)), dtype=precision.hidden, role=Role.SCRATCH)}

    def bind(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], options: TileOptions) -> Launches:
        if options != TileOptions():
            raise ValueError(f"engine.{self.id}.options: tile_rows is for the CPU; on CUDA the kernel's policy chooses")
        target, rows = current_target(), (case.rows, ctypes.c_int32)
        first, second = self._configs(case, precision, target)
        x, h = tensors["x"], tensors["h"]
        taken = ((first, (x, tensors["W1"], tensors["b1"], x, h, rows)), (second, (h, tensors["W2"], tensors["b2"], x, tensors["y"], rows)))
        tiles = -(-case.rows // MMA_ROWS)
        nodes = tuple(node(kernel_of(config), target, tiles * config.parts, arguments) for config, arguments in taken)
        return Launches(nodes=nodes, facts=MappingProxyType(facts(tuple(kernel_of(config) for config in (first, second)), target)))

    def sources(self) -> tuple[str, ...]:
        return kernel_sources("mkframe_plugins.residual_mlp.kernels.one_product")

    def _configs(self, case: MlpCase, precision: Precision, target: Target) -> tuple[OneProduct, ...]:
        """Of both products; where the number of multiprocessors is not known, for one of them and for as many as anybody has."""
        found: dict[OneProduct, None] = {}
        counts = (target.multiprocessors,) if target.multiprocessors is not None else (1, case.rows)
        for count in counts:
            of_case = partial(one_product, case.rows, bf16=precision.input == "bfloat16", target=target, multiprocessors=count)
            found[of_case(case.channels, case.hidden, case.channels, residual=False)] = None
            found[of_case(case.hidden, case.channels, up(case.hidden, MMA_K), residual=True)] = None
        return tuple(found)
