"""A third-party workload in one file: y = x g / sqrt(mean(x^2) + 1e-6), row by row. torch-eager and torch-compile come with it.

python -m mkframe plugin_path=docs/examples workload=rmsnorm engine=all
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mkframe.plugin import Cost, Defaults, Role, TensorSpec, Tolerance, Workload

EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True)
class Case:
    rows: int
    channels: int


class RmsNorm(Workload):
    id = "rmsnorm"
    Case = Case
    precisions = ("fp32", "fp16", "bf16")
    defaults = Defaults(engines=("torch-eager",), shapes=("norm",), precision="fp32")
    shapes = MappingProxyType({"norm": ({"rows": 3, "channels": 5}, {"rows": 64, "channels": 1024})})

    def tensors(self, case, precision):
        return {
            "x": TensorSpec(shape=(case.rows, case.channels), dtype=precision.input, role=Role.INPUT),
            "g": TensorSpec(shape=(case.channels,), dtype=precision.weight, role=Role.WEIGHT),
            "y": TensorSpec(shape=(case.rows, case.channels), dtype=precision.output, role=Role.OUTPUT),
        }

    def draw(self, case, seed):
        normal = np.random.Generator(np.random.PCG64(seed)).standard_normal
        return {"x": normal((case.rows, case.channels), dtype=np.float32), "g": normal(case.channels, dtype=np.float32)}

    def reference(self, case, precision, inputs):
        x = inputs["x"]
        return {"y": x * inputs["g"] / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + EPSILON)}

    def tolerance(self, precision):
        return Tolerance(rtol=1e-5, atol=1e-6)  # the output is float32 in every contract

    def cost(self, case, precision):
        return Cost(bytes=sum(spec.bytes for spec in self.tensors(case, precision).values()), flops=4 * case.rows * case.channels)

    def expression(self, case, precision, tensors):
        import torch

        x = tensors["x"].float()
        torch.mul(x * tensors["g"], torch.rsqrt(x.square().mean(1, keepdim=True) + EPSILON), out=tensors["y"])


WORKLOADS = (RmsNorm(),)
