"""One case, drawn: inputs and weights on the host, and what is right for each input that the checks use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from mkframe.check import mutants
from mkframe.check.buffers import Specs, allocate, fill, names_of, read_back
from mkframe.errors import WorkloadError
from mkframe.model.precision import Precision
from mkframe.model.tensors import Role
from mkframe.plugin.answers import check_acceptance, check_tensors, check_tolerance, shown
from mkframe.plugin.asking import failing_as
from mkframe.plugin.contract import ContractBreach
from mkframe.plugin.workload import Acceptance, Arrays, Workload

T = TypeVar("T")

FRESH_SEED_OFFSET = 1_000_003
"""The fresh draw of a case uses its seed plus this."""
_WIDEST_BYTES = 8

BASE, NEGATED, FRESH, OTHER = "base", "negated", "fresh", "other"
"""Variants of the input. OTHER is one more fresh draw, for protocols that rotate over distinct data."""
ROTATION = (BASE, NEGATED, FRESH, OTHER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One set of inputs and what is right for it. `stored`: host tensors in the contract's dtypes; `values`: the same numbers
    as float64 or int64 arrays; `reference`: the right outputs."""

    stored: dict[str, torch.Tensor]
    values: Arrays
    reference: Arrays


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseData:
    """Everything that the engines of one case share. Weights are the same in every variant: an engine may pack them."""

    workload: Workload
    case: Any
    precision: Precision
    specs: Specs
    variants: dict[str, Variant]

    @property
    def dynamic(self) -> tuple[str, ...]:
        return names_of(self.specs, Role.INPUT)

    @property
    def outputs(self) -> tuple[str, ...]:
        return names_of(self.specs, Role.OUTPUT)

    def judge(self, outputs: Arrays, variant: str) -> Acceptance:
        """Compares outputs with what is right for a variant. Raises WorkloadError where the workload gives no Acceptance."""
        right = self.variants[variant]
        return _answer(
            self.workload,
            "accepts()",
            check_acceptance,
            self.workload.accepts,
            self.case,
            self.precision,
            right.values,
            outputs,
            right.reference,
        )


def draw_case(workload: Workload, case: Any, precision: Precision, seed: int, *, rotation: bool = False) -> CaseData:
    """Draws a case on the CPU, computes its references, and makes sure that the workload rejects every mutant of them.
    `rotation` adds the variant OTHER.

    Raises WorkloadError where a mutant passes, where a second draw with the same seed gives other values, or where draw,
    reference, tolerance or accepts fail or do not give what they should.
    """
    specs = _answer(workload, "tensors()", check_tensors, workload.tensors, case, precision)
    given = names_of(specs, Role.INPUT, Role.WEIGHT)
    base = _drawn_twice(workload, case, seed, specs, given)
    fresh = _stored(specs, _drawn(workload, case, seed + FRESH_SEED_OFFSET, specs, given), given)
    dynamic = names_of(specs, Role.INPUT)
    negated = {**base, **{name: -base[name] for name in dynamic if base[name].is_floating_point()}}
    weights = {name: base[name] for name in given if name not in dynamic}
    drawn = {BASE: base, NEGATED: negated, FRESH: fresh}
    if rotation:
        drawn[OTHER] = _stored(specs, _drawn(workload, case, seed + 2 * FRESH_SEED_OFFSET, specs, given), given)
    variants = {name: _variant(workload, case, precision, {**stored, **weights}, specs) for name, stored in drawn.items()}
    data = CaseData(workload=workload, case=case, precision=precision, specs=specs, variants=variants)
    _check_mutants(data)
    return data


def more_inputs(data: CaseData, seed: int) -> dict[str, torch.Tensor]:
    """The inputs of one more draw, stored on the host; nothing is known of what is right for them. Raises WorkloadError."""
    return _stored(data.specs, _drawn(data.workload, data.case, seed, data.specs, data.dynamic), data.dynamic)


def _check_mutants(data: CaseData) -> None:
    workload, right = data.workload, data.variants[BASE]
    _answer(workload, "tolerance()", check_tolerance, workload.tolerance, data.precision)
    data.judge(right.reference, BASE)  # whether `accepts` answers at all
    with failing_as(WorkloadError, f"workload {workload.id}: accepts()"):
        alive = mutants.survivors(workload, data.case, data.precision, right.values, right.reference, data.variants[FRESH].reference)
    if alive:
        raise WorkloadError(
            f"workload {workload.id} accepts wrong outputs ({', '.join(alive)}); its acceptance rule cannot check an engine"
        )


