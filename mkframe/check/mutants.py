"""Wrong answers that a workload must reject: a check that accepts one of them would accept a broken engine."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkframe.model.precision import Precision
from mkframe.plugin.workload import Arrays, Workload

_OFF_BY_TOLERANCES = 4.0


def survivors(workload: Workload, case: Any, precision: Precision, inputs: Arrays, reference: Arrays, previous: Arrays) -> tuple[str, ...]:
    """The names of mutants of `reference` that the workload accepts; empty where it can tell right from wrong.

    `previous` is the right output for other inputs. A mutant that happens to equal the reference is no mutant.
    """
    return tuple(
        f"{kind} {name}"
        for name, kind, mutant in _mutants(workload, precision, reference, previous)
        if not np.array_equal(mutant, reference[name])
        and workload.accepts(case, precision, inputs, {**reference, name: mutant}, reference).passed
    )


def _mutants(workload: Workload, precision: Precision, reference: Arrays, previous: Arrays) -> Iterator[tuple[str, str, NDArray[Any]]]:
    for name, right in reference.items():
        yield name, "zero", np.zeros_like(right)
        yield name, "constant", np.full_like(right, right.mean())
        yield name, "one element off", _one_off(right, workload, precision)
        yield name, "previous output", previous[name]
        if right.ndim >= 2:
            yield name, "transposed", np.ascontiguousarray(np.swapaxes(right, -1, -2)).reshape(right.shape)


def _one_off(right: NDArray[Any], workload: Workload, precision: Precision) -> NDArray[Any]:
    """The middle element moved by four tolerances (an integer by one)."""
    wrong = right.copy()
    flat = wrong.reshape(-1)
    middle = flat.size // 2
    if np.issubdtype(right.dtype, np.integer):
        flat[middle] += 1
    else:
        tolerance = workload.tolerance(precision)
        flat[middle] += _OFF_BY_TOLERANCES * (tolerance.atol + tolerance.rtol * abs(flat[middle]))
    return wrong
