"""Engine conventional on CUDA: two launches, h of all rows between them in global memory."""

import ctypes
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from mkframe.kernels import facts, kernel_sources, node
from mkframe.plugin import Kernel, Launches, Precision, Role, Target, TensorSpec
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.cuda_engine import CudaEngine
from mkframe_plugins.residual_mlp.kernels.configs import MMA_K, MMA_ROWS, up
from mkframe_plugins.residual_mlp.kernels.product_configs import OneProduct, candidates, chosen, kernel_of
from mkframe_plugins.residual_mlp.workload import MlpCase


class ConventionalCuda(CudaEngine):
    """What a chain of separate kernels does, with the fewest of them."""

    id = "conventional"
    limits = (
        "on CUDA depth 1, fp16 and bf16, odd widths whose weights fit on chip; has run on Hopper, for others it compiles and has never run"
    )

    def too_large(self, case: MlpCase, precision: Precision, target: Target) -> str | None:
        for narrowest, *_ in self._candidates(case, precision, target):
            if narrowest.shared_bytes > target.shared_bytes_per_block:
                most = target.shared_bytes_per_block >> 10
                return f"{narrowest.shared_bytes >> 10} KiB of weights and rows do not fit on chip ({most} KiB a block)"
        return None

    def kernels(self, case: MlpCase, precision: Precision, target: Target, options: TileOptions) -> tuple[Kernel, ...]:
        found = [chosen(widths, case.rows, target) for widths in self._candidates(case, precision, target)]
        return tuple(kernel_of(config) for configs in found for config in configs) if all(found) else ()

    def scratch(self, case: MlpCase, precision: Precision, options: TileOptions) -> Mapping[str, TensorSpec]:
        """h (rows, hidden up to whole steps) in the contract's dtype."""
        return {"h": TensorSpec(shape=(case.rows, up(case.hidden, MMA_K)), dtype=precision.hidden, role=Role.SCRATCH)}

    def launches(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], target: Target) -> Launches:
        first, second = (chosen(widths, case.rows, target)[0] for widths in self._candidates(case, precision, target))
        x, h, rows = tensors["x"], tensors["h"], (case.rows, ctypes.c_int32)
        tiles = -(-case.rows // MMA_ROWS)
        one, other = kernel_of(first), kernel_of(second)
        nodes = (
            node(one, target, tiles * first.parts, (x, tensors["W1"], tensors["b1"], x, h, rows)),
            node(other, target, tiles * second.parts, (h, tensors["W2"], tensors["b2"], x, tensors["y"], rows)),
        )
        return Launches(nodes=nodes, facts=MappingProxyType(facts((one, other), target)))

    def sources(self) -> tuple[str, ...]:
        return kernel_sources("mkframe_plugins.residual_mlp.kernels.one_product")

    def _candidates(self, case: MlpCase, precision: Precision, target: Target) -> tuple[tuple[OneProduct, ...], ...]:
        """Of the first product and of the second one."""
        of_case = partial(candidates, bf16=precision.input == "bfloat16", arch=target.arch)
        return (
            of_case(case.channels, case.hidden, case.channels, residual=False),
            of_case(case.hidden, case.channels, up(case.hidden, MMA_K), residual=True),
        )
