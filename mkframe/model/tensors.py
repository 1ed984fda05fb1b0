"""Shapes and dtypes of the tensors of a case, before any of them is allocated."""

from dataclasses import dataclass
from enum import StrEnum
from math import prod

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8}


class Role(StrEnum):
    """Who writes a tensor, and when.

    INPUT changes between calls; WEIGHT is fixed once an engine is bound (an engine may pack it then);
    OUTPUT and SCRATCH are written by the engine and poisoned by the framework.
    """

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"
    SCRATCH = "scratch"


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorSpec:
    """A contiguous row-major tensor: `shape` in elements, `dtype` as numpy and torch name it."""

    shape: tuple[int, ...]
    dtype: str
    role: Role

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * ITEM_BYTES[self.dtype]
