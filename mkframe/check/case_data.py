"""One case, drawn: inputs and weights on the host, and what is right for each input that the checks use."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mkframe.check import mutants
from mkframe.check.buffers import Specs, allocate, fill, names_of, read_back
from mkframe.errors import WorkloadError
from mkframe.model.precision import Precision
from mkframe.model.tensors import Role
from mkframe.plugin.workload import Acceptance, Arrays, Workload

FRESH_SEED_OFFSET = 1_000_003
"""The fresh draw of a case uses its seed plus this."""

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
        """Compares outputs with what is right for a variant."""
        right = self.variants[variant]
        return self.workload.accepts(self.case, self.precision, right.values, outputs, right.reference)


def draw_case(workload: Workload, case: Any, precision: Precision, seed: int, *, rotation: bool = False) -> CaseData:
    """Draws a case on the CPU, computes its references, and makes sure that the workload rejects every mutant of them.
    `rotation` adds the variant OTHER.

    Raises WorkloadError where a mutant passes, or where draw or reference do not give what `tensors` announces.
    """
    specs = workload.tensors(case, precision)
    given = names_of(specs, Role.INPUT, Role.WEIGHT)
    base = _stored(workload, specs, workload.draw(case, seed), given)
    fresh = _stored(workload, specs, workload.draw(case, seed + FRESH_SEED_OFFSET), given)
    dynamic = names_of(specs, Role.INPUT)
    negated = {**base, **{name: -base[name] for name in dynamic if base[name].is_floating_point()}}
    weights = {name: base[name] for name in given if name not in dynamic}
    drawn = {BASE: base, NEGATED: negated, FRESH: fresh}
    if rotation:
        drawn[OTHER] = _stored(workload, specs, workload.draw(case, seed + 2 * FRESH_SEED_OFFSET), given)
    variants = {name: _variant(workload, case, precision, {**stored, **weights}, specs) for name, stored in drawn.items()}
    data = CaseData(workload=workload, case=case, precision=precision, specs=specs, variants=variants)
    right = variants[BASE]
    alive = mutants.survivors(workload, case, precision, right.values, right.reference, variants[FRESH].reference)
    if alive:
        raise WorkloadError(
            f"workload {workload.id} accepts wrong outputs ({', '.join(alive)}); its acceptance rule cannot check an engine"
        )
    return data


def _stored(workload: Workload, specs: Specs, drawn: Arrays, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    for name in names:
        shape = np.shape(drawn[name]) if name in drawn else None
        if shape != specs[name].shape:
            raise WorkloadError(f"workload {workload.id}: draw gives {name} the shape {shape}, tensors announces {specs[name].shape}")
    tensors = allocate({name: specs[name] for name in names}, torch.device("cpu"))
    fill(tensors, drawn, names)
    return tensors


def _variant(workload: Workload, case: Any, precision: Precision, stored: dict[str, torch.Tensor], specs: Specs) -> Variant:
    values = read_back(stored, tuple(stored))
    reference = workload.reference(case, precision, values)
    for name in names_of(specs, Role.OUTPUT):
        found: NDArray[Any] | None = reference.get(name)
        if found is None or found.shape != specs[name].shape or not np.all(np.isfinite(found)):
            raise WorkloadError(f"workload {workload.id}: the reference of {name} is missing, misshapen or not finite")
    return Variant(stored=stored, values=values, reference=reference)
