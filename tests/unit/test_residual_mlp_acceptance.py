"""The acceptance rule for one block: correct sums pass in any order, nothing else does."""

from collections.abc import Mapping
from typing import Any

import mlp_sums as sums
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.check import mutants
from mkframe.model.precision import PRECISIONS
from mkframe_plugins.residual_mlp import few_flips
from mkframe_plugins.residual_mlp.chain import blocks

WORKLOAD = sums.WORKLOAD
HALVES = ("fp16", "bf16")
SHAPES = ((33, 32, 64), (129, 31, 47), (257, 64, 128), (1024, 128, 256), (5, 19, 37), (49, 48, 96), (193, 63, 111), (513, 96, 192))


def plant(values: Mapping[str, Any], precision: str, row: int, which: Mapping[int, float]) -> Any:
    """The reference with h[row, k] += change for every k in `which`, computed from the definition."""
    contract = PRECISIONS[precision]
    x, w1, b1, w2, b2 = (values[name] for name in ("x", "W1", "b1", "W2", "b2"))
    h = sums.narrow(np.maximum(x @ w1 + b1, 0).astype(np.float32), contract.hidden).astype(np.float64)
    for k, change in which.items():
        h[row, k] += change
    return np.maximum(h @ w2 + b2 + x, 0)


@given(
    rows=st.integers(1, 40),
    channels=st.integers(1, 80),
    hidden=st.integers(1, 120),
    seed=st.integers(0, 2**32),
    precision=st.sampled_from(["fp16", "bf16", "fp32"]),
    order=st.sampled_from(list(sums.ORDERS)),
)
def test_correct_sums_pass_in_any_order(rows: int, channels: int, hidden: int, seed: int, precision: str, order: str) -> None:
    shape = sums.case(rows, channels, hidden)
    values = sums.inputs(shape, PRECISIONS[precision], seed)
    found = sums.judged(shape, precision, values, sums.compute(values, PRECISIONS[precision], sums.ORDERS[order]))
    assert found.passed
    assert found.elements == rows * channels


@pytest.mark.parametrize("precision", HALVES)
def test_rounding_rows_are_found_excused_and_counted(precision: str) -> None:
    """At this shape a correct sum misses the tolerance now and then (in bf16 mostly): the excuse is needed, and used."""
    shape, excused = sums.case(257, 64, 128), 0
    for seed in range(40):
        values = sums.inputs(shape, PRECISIONS[precision], seed)
        y = sums.compute(values, PRECISIONS[precision], sums.blas)
        reference = WORKLOAD.reference(shape, PRECISIONS[precision], values)["y"]
        beyond = np.count_nonzero((np.abs(y - reference) > 3e-4 + 3e-4 * np.abs(reference)).any(axis=1))
        found = sums.judged(shape, precision, values, y)
        assert (found.violations, found.rounding_rows) == (0, beyond)
        excused += beyond
    assert excused > 0


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("size", SHAPES)
def test_a_product_that_ends_in_float16_fails(size: tuple[int, int, int], precision: str) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, 2)
    found = sums.judged(shape, precision, values, sums.compute(values, contract, sums.half_output))
    assert found.violations > 0
    assert not found.passed


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "tf32"])
@pytest.mark.parametrize("size", [(1, 7, 13), *SHAPES])
def test_every_mutant_fails(size: tuple[int, int, int], precision: str) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, 1)
    right, other = (WORKLOAD.reference(shape, contract, sums.inputs(shape, contract, seed)) for seed in (1, 2))
    assert mutants.survivors(WORKLOAD, shape, contract, values, right, other) == ()


@given(seed=st.integers(0, 2**32), size=st.sampled_from(SHAPES[:3]), precision=st.sampled_from(HALVES), sign=st.sampled_from([-4, 4]))
def test_an_element_off_by_four_tolerances_fails_wherever_it_is(seed: int, size: tuple[int, int, int], precision: str, sign: int) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, seed)
    y = WORKLOAD.reference(shape, contract, values)["y"].copy()
    place = np.random.default_rng(seed).integers(y.size)
    y.flat[place] += sign * (3e-4 + 3e-4 * y.flat[place])
    assert sums.judged(shape, precision, values, y).violations == 1


