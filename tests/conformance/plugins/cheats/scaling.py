"""A workload that costs next to nothing: y = x w + 1, column by column."""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mkframe.plugin import Cost, Defaults, Role, TensorSpec, Tolerance, Workload


@dataclass(frozen=True, kw_only=True)
class Case:
    rows: int
    columns: int


class Scaling(Workload):
    id, Case, precisions = "scaling", Case, ("fp32",)
    defaults = Defaults(engines=("honest",), shapes=("listed",), precision="fp32")
    shapes = MappingProxyType({"listed": ({"rows": 2, "columns": 6}, {"rows": 40, "columns": 4}, {"rows": 100, "columns": 100})})

    def tensors(self, case, precision):
        return {
            "x": TensorSpec(shape=(case.rows, case.columns), dtype="float32", role=Role.INPUT),
            "w": TensorSpec(shape=(case.columns,), dtype="float32", role=Role.WEIGHT),
            "y": TensorSpec(shape=(case.rows, case.columns), dtype="float32", role=Role.OUTPUT),
        }

    def draw(self, case, seed):
        normal = np.random.Generator(np.random.PCG64(seed)).standard_normal
        return {"x": normal((case.rows, case.columns), dtype=np.float32), "w": normal(case.columns, dtype=np.float32)}

    def reference(self, case, precision, inputs):
        return {"y": inputs["x"] * inputs["w"] + 1}

    def tolerance(self, precision):
        return Tolerance(rtol=1e-5, atol=1e-5)

    def cost(self, case, precision):
        return Cost(bytes=4 * (2 * case.rows + 1) * case.columns, flops=2 * case.rows * case.columns)

    def expression(self, case, precision, tensors):
        import torch

        torch.add(tensors["x"] * tensors["w"], 1, out=tensors["y"])


WORKLOADS = (Scaling(),)
