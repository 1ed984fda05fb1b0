"""When an output of residual_mlp is right: the rounding rule. docs/workloads/residual_mlp.md has the measurement behind it.

The order of a float32 sum may move h across a rounding boundary, the midpoint of two neighbours of the hidden dtype. The
whole row then differs from the reference, though nothing is wrong. A row with elements beyond tolerance is therefore
excused, and counted as a rounding row, if at most MAX_FLIPS of its h, each near enough to a boundary, rounded to their
other neighbour bring every element of the row within tolerance.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkframe.plugin import Acceptance, Precision, Tolerance, round_to
from mkframe.plugin.workload import deviations, elementwise, spacing_of
from mkframe_plugins.residual_mlp.chain import Array, Arrays, Block, blocks, hidden_of, output_of

MAX_FLIPS = 4
UNIT = 2.0**-24  # half the distance from 1 to the next float32, the unit of every rounding in a float32 sum


@dataclass(frozen=True, kw_only=True, slots=True)
class Flips:
    """Candidates of one row: effect (n, channels) on the output before relu, if h rounds to its other neighbour."""

    effect: Array


def accepts(precision: Precision, inputs: Arrays, output: NDArray[Any], reference: Array, tolerance: Tolerance) -> Acceptance:
    """Compares y (rows, channels) with the reference; `inputs` hold what the device saw, as float64."""
    plain = elementwise({"y": output}, {"y": reference}, tolerance)
    if plain.passed or precision.hidden == "float32":
        return plain
    _, beyond = deviations(output, reference, tolerance)
    suspects = np.flatnonzero(beyond.any(axis=1))
    excused = [row for row in suspects if np.isfinite(output[row]).all() and explained(precision, inputs, row, output[row], tolerance)]
    left = plain.violations - int(np.count_nonzero(beyond[excused]))
    return replace(plain, violations=left, rounding_rows=len(excused))


def explained(precision: Precision, inputs: Arrays, row: int, output: Array, tolerance: Tolerance) -> bool:
    """Whether a few flips bring the row within tolerance."""
    (block,) = blocks(inputs)
    x = np.asarray(inputs["x"], dtype=np.float64)[row]
    exact = hidden_of(x, block)
    h = round_to(exact, precision.hidden)
    change, near = boundary(exact, h, bound(x, block), precision.hidden)
    effect = change[near, None] * block.w2[near]
    z = output_of(h, x, block)
    low, high = interval(output, tolerance)
    return search(z, effect, low, high, MAX_FLIPS)


def bound(x: Array, block: Block) -> Array:
    """How far any order of a float32 sum can be from x W1 + b1: (channels + 1) 2^-24 (sum |x W1| + |b1|), (hidden,)."""
    return (len(x) + 1) * UNIT * (np.abs(x) @ np.abs(block.w1) + np.abs(block.b1))


def boundary(exact: Array, rounded: Array, reach: Array, dtype: str) -> tuple[Array, NDArray[np.bool_]]:
    """For every value: the change if it rounds to its other neighbour, and whether the midpoint lies within reach."""
    step = spacing_of(exact, dtype)
    other = np.where(exact >= rounded, rounded + step, rounded - step)
    near = np.abs((rounded + other) / 2 - exact) <= reach
    return other - rounded, near


def interval(output: Array, tolerance: Tolerance) -> tuple[Array, Array]:
    """The z with |output - relu(z)| <= atol + rtol relu(z), element by element, as lowest and highest."""
    low = (output - tolerance.atol) / (1.0 + tolerance.rtol)
    high = (output + tolerance.atol) / (1.0 - tolerance.rtol)
    return np.where(low > 0.0, low, -np.inf), np.where(high >= 0.0, high, -np.inf)


def search(z: Array, effect: Array, low: Array, high: Array, flips: int) -> bool:
    """Whether at most `flips` rows of `effect`, added to z, bring every element into [low, high].

    Complete: of any solution, one flip must take the worst element at least its share of the way.
    """
    lack = np.where(z < low, low - z, np.where(z > high, high - z, 0.0))
    worst = int(np.argmax(np.abs(lack)))
    if lack[worst] == 0.0:
        return True
    if flips == 0:
        return False
    helps = effect[:, worst] * np.sign(lack[worst]) >= abs(lack[worst]) / flips
    for k in np.flatnonzero(helps):
        if search(z + effect[k], np.delete(effect, k, axis=0), low, high, flips - 1):
            return True
    return False
