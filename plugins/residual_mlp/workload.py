"""The workload residual_mlp: a chain of `depth` residual two-layer perceptrons, each row by itself.

    h = hidden( relu( f32acc(x W1) + b1 ) )
    y = relu( f32acc(h W2) + b2 + x )          the next block's x is input(y)

`hidden(.)` and `input(.)` round to the contract's dtype, once. With depth 1 the weights are plain matrices; with a greater
depth every weight and bias has a leading axis of that length.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from mkframe.plugin import Acceptance, Cost, Defaults, Precision, Role, TensorSpec, Tolerance, Workload
from mkframe_plugins.residual_mlp import acceptance
from mkframe_plugins.residual_mlp.chain import Arrays, run

TOLERANCES: Mapping[str, Tolerance] = MappingProxyType(
    {
        "fp16": Tolerance(rtol=3e-4, atol=3e-4),
        "bf16": Tolerance(rtol=3e-4, atol=3e-4),
        "fp32": Tolerance(rtol=1e-4, atol=1e-5),
        "tf32": Tolerance(rtol=2e-3, atol=2e-3),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MlpCase:
    """One shape: x is rows x channels, W1 channels x hidden, W2 hidden x channels, in `depth` blocks."""

    rows: int
    channels: int
    hidden: int
    depth: int = 1

    def __post_init__(self) -> None:
        for name in self.__slots__:
            size = getattr(self, name)
            assert type(size) is int, f"{name} must be an integer, not {size!r}"
            assert size >= 1, f"{name} must be at least 1, not {size}"


class ResidualMlp(Workload):
    """The workload; the formulas stand in the module's docstring."""

    id = "residual_mlp"
    Case = MlpCase
    precisions = ("fp16", "bf16", "fp32", "tf32")
    defaults = Defaults(engines=("persistent",), shapes=("smoke",), precision="fp16")
    eager_id = "torch-cublas"

    def tensors(self, case: MlpCase, precision: Precision) -> dict[str, TensorSpec]:
        """x (rows, channels); W1 (channels, hidden), b1 (hidden,), W2 (hidden, channels), b2 (channels,), each with a
        leading axis `depth` where that is not 1; y (rows, channels)."""
        blocks = () if case.depth == 1 else (case.depth,)
        rows, channels, hidden = case.rows, case.channels, case.hidden

        def weight(*shape: int, dtype: str) -> TensorSpec:
            return TensorSpec(shape=(*blocks, *shape), dtype=dtype, role=Role.WEIGHT)

        return {
            "x": TensorSpec(shape=(rows, channels), dtype=precision.input, role=Role.INPUT),
            "W1": weight(channels, hidden, dtype=precision.weight),
            "b1": weight(hidden, dtype=precision.bias),
            "W2": weight(hidden, channels, dtype=precision.weight),
            "b2": weight(channels, dtype=precision.bias),
            "y": TensorSpec(shape=(rows, channels), dtype=precision.output, role=Role.OUTPUT),
        }

    def draw(self, case: MlpCase, seed: int) -> Arrays:
        """float32 arrays: x ~ N(0, 1), W ~ N(0, 1/fan_in), b ~ 0.1 N(0, 1), in the order x, W1, b1, W2, b2."""
        generator = np.random.Generator(np.random.PCG64(seed))
        blocks = () if case.depth == 1 else (case.depth,)

        def normal(*shape: int, scale: float = 1.0) -> np.ndarray[Any, np.dtype[np.float32]]:
            return generator.standard_normal(shape, dtype=np.float32) * np.float32(scale)

        return {
            "x": normal(case.rows, case.channels),
            "W1": normal(*blocks, case.channels, case.hidden, scale=case.channels**-0.5),
            "b1": normal(*blocks, case.hidden, scale=0.1),
            "W2": normal(*blocks, case.hidden, case.channels, scale=case.hidden**-0.5),
            "b2": normal(*blocks, case.channels, scale=0.1),
        }

    def reference(self, case: MlpCase, precision: Precision, inputs: Arrays) -> Arrays:
        """y in float64; h is rounded to the hidden dtype and x to the input dtype between blocks, each in one step."""
        return {"y": run(precision, inputs)}

    def tolerance(self, precision: Precision) -> Tolerance:
        return TOLERANCES[precision.id]

    def accepts(self, case: MlpCase, precision: Precision, inputs: Arrays, outputs: Arrays, reference: Arrays) -> Acceptance:
        """Every element within tolerance, except in rows that a few roundings at a boundary explain: see acceptance.py."""
        return acceptance.accepts(precision, inputs, outputs["y"], reference["y"], self.tolerance(precision))

    def cost(self, case: MlpCase, precision: Precision) -> Cost:
        """Every tensor once; two operations per multiply-add of the two products (biases and relu are not counted)."""
        size = sum(spec.bytes for spec in self.tensors(case, precision).values())
        return Cost(bytes=size, flops=4 * case.rows * case.channels * case.hidden * case.depth)

    def expression(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any]) -> None:
        """The blocks as torch operators. Products of half operands accumulate and end in float32: on CUDA by `out_dtype`,
        on a CPU, which lacks it, by converting the operands first. So also when torch.compile meets a size of 1 on CUDA:
        inductor then replaces the product by multiply and sum, and loses `out_dtype` on the way (torch 2.11 to 2.13)."""
        import torch

        x, y = tensors["x"], tensors["y"]
        hidden, narrow = getattr(torch, precision.hidden), precision.input != "float32"
        convert = not x.is_cuda or (torch.compiler.is_compiling() and 1 in (case.rows, case.channels, case.hidden))

        def product(a: Any, b: Any) -> Any:
            if not narrow:
                return torch.mm(a, b)
            return torch.mm(a.float(), b.float()) if convert else torch.mm(a, b, out_dtype=torch.float32)

        for block in range(case.depth):
            w1, b1, w2, b2 = (tensors[name] if case.depth == 1 else tensors[name][block] for name in ("W1", "b1", "W2", "b2"))
            h = product(x, w1).add_(b1).relu_().to(hidden)
            z = product(h, w2).add_(b2).add_(x)
            if block == case.depth - 1:
                torch.clamp(z, min=0, out=y)
            else:
                x = z.relu_().to(x.dtype)


WORKLOADS = (ResidualMlp(),)