def near_a_boundary(precision: str, reach: float) -> tuple[Any, dict[str, Any], int, int]:
    """A case with one h of row 0 at the distance `reach` x bound from its midpoint: (shape, values, k, sign of the flip).

    b1 moves it there: it is float32, and h is in [1, 2), where a float32 is fine enough.
    """
    contract, shape = PRECISIONS[precision], sums.case(3, 16, 24)
    values = sums.inputs(shape, contract, 5)
    step = 2.0**-10 if precision == "fp16" else 2.0**-7
    k = 7
    values["W2"][k] = sums.narrow(np.linspace(-2, 2, 16).astype(np.float32), contract.weight)
    # x W1 is exactly 1/2, so that b1 alone decides where h lies.
    values["x"][0] = 0.5
    values["W1"][:, k] = 0.0625
    far = 17 * 2.0**-24 * (0.5 + 0.5 + 20.5 * step)
    values["b1"][k] = np.float32(0.5 + 20.5 * step + reach * far)
    return shape, values, k, 1 if reach < 0 else -1


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("reach", [-0.5, 0.5])
def test_a_true_flip_is_excused(precision: str, reach: float) -> None:
    shape, values, k, sign = near_a_boundary(precision, reach)
    step = 2.0**-10 if precision == "fp16" else 2.0**-7
    y = plant(values, precision, 0, {k: sign * step})
    found = sums.judged(shape, precision, values, y)
    assert found.max_abs_error > 6e-4  # it is beyond tolerance
    assert (found.violations, found.rounding_rows) == (0, 1)


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("reach", [-3.0, 3.0])
def test_a_flip_too_far_from_the_boundary_is_not(precision: str, reach: float) -> None:
    shape, values, k, sign = near_a_boundary(precision, reach)
    step = 2.0**-10 if precision == "fp16" else 2.0**-7
    y = plant(values, precision, 0, {k: sign * step})
    found = sums.judged(shape, precision, values, y)
    assert found.violations > 0
    assert found.rounding_rows == 0


def test_the_flip_must_explain_the_whole_row() -> None:
    shape, values, k, sign = near_a_boundary("fp16", 0.5)
    y = plant(values, "fp16", 0, {k: sign * 2.0**-10})
    y[0, np.argmax(y[0])] += 4 * (3e-4 + 3e-4 * y[0].max())
    assert not sums.judged(shape, "fp16", values, y).passed


def test_the_flip_must_go_to_the_other_neighbour() -> None:
    shape, values, k, sign = near_a_boundary("fp16", 0.5)
    for change in (-sign * 2.0**-10, 2 * sign * 2.0**-10):
        found = sums.judged(shape, "fp16", values, plant(values, "fp16", 0, {k: change}))
        assert not found.passed
        assert found.rounding_rows == 0


@pytest.mark.parametrize("count", [4, 5])
def test_at_most_four_flips_explain_a_row(count: int) -> None:
    """Every candidate moves an element of its own, so that each of them must be flipped."""
    w2, z = np.eye(8), np.full(8, 3.0)
    change = np.full(8, 0.01)
    output = z + np.where(np.arange(8) < count, 0.01, 0.0)
    low, high = few_flips.interval(output, WORKLOAD.tolerance(PRECISIONS["fp16"]))
    row = few_flips._Row(output=output, low=low, high=high, change=change, which=np.arange(8), w2=w2)
    assert row.solvable(z) == (count <= 4)


