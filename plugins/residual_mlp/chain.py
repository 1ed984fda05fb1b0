"""The reference chain in float64, block by block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkframe.plugin import Precision, round_to

Array = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Weights of one block, float64: w1 (channels, hidden), b1 (hidden,), w2 (hidden, channels), b2 (channels,)."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array


def blocks(inputs: Arrays) -> Iterator[Block]:
    """The blocks in order; plain matrices are one block."""
    w1, b1, w2, b2 = (np.asarray(inputs[name], dtype=np.float64) for name in ("W1", "b1", "W2", "b2"))
    if w1.ndim == 2:
        yield Block(w1=w1, b1=b1, w2=w2, b2=b2)
        return
    for index in range(len(w1)):
        yield Block(w1=w1[index], b1=b1[index], w2=w2[index], b2=b2[index])


def hidden_of(x: Array, block: Block) -> Array:
    """relu(x W1 + b1) before its rounding, (rows, hidden)."""
    return np.maximum(x @ block.w1 + block.b1, 0.0)


def output_of(h: Array, x: Array, block: Block) -> Array:
    """h W2 + b2 + x before relu, (rows, channels)."""
    return h @ block.w2 + block.b2 + x


def run(precision: Precision, inputs: Arrays) -> Array:
    """y (rows, channels): float64 throughout, rounded only where the contract rounds."""
    x = np.asarray(inputs["x"], dtype=np.float64)
    y = x
    for index, block in enumerate(blocks(inputs)):
        if index:
            x = round_to(y, precision.input)
        h = round_to(hidden_of(x, block), precision.hidden)
        y = np.maximum(output_of(h, x, block), 0.0)
    return y
