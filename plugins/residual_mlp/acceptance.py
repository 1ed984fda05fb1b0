"""When an output of residual_mlp is right. docs/workloads/residual_mlp.md has the measurements behind both rules.

Every element must be within tolerance of the float64 reference, with one excuse for whole rows. The order of a float32 sum
is free, and may move a value across a rounding boundary (the midpoint of two neighbours of the dtype that it is stored in):
that value, and all that is computed from it, then differ from the reference, though nothing is wrong.

One block: few_flips.py asks whether at most four such h explain the row. A chain of blocks: witnesses.py asks whether the
row is as far off as correct computations of it are. Rows that are excused are counted as rounding rows.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkframe.plugin import Acceptance, Precision, Tolerance, deviations, elementwise
from mkframe_plugins.residual_mlp import few_flips, witnesses
from mkframe_plugins.residual_mlp.chain import Array, Arrays, blocks


def accepts(precision: Precision, inputs: Arrays, output: NDArray[Any], reference: Array, tolerance: Tolerance) -> Acceptance:
    """Compares y (rows, channels) with the reference; `inputs` hold what the device saw, as float64."""
    plain = elementwise({"y": output}, {"y": reference}, tolerance)
    chain = tuple(blocks(inputs))
    if plain.passed or (len(chain) == 1 and precision.hidden == "float32"):
        return plain
    _, beyond = deviations(output, reference, tolerance)
    suspects = np.flatnonzero(beyond.any(axis=1) & np.isfinite(output).all(axis=1))
    x = np.asarray(inputs["x"], dtype=np.float64)
    if len(chain) == 1:
        good = few_flips.explain(precision, x[suspects], chain[0], output[suspects], tolerance)
    else:
        good = witnesses.explain(precision, x, chain, output, reference, tolerance)[suspects]
    excused = suspects[good]
    left = plain.violations - int(np.count_nonzero(beyond[excused]))
    return replace(plain, violations=left, rounding_rows=len(excused))
