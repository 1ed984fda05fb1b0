"""residual_mlp computed in float32 the way kernels do it, by means of its own: several orders of summation, and mistakes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mkframe.model.precision import PRECISIONS, Precision
from mkframe_plugins.residual_mlp.workload import MlpCase, ResidualMlp

WORKLOAD = ResidualMlp()
F32 = np.float32
Product = Callable[[Any, Any], Any]


def bfloat16(values: Any) -> Any:
    """float32 values rounded to bfloat16 (ties to even) in their bit patterns, kept as float32. Finite values only."""
    bits = np.asarray(values, dtype=F32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)).view(F32)


def narrow(values: Any, dtype: str) -> Any:
    """float32 values rounded to `dtype` once, kept as float32."""
    return {"float16": lambda v: v.astype(np.float16).astype(F32), "bfloat16": bfloat16, "float32": lambda v: v}[dtype](values)


def blas(a: Any, b: Any) -> Any:
    return a @ b


def sequential(a: Any, b: Any) -> Any:
    total = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        total += a[:, k, None] * b[k]
    return total


def backwards(a: Any, b: Any) -> Any:
    return sequential(a[:, ::-1], b[::-1])


def pairwise(a: Any, b: Any) -> Any:
    half = a.shape[1] // 2
    return a * b if half == 0 else pairwise(a[:, :half], b[:half]) + pairwise(a[:, half:], b[half:])


def split_k(a: Any, b: Any) -> Any:
    parts = [sequential(a[:, part::4], b[part::4]) for part in range(4)]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


ORDERS: Mapping[str, Product] = {"blas": blas, "sequential": sequential, "backwards": backwards, "pairwise": pairwise, "split-k": split_k}


def half_output(a: Any, b: Any) -> Any:
    """The mistake to be caught: a product that ends in float16."""
    return (a @ b).astype(np.float16).astype(F32)


def case(rows: int, channels: int, hidden: int, depth: int = 1) -> MlpCase:
    return MlpCase(rows=rows, channels=channels, hidden=hidden, depth=depth)


def inputs(shape: MlpCase, precision: Precision, seed: int) -> dict[str, Any]:
    """What a device sees, as float64."""
    specs, drawn = WORKLOAD.tensors(shape, precision), WORKLOAD.draw(shape, seed)
    return {name: narrow(values, specs[name].dtype).astype(np.float64) for name, values in drawn.items()}


def compute(values: Mapping[str, Any], precision: Precision, product: Product = blas) -> Any:
    """y (rows, channels) as float64, all of it computed in float32."""
    deep = values["W1"].ndim == 3
    stacked = {name: value.astype(F32) if deep else value.astype(F32)[None] for name, value in values.items() if name != "x"}
    y = x = values["x"].astype(F32)
    for block, w1 in enumerate(stacked["W1"]):
        x = narrow(y, precision.input) if block else x
        h = narrow(np.maximum(product(x, w1) + stacked["b1"][block], F32(0)), precision.hidden)
        y = np.maximum(product(h, stacked["W2"][block]) + stacked["b2"][block] + x, F32(0))
    return y.astype(np.float64)


def judged(shape: MlpCase, precision_id: str, values: Mapping[str, Any], y: Any) -> Any:
    """The workload's Acceptance of y."""
    precision = PRECISIONS[precision_id]
    return WORKLOAD.accepts(shape, precision, values, {"y": y}, WORKLOAD.reference(shape, precision, values))
