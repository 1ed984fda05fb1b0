"""One block: whether a few h, rounded to their other neighbour, explain a row that is beyond tolerance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mkframe.plugin import Precision, Tolerance, round_to, spacing_of
from mkframe_plugins.residual_mlp.chain import Array, Block, hidden_of, output_of

MAX_FLIPS = 4
UNIT = 2.0**-24  # the relative error of one float32 rounding
CHUNK_ROWS = 64
MAX_UNEXPLAINED = 16  # by then the cell has failed: the other rows beyond tolerance are not examined, and not excused


def explain(precision: Precision, x: Array, block: Block, output: Array, tolerance: Tolerance) -> NDArray[np.bool_]:
    """For every row of x and output, both (rows, channels): whether at most MAX_FLIPS of its h, each within `reach` of a
    rounding boundary, when flipped bring every element of the row within tolerance, and the row as a whole nearer."""
    explained = np.zeros(len(x), dtype=np.bool_)
    for start in range(0, len(x), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        explained[rows] = _explain_chunk(precision, x[rows], block, output[rows], tolerance)
        if np.count_nonzero(~explained[: rows.stop]) >= MAX_UNEXPLAINED:
            break
    return explained


def _explain_chunk(precision: Precision, x: Array, block: Block, output: Array, tolerance: Tolerance) -> list[bool]:
    exact = hidden_of(x, block)
    rounded = round_to(exact, precision.hidden)
    z = output_of(rounded, x, block)
    change, near = flips(exact, rounded, reach(x, block), precision.hidden)
    low, high = interval(output, tolerance)
    explained = []
    for row in range(len(x)):
        which = np.flatnonzero(near[row])
        puzzle = _Row(output=output[row], low=low[row], high=high[row], change=change[row, which], which=which, w2=block.w2)
        explained.append(puzzle.solvable(z[row]))
    return explained


def reach(x: Array, block: Block) -> Array:
    """How far float32 sums of any order can be from x W1 + b1: (channels + 1) 2^-24 (|x| |W1| + |b1|), (rows, hidden)."""
    far: Array = (x.shape[1] + 1) * UNIT * (np.abs(x) @ np.abs(block.w1) + np.abs(block.b1))
    return far


def flips(exact: Array, rounded: Array, distance: Array, dtype: str) -> tuple[Array, NDArray[np.bool_]]:
    """For every h: what its rounding to the neighbour on the other side of `exact` adds to it, and whether the midpoint of
    the two, the boundary, is within `distance` of `exact`.

    Below a power of two the neighbours are half as far apart as above it, and never nearer than two subnormals. What relu
    made zero is no candidate: the smallest subnormal that it could become changes nothing that a tolerance sees.
    """
    above = spacing_of(rounded, dtype)
    below = spacing_of(rounded - above / 2, dtype)
    change = np.where(exact >= rounded, above, -below)
    return change, (exact > 0.0) & (np.abs(rounded + change / 2 - exact) <= distance)


def interval(output: Array, tolerance: Tolerance) -> tuple[Array, Array]:
    """The z with |output - relu(z)| <= atol + rtol relu(z), element by element, as lowest and highest."""
    low = (output - tolerance.atol) / (1.0 + tolerance.rtol)
    high = (output + tolerance.atol) / (1.0 - tolerance.rtol)
    return np.where(low > 0.0, low, -np.inf), np.where(high >= 0.0, high, -np.inf)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """One row: its output, the interval for z, and the candidates: what each adds to its h, and which h that is."""

    output: Array
    low: Array
    high: Array
    change: Array
    which: NDArray[np.intp]
    w2: Array

    def solvable(self, z: Array) -> bool:
        return self._search(z, np.ones(len(self.which), dtype=np.bool_), MAX_FLIPS, self._squared_error(z))

    def _search(self, z: Array, free: NDArray[np.bool_], left: int, before: float) -> bool:
        """Complete over all subsets of at most `left` free candidates: of any solution, one flip takes the worst element
        at least its share of the way, so that only such flips need to be tried next."""
        lack = np.where(z < self.low, self.low - z, np.where(z > self.high, self.high - z, 0.0))
        worst = int(np.argmax(np.abs(lack)))
        if lack[worst] == 0.0:
            return self._squared_error(z) < before
        if left == 0:
            return False
        gain = self.change * self.w2[self.which, worst] * np.sign(lack[worst])
        for k in np.flatnonzero(free & (gain >= abs(lack[worst]) / left)):
            rest = free.copy()
            rest[k] = False
            if self._search(z + self.change[k] * self.w2[self.which[k]], rest, left - 1, before):
                return True
        return False

    def _squared_error(self, z: Array) -> float:
        return float(np.square(np.maximum(z, 0.0) - self.output).sum())