@given(seed=st.integers(0, 2**32), count=st.integers(0, 4))
def test_the_search_finds_whatever_flips_there_are(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    change, w2, z = random.uniform(0.001, 0.01, 12) * random.choice([-1, 1], 12), random.normal(size=(12, 9)), random.normal(size=9)
    chosen = random.choice(12, count, replace=False)
    output = np.maximum(z + change[chosen] @ w2[chosen], 0) + random.uniform(-1e-4, 1e-4, 9)
    tolerance = WORKLOAD.tolerance(PRECISIONS["fp16"])
    low, high = few_flips.interval(output, tolerance)
    row = few_flips._Row(output=output, low=low, high=high, change=change, which=np.arange(12), w2=w2)
    within = bool(np.all(np.abs(output - np.maximum(z, 0)) <= tolerance.atol + tolerance.rtol * np.maximum(z, 0)))
    assert row.solvable(z) or within  # a row within tolerance needs no search


@given(output=st.floats(-3, 3), z=st.floats(-3, 3))
def test_the_interval_is_the_tolerance_seen_from_z(output: float, z: float) -> None:
    tolerance = WORKLOAD.tolerance(PRECISIONS["fp16"])
    low, high = few_flips.interval(np.array([output]), tolerance)
    slack = tolerance.atol + tolerance.rtol * max(z, 0.0) - abs(output - max(z, 0.0))
    if abs(slack) > 1e-12:
        assert bool(low[0] <= z <= high[0]) == (slack > 0)


@given(exact=st.one_of(st.floats(1e-9, 60000), st.floats(1e-9, 1e-4), st.sampled_from([1.0, 2.0 - 2.0**-12, 2.0**-14, 2.0**-24])))
def test_the_other_neighbour_is_the_one_across_the_exact_value(exact: float) -> None:
    rounded = float(np.float16(exact))
    change, near = few_flips.flips(np.array([exact]), np.array([rounded]), np.array([0.0]), "float16")
    other = float(np.nextafter(np.float16(exact), np.float16(np.inf if exact >= rounded else -np.inf)))
    assert rounded + change[0] == other
    assert near[0] == (exact == (rounded + other) / 2)


def test_what_relu_made_zero_is_no_candidate() -> None:
    _, near = few_flips.flips(np.zeros(1), np.zeros(1), np.array([1.0]), "float16")
    assert not near[0]


def test_the_bound_covers_every_order_of_summation() -> None:
    shape, contract = sums.case(64, 128, 256), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 9)
    (block,) = blocks(values)
    far = few_flips.reach(values["x"], block)
    exact = values["x"] @ block.w1 + block.b1
    x, w1, b1 = (value.astype(np.float32) for value in (values["x"], block.w1, block.b1))
    for product in sums.ORDERS.values():
        assert np.all(np.abs((product(x, w1) + b1) - exact) <= far)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_not_finite_is_never_excused(bad: float, depth: int) -> None:
    shape = sums.case(4, 16, 24, depth)
    values = sums.inputs(shape, PRECISIONS["fp16"], 5)
    y = WORKLOAD.reference(shape, PRECISIONS["fp16"], values)["y"].copy()
    y[2, 3] = bad
    found = sums.judged(shape, "fp16", values, y)
    assert (found.violations, found.rounding_rows) == (1, 0)


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_one_block_without_a_narrow_h_is_judged_element_by_element(precision: str) -> None:
    shape, values, _, _ = near_a_boundary("fp16", 0.5)
    y = WORKLOAD.reference(shape, PRECISIONS[precision], values)["y"].copy()
    y[0] *= 1.01
    found = sums.judged(shape, precision, values, y)
    assert found.violations > 0
    assert found.rounding_rows == 0


def test_a_wrong_output_of_many_rows_is_judged_without_examining_all() -> None:
    shape = sums.case(600, 32, 64)
    values = sums.inputs(shape, PRECISIONS["fp16"], 3)
    reference = WORKLOAD.reference(shape, PRECISIONS["fp16"], values)["y"]
    found = sums.judged(shape, "fp16", values, reference + 0.01)
    assert (found.violations, found.rounding_rows) == (reference.size, 0)
