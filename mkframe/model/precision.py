"""Precisions: contracts over the dtypes of every tensor and every step."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_PROSE = {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64", "int32": "INT32", "int64": "INT64"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """A contract: what every tensor is stored in and every product accumulates in.

    `products` says how the operands enter a product: as they are stored ("exact") or rounded to TF32 ("tf32").
    An engine that stores or accumulates in anything else computes another benchmark.
    """

    id: str
    input: str
    weight: str
    hidden: str
    accumulate: str
    bias: str
    output: str
    products: str

    def describe(self) -> str:
        """One line of prose that begins with the contract's id in capitals, as the report's `precision` key wants it."""
        prose = _PROSE
        operands = "input/weights" if self.products == "exact" else f"products of {prose[self.input]} input/weights"
        return (
            f"{self.id.upper()} {operands}; {prose[self.hidden]} hidden state; "
            f"{prose[self.accumulate]} accumulation, {prose[self.bias]} bias and {prose[self.output]} output"
        )


def _contract(name: str, narrow: str, products: str = "exact") -> Precision:
    return Precision(
        id=name, input=narrow, weight=narrow, hidden=narrow, accumulate="float32", bias="float32", output="float32", products=products
    )


PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        "fp16": _contract("fp16", "float16"),
        "bf16": _contract("bf16", "bfloat16"),
        "fp32": _contract("fp32", "float32"),
        "tf32": _contract("tf32", "float32", products="tf32"),
    }
)
