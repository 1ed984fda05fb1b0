"""The comparison helpers of the workload door, against numpy's own formats and bit patterns."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlp_sums import bfloat16

from mkframe.plugin import Tolerance, deviations, elementwise, round_to, spacing_of

anything = st.floats(allow_nan=False, width=64)
moderate = st.one_of(
    st.floats(-70000, 70000), st.floats(-1e-4, 1e-4), st.floats(-1e-7, 1e-7), st.sampled_from([0.0, -0.0, 65504.0, 65519.9, 65520.0])
)


@given(value=st.one_of(anything, moderate))
def test_float16_is_rounded_as_numpy_does(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.float64(value).astype(np.float16)  # numpy rounds float64 to half in one step
    assert round_to(np.array([value]), "float16")[0] == expected


@given(value=anything)
def test_float32_is_rounded_as_numpy_does(value: float) -> None:
    with np.errstate(over="ignore"):
        assert round_to(np.array([value]), "float32")[0] == np.float32(value)


@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False).filter(lambda v: abs(v) < 3.38e38))
def test_bfloat16_is_rounded_as_its_bit_pattern_is(value: float) -> None:
    assert round_to(np.array([value]), "bfloat16")[0] == bfloat16(np.array([value], dtype=np.float32))[0]


def test_bfloat16_overflows_beyond_half_a_step_past_its_largest() -> None:
    largest = float(np.uint32(0x7F7F0000).view(np.float32))
    step = 2.0**120
    assert round_to(np.array([largest, largest + 0.49 * step, largest + 0.5 * step, -largest - step]), "bfloat16").tolist() == [
        largest,
        largest,
        np.inf,
        -np.inf,
    ]


def test_rounding_happens_once() -> None:
    """Just above the midpoint of two halves, by less than a float32 can hold: by way of float32 it would round down to even."""
    value = 1.0 + 2.0**-11 + 2.0**-40
    assert np.float16(np.float32(value)) == 1.0
    assert round_to(np.array([value]), "float16")[0] == 1.0 + 2.0**-10


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_not_finite_stays_so(dtype: str) -> None:
    found = round_to(np.array([np.inf, -np.inf, np.nan]), dtype)
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(found[2])


NEXT: dict[str, Callable[[float], float]] = {
    "float16": lambda v: float(np.nextafter(np.float16(v), np.float16(np.inf))),
    "float32": lambda v: float(np.nextafter(np.float32(v), np.float32(np.inf))),
    "bfloat16": lambda v: float((np.float32(v).view(np.uint32) + np.uint32(0x10000)).view(np.float32)),
}


@pytest.mark.parametrize("dtype", list(NEXT))
@given(value=st.one_of(st.just(0.0), st.floats(0, 60000), st.floats(0, 1e-5), st.floats(0, 1e-37)))
def test_spacing_is_the_way_to_the_next_number(dtype: str, value: float) -> None:
    with np.errstate(under="ignore"):
        number = round_to(np.array([value]), dtype)
    assert spacing_of(number, dtype)[0] == NEXT[dtype](float(number[0])) - number[0]
    assert spacing_of(-number, dtype)[0] == spacing_of(number, dtype)[0]


tolerances = st.builds(lambda r, a: Tolerance(rtol=r, atol=a), st.floats(0, 0.1), st.floats(0, 0.1))
pairs = st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=20)


@given(values=pairs, tolerance=tolerances)
def test_elementwise_is_its_definition(values: list[tuple[float, float]], tolerance: Tolerance) -> None:
    output, expected = np.array(values).T
    found = elementwise({"y": output}, {"y": expected}, tolerance)
    errors = [abs(o - e) for o, e in values]
    assert found.violations == sum(error > tolerance.atol + tolerance.rtol * abs(e) for error, (_, e) in zip(errors, values, strict=True))
    assert found.max_abs_error == max(errors)
    assert found.mean_abs_error == pytest.approx(float(sum(map(Fraction, errors)) / len(errors)))
    assert (found.elements, found.rtol, found.atol, found.rounding_rows) == (len(values), tolerance.rtol, tolerance.atol, 0)
    assert found.passed == (found.violations == 0)


def test_several_outputs_are_judged_together() -> None:
    right = {"a": np.zeros((2, 2)), "b": np.ones(3)}
    wrong = {"a": np.array([[0.0, 0.0], [0.5, 0.0]]), "b": np.array([1.0, 3.0, 1.0])}
    found = elementwise(wrong, right, Tolerance(rtol=0.0, atol=0.1))
    assert (found.violations, found.elements, found.max_abs_error) == (2, 7, 2.0)
    assert found.finding == "2 of 7 elements are beyond tolerance (largest error 2)"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_violates_whatever_the_tolerance(value: float) -> None:
    found = elementwise({"y": np.array([value, 0.0])}, {"y": np.zeros(2)}, Tolerance(rtol=1.0, atol=1e300))
    assert found.violations == 1
    assert found.max_abs_error == np.finfo(np.float64).max
    assert found.finding == "1 of 2 elements are beyond tolerance (the output holds NaN or infinities)"


def test_integers_are_compared_too() -> None:
    error, beyond = deviations(np.array([1, 5]), np.array([1, 4]), Tolerance(rtol=0.0, atol=0.0))
    assert (error.tolist(), beyond.tolist()) == ([0.0, 1.0], [False, True])