def _drawn_twice(workload: Workload, case: Any, seed: int, specs: Specs, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """Every process draws for itself: were the values not the seed's alone, the processes of a run would measure different data.
    The stored values are compared, bit for bit: a workload may hand out the same array again with other contents."""
    first = _stored(specs, _drawn(workload, case, seed, specs, names), names)
    again = _stored(specs, _drawn(workload, case, seed, specs, names), names)
    for name in names:
        if not torch.equal(first[name].reshape(-1).view(torch.uint8), again[name].reshape(-1).view(torch.uint8)):
            raise WorkloadError(f"workload {workload.id}: draw gives other values for the same seed ({name}); draw from PCG64(seed) alone")
    return first


def _drawn(workload: Workload, case: Any, seed: int, specs: Specs, names: tuple[str, ...]) -> Arrays:
    """What the workload draws, every array of the announced shape and of a type that can be stored."""
    with failing_as(WorkloadError, f"workload {workload.id}: draw()"):
        drawn: Any = workload.draw(case, seed)
    if not isinstance(drawn, Mapping):
        raise WorkloadError(f"workload {workload.id}: draw must return names and arrays, not {shown(drawn)}")
    for name in names:
        array: Any = drawn.get(name)
        shape = None if name not in drawn else np.shape(array) if isinstance(array, np.ndarray) else shown(array)
        if shape != specs[name].shape:
            raise WorkloadError(f"workload {workload.id}: draw gives {name} the shape {shape}, tensors announces {specs[name].shape}")
        if array.dtype.kind not in "fiu" or array.dtype.itemsize > _WIDEST_BYTES or not array.dtype.isnative:
            raise WorkloadError(f"workload {workload.id}: draw gives {name} the dtype {array.dtype}; give float32 or integers")
    return drawn


def _stored(specs: Specs, drawn: Arrays, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    tensors = allocate({name: specs[name] for name in names}, torch.device("cpu"))
    fill(tensors, drawn, names)
    return tensors


def _variant(workload: Workload, case: Any, precision: Precision, stored: dict[str, torch.Tensor], specs: Specs) -> Variant:
    values = read_back(stored, tuple(stored))
    with failing_as(WorkloadError, f"workload {workload.id}: reference()"):
        found: Any = workload.reference(case, precision, values)
    if not isinstance(found, Mapping):
        raise WorkloadError(f"workload {workload.id}: reference must return names and arrays, not {shown(found)}")
    outputs = names_of(specs, Role.OUTPUT)
    for name in found:
        if name not in outputs:
            raise WorkloadError(f"workload {workload.id}: the reference gives {name}, which is no output; there are: {', '.join(outputs)}")
    for name in outputs:
        wrong = "missing" if name not in found else _wrong_with(found[name], specs[name].shape)
        if wrong:
            raise WorkloadError(f"workload {workload.id}: the reference of {name} is {wrong}")
    return Variant(stored=stored, values=values, reference={name: np.asarray(found[name]) for name in outputs})


def _wrong_with(found: Any, shape: tuple[int, ...]) -> str | None:
    """What keeps an array from being a reference, or None."""
    if not isinstance(found, np.ndarray | np.generic):
        return f"{shown(found)}, not a numpy array"
    if found.shape != shape:
        return f"of shape {found.shape}, tensors announces {shape}"
    if found.dtype.kind == "c":
        return "complex; give its real outputs"
    if found.dtype.kind not in "fiu":
        return f"of dtype {found.dtype}; give float64, or int64 for integers"
    return None if np.all(np.isfinite(found)) else "not finite"


def _answer(workload: Workload, what: str, check: Callable[[Any], T], question: Callable[..., Any], *arguments: Any) -> T:
    """Asks the workload and checks what it says. Raises WorkloadError."""
    whose = f"workload {workload.id}: {what}"
    with failing_as(WorkloadError, whose):
        found = question(*arguments)
    try:
        return check(found)
    except ContractBreach as breach:
        raise WorkloadError(f"{whose} {breach}") from breach
