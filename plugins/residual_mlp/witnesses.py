"""A chain of blocks: whether a row is as far from the reference as correct computations of it are.

After a few blocks no search can follow the roundings: one flip moves every later value, and so the next ones flip. But the
size of what they do can be measured. A witness is the reference chain with, in every sum, an error of the size that a
float32 summation makes, and the contract's roundings after it: one more correct computation, drawn at random.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mkframe.plugin import Precision, Tolerance, deviations, round_to
from mkframe_plugins.residual_mlp.chain import Array, Block, output_of

WITNESSES = 16
SEED = 5
SUM_UNITS = 4.0  # a witness errs by at most this many float32 roundings of |a| |b| in a sum; see _disturbed
MARGIN = 2.0
MIN_SPREAD = 0.125  # see spread
MIN_OTHERS = 4
MAX_ELEMENTS = 2**24  # of what the witnesses of one chunk of rows hold at a time


def explain(
    precision: Precision, x: Array, chain: Sequence[Block], output: Array, reference: Array, tolerance: Tolerance
) -> NDArray[np.bool_]:
    """For every row of x, output and reference, each (rows, channels): whether its deviation is that of a correct computation.

    Its largest and its root-mean-square deviation are at most MARGIN times the largest among the witnesses of that row, and
    it is spread over the row, as every rounding inside a block is by the products after it. No row passes where more rows
    are beyond tolerance than in any witness: an engine that rounds more than the contract does so everywhere.
    """
    _, beyond = deviations(output, reference, tolerance)
    finite = np.asarray(np.isfinite(output).all(axis=1))
    output = np.where(finite[:, np.newaxis], output, reference)
    generator = np.random.Generator(np.random.PCG64(SEED))
    explained = np.zeros(len(x), dtype=np.bool_)
    rows_beyond = np.zeros(WITNESSES, dtype=np.int64)
    width = max(sum(block.w1.shape) for block in chain)
    step = max(1, MAX_ELEMENTS // (WITNESSES * width))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        seen = witnesses(precision, x[rows], chain, generator)
        usual = np.abs(seen - reference[rows])
        deviation = np.abs(output[rows] - reference[rows])
        rows_beyond += (usual > tolerance.atol + tolerance.rtol * np.abs(reference[rows])).any(axis=-1).sum(axis=1)
        explained[rows] = (
            (deviation.max(axis=-1) <= MARGIN * usual.max(axis=(0, -1)))
            & (_rms(deviation) <= MARGIN * _rms(usual).max(axis=0))
            & spread(deviation, reference[rows])
        )
    if np.count_nonzero(beyond.any(axis=1)) > rows_beyond.max():
        explained[:] = False
    return explained & finite


def witnesses(precision: Precision, x: Array, chain: Sequence[Block], generator: np.random.Generator) -> Array:
    """WITNESSES correct outputs of every row, (WITNESSES, rows, channels)."""
    rows = len(x)
    x = np.tile(x, (WITNESSES, 1))
    y = x
    for index, block in enumerate(chain):
        if index:
            x = round_to(y, precision.input)
        exact = x @ block.w1 + block.b1
        h = round_to(np.maximum(_disturbed(exact, x, block.w1, precision, generator), 0.0), precision.hidden)
        y = np.maximum(_disturbed(output_of(h, x, block), h, block.w2, precision, generator), 0.0)
    return y.reshape(WITNESSES, rows, -1)


def spread(deviation: Array, reference: Array) -> NDArray[np.bool_]:
    """Whether the deviation of a row is shared by its elements that relu leaves alive.

    The narrowest disturbance that a chain can have is one element of the last block's x. It reaches every other element
    through W1 and W2 with a root mean square of (2 channels)^-1/2 of its own size; MIN_SPREAD channels^-1/2 is demanded.
    Rows with fewer than MIN_OTHERS such elements show no pattern and are let through.
    """
    channels = deviation.shape[1]
    worst = np.argmax(deviation, axis=1)
    others = reference > 0.0
    others[np.arange(len(others)), worst] = False
    count = others.sum(axis=1)
    rms = np.sqrt(np.square(deviation * others).sum(axis=1) / np.maximum(count, 1))
    shared: NDArray[np.bool_] = rms >= MIN_SPREAD * channels**-0.5 * deviation.max(axis=1)
    shared |= count < MIN_OTHERS
    return shared


def _disturbed(exact: Array, a: Array, b: Array, precision: Precision, generator: np.random.Generator) -> Array:
    """exact plus a uniform error of at most SUM_UNITS 2^-24 |a| |b| (norms of row and column); with TF32 products as much again
    as the roundings of their operands, 2^-11 each, make: independent, so 2^-10 |a| |b| / sqrt(terms) covers two deviations."""
    unit = SUM_UNITS * 2.0**-24
    if precision.products == "tf32":
        unit += 2.0**-10 / np.sqrt(len(b))
    size = unit * np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    disturbed: Array = exact + size * generator.uniform(-1.0, 1.0, exact.shape)
    return disturbed


def _rms(values: Array) -> Array:
    result: Array = np.sqrt(np.square(values).mean(axis=-1))
    return result
