"""Buffers, poison, mutants and drawn cases, on a small workload of the test's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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


class Scripted(Doubling):
    """Changes what draw, reference, accepts or tolerance give; an exception is raised."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def _changed(self, question: str, answer: Any) -> Any:
        return self.changes[question](answer) if question in self.changes else answer

    def draw(self, case: Case, seed: int) -> Any:
        return self._changed("draw", super().draw(case, seed))

    def reference(self, case: Case, precision: Any, inputs: Mapping[str, Any]) -> Any:
        return self._changed("reference", super().reference(case, precision, inputs))

    def accepts(self, *arguments: Any) -> Any:
        return self._changed("accepts", super().accepts(*arguments))

    def tolerance(self, precision: Any) -> Any:
        return self._changed("tolerance", super().tolerance(precision))


def with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda answer: {**answer, name: change(answer[name])}


def without(name: str) -> Callable[[Any], Any]:
    return lambda answer: {key: value for key, value in answer.items() if key != name}


def fails(_: Any) -> Any:
    raise SystemExit("no")


def infinite(array: Any) -> Any:
    array[0, 0] = np.inf
    return array


@pytest.mark.parametrize(
    ("question", "change", "message"),
    [
        ("draw", fails, "draw() failed: SystemExit: no"),
        ("draw", lambda _: None, "draw must return names and arrays, not None"),
        ("draw", without("w"), "draw gives w the shape None, tensors announces (5, 7)"),
        ("draw", with_array("w", lambda _: np.zeros(3, dtype=np.float32)), "draw gives w the shape (3,), tensors announces (5, 7)"),
        ("draw", with_array("w", lambda array: array.tolist()), "draw gives w the shape list, tensors announces (5, 7)"),
        ("draw", with_array("w", lambda array: array.astype(complex)), "draw gives w the dtype complex128; give float32 or integers"),
        ("draw", with_array("w", lambda array: array.astype(object)), "draw gives w the dtype object; give float32 or integers"),
        ("draw", with_array("w", lambda array: array.astype(np.longdouble)), "draw gives w the dtype float128; give float32 or integers"),
        ("draw", with_array("w", lambda array: array.astype(">f4")), "draw gives w the dtype >f4; give float32 or integers"),
        ("reference", fails, "reference() failed: SystemExit: no"),
        ("reference", lambda _: None, "reference must return names and arrays, not None"),
        ("reference", without("y"), "the reference of y is missing"),
        ("reference", lambda answer: {**answer, "z": answer["y"]}, "the reference gives z, which is no output; there are: y, positive"),
        ("reference", with_array("y", lambda array: array.T), "the reference of y is of shape (7, 5), tensors announces (5, 7)"),
        ("reference", with_array("y", infinite), "the reference of y is not finite"),
        ("reference", with_array("y", lambda array: array + 0j), "the reference of y is complex; give its real outputs"),
        ("reference", with_array("y", lambda array: array.tolist()), "the reference of y is list, not a numpy array"),
        ("reference", with_array("y", lambda array: array > 0), "the reference of y is of dtype bool; give float64, or int64 for integers"),
        ("tolerance", lambda _: 0.1, "tolerance() must return a Tolerance, not 0.1"),
        ("tolerance", fails, "tolerance() failed: SystemExit: no"),
        ("accepts", lambda _: True, "accepts() must return an Acceptance, not True"),
        ("accepts", fails, "accepts() failed: SystemExit: no"),
        ("accepts", lambda found: replace(found, violations=np.int64(3)), "accepts() gives violations int64; it must be an integer"),
        ("accepts", lambda found: replace(found, elements=-1), "accepts() gives elements -1; it must be an integer"),
        ("accepts", lambda found: replace(found, max_abs_error=float("nan")), "accepts() gives max_abs_error nan; it must be a finite"),
    ],
)
def test_what_a_workload_answers_is_checked(question: str, change: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        draw_case(Scripted(**{question: change}), CASE, FP16, seed=1)
    assert str(caught.value).startswith(f"workload doubling: {message}")


class Refilling(Doubling):
    """Hands out one and the same array, with other contents every time."""

    def __init__(self) -> None:
        self.arrays = super().draw(CASE, 0)

    def draw(self, case: Case, seed: int) -> dict[str, Any]:
        self.arrays["w"] += 1
        return self.arrays


class Unseeded(Doubling):
    def draw(self, case: Case, seed: int) -> dict[str, Any]:
        return {**super().draw(case, seed), "w": np.random.default_rng().standard_normal((case.rows, case.columns), dtype=np.float32)}


@pytest.mark.parametrize("workload", [Refilling(), Unseeded()])
def test_values_must_be_the_seeds_alone(workload: Workload) -> None:
    with pytest.raises(WorkloadError, match=r"^workload doubling: draw gives other values for the same seed \(w\)"):
        draw_case(workload, CASE, FP16, seed=1)


def test_warnings_of_a_workload_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def divide(answer: Any) -> Any:
        np.float64(1.0) / np.float64(0.0)
        print("divided")
        return answer

    draw_case(Scripted(reference=divide, draw=divide, accepts=divide), CASE, FP16, seed=1)  # warnings are errors here
    out, err = capsys.readouterr()
    assert out == ""
    assert set(err.split()) == {"divided"}
