"""Buffers, poison, mutants and drawn cases, on a small workload of the test's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from mkframe.check import buffers, mutants
from mkframe.check.case_data import BASE, FRESH, NEGATED, draw_case
from mkframe.errors import WorkloadError
from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import Role, TensorSpec
from mkframe.plugin import Cost, Defaults, Tolerance, Workload

FP16 = PRECISIONS["fp16"]
CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Case:
    rows: int
    columns: int


class Doubling(Workload):
    """y = 2 x w, and how many elements of each row are positive."""

    id = "doubling"
    Case = Case
    precisions = ("fp16",)
    defaults = Defaults(engines=("torch-eager",), shapes=("doubling",))
    loose = 1.0

    def tensors(self, case: Case, precision: Any) -> Mapping[str, TensorSpec]:
        shape = (case.rows, case.columns)
        return {
            "x": TensorSpec(shape=shape, dtype="float16", role=Role.INPUT),
            "w": TensorSpec(shape=shape, dtype="float16", role=Role.WEIGHT),
            "y": TensorSpec(shape=shape, dtype="float32", role=Role.OUTPUT),
            "positive": TensorSpec(shape=(case.rows,), dtype="int32", role=Role.OUTPUT),
        }

    def draw(self, case: Case, seed: int) -> dict[str, Any]:
        generator = np.random.Generator(np.random.PCG64(seed))
        return {name: generator.standard_normal((case.rows, case.columns), dtype=np.float32) for name in ("x", "w")}

    def reference(self, case: Case, precision: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        y = 2 * inputs["x"] * inputs["w"]
        return {"y": y, "positive": (y > 0).sum(axis=1)}

    def tolerance(self, precision: Any) -> Tolerance:
        return Tolerance(rtol=1e-6 * self.loose, atol=1e-6 * self.loose)

    def cost(self, case: Case, precision: Any) -> Cost:
        return Cost(bytes=8 * case.rows * case.columns, flops=2 * case.rows * case.columns)

    def expression(self, case: Case, precision: Any, tensors: Mapping[str, Any]) -> None:
        raise NotImplementedError


CASE = Case(rows=5, columns=7)


def test_poison_reaches_outputs_and_scratch_and_nothing_else() -> None:
    specs = {**Doubling().tensors(CASE, FP16), "s": TensorSpec(shape=(3,), dtype="bfloat16", role=Role.SCRATCH)}
    tensors = buffers.allocate(specs, CPU)
    for name in ("x", "w"):
        tensors[name].fill_(1)
    seen = {}
    for pattern in buffers.PATTERNS:
        buffers.poison(tensors, specs, pattern)
        seen[pattern] = {name: tensor.clone() for name, tensor in tensors.items()}
        assert torch.all(tensors["x"] == 1)
        assert torch.all(tensors["w"] == 1)
    assert torch.all(torch.isnan(seen["nan"]["y"]))
    assert torch.all(torch.isnan(seen["nan"]["s"]))
    assert torch.all(torch.isfinite(seen["second"]["y"]))
    for name in ("y", "s", "positive"):
        assert not torch.any(seen["nan"][name] == seen["second"][name])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "int64"])
def test_shifted_buffers_lie_elsewhere_and_keep_their_alignment(dtype: str) -> None:
    spec = {"t": TensorSpec(shape=(4, 3), dtype=dtype, role=Role.OUTPUT)}
    tensor = buffers.allocate(spec, CPU, shifted=True)["t"]
    assert tensor.shape == (4, 3)
    assert tensor.is_contiguous()
    assert tensor.data_ptr() - tensor.untyped_storage().data_ptr() == buffers.SHIFT_BYTES


def test_values_are_rounded_once_to_the_contract() -> None:
    data = draw_case(Doubling(), CASE, FP16, seed=3)
    drawn = Doubling().draw(CASE, 3)
    assert np.array_equal(data.variants[BASE].values["x"], drawn["x"].astype(np.float16).astype(np.float64))


def test_variants_change_the_input_and_keep_the_weights() -> None:
    data = draw_case(Doubling(), CASE, FP16, seed=3)
    base, negated, fresh = (data.variants[name] for name in (BASE, NEGATED, FRESH))
    assert np.array_equal(negated.values["x"], -base.values["x"])
    assert not np.any(fresh.values["x"] == base.values["x"])
    for variant in (negated, fresh):
        assert np.array_equal(variant.values["w"], base.values["w"])
        assert not np.array_equal(variant.reference["y"], base.reference["y"])


def test_same_seed_same_case() -> None:
    one, two = (draw_case(Doubling(), CASE, FP16, seed=3) for _ in range(2))
    assert all(np.array_equal(one.variants[BASE].values[n], two.variants[BASE].values[n]) for n in ("x", "w"))
    other = draw_case(Doubling(), CASE, FP16, seed=4)
    assert not np.array_equal(one.variants[BASE].values["x"], other.variants[BASE].values["x"])


def test_a_workload_that_accepts_wrong_answers_is_refused() -> None:
    workload = Doubling()
    workload.loose = 1e6
    with pytest.raises(WorkloadError, match="accepts wrong outputs"):
        draw_case(workload, CASE, FP16, seed=3)


def test_every_kind_of_mutant_is_made_and_told_apart() -> None:
    data = draw_case(Doubling(), CASE, FP16, seed=3)
    right, other = data.variants[BASE], data.variants[FRESH]
    assert mutants.survivors(data.workload, CASE, FP16, right.values, right.reference, other.reference) == ()

    class Blind(Doubling):
        def accepts(self, *arguments: Any) -> Any:
            return super().accepts(*arguments[:3], arguments[4], arguments[4])

    kinds = {"zero", "constant", "one element off", "previous output"}
    expected = {f"{kind} {name}" for kind in kinds for name in ("y", "positive")} | {"transposed y"}
    assert set(mutants.survivors(Blind(), CASE, FP16, right.values, right.reference, other.reference)) == expected


def test_a_mutant_that_equals_the_reference_is_none() -> None:
    column = Case(rows=1, columns=6)
    data = draw_case(Doubling(), column, FP16, seed=3)  # transposing one row changes nothing
    assert data.variants[BASE].reference["y"].shape == (1, 6)


def test_a_draw_that_breaks_its_announcement_is_refused() -> None:
    class Misshapen(Doubling):
        def draw(self, case: Case, seed: int) -> dict[str, Any]:
            return {**super().draw(case, seed), "w": np.zeros(3, dtype=np.float32)}

    with pytest.raises(WorkloadError, match=r"draw gives w the shape \(3,\)"):
        draw_case(Misshapen(), CASE, FP16, seed=1)


def test_a_reference_that_is_not_finite_is_refused() -> None:
    class Infinite(Doubling):
        def reference(self, case: Case, precision: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
            found = super().reference(case, precision, inputs)
            found["y"][0, 0] = np.inf
            return found

    with pytest.raises(WorkloadError, match="reference of y is not finite"):
        draw_case(Infinite(), CASE, FP16, seed=1)
