"""Which samples a clock can give: readings of honest clocks pass whatever they are, and what no clock reads does not."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.validate.rebuilt_clock import DISTINCT, calls_per_reading, repeated, single_precision, whole_nanoseconds

CALLS = st.integers(1, 100_000)
FLOATS = st.floats(0, 1e9, width=32)


@given(st.integers(0, 2**53), CALLS)
def test_whole_nanoseconds_over_calls_are_readings(nanoseconds: int, calls: int) -> None:
    """As Divided does it: an int over 1e6, then over the calls."""
    assert whole_nanoseconds(np.array([[nanoseconds / 1e6 / calls]]), calls).all()


@given(st.lists(st.integers(0, 2**53), min_size=1))
def test_a_cpu_divides_arrays_and_that_is_the_same(nanoseconds: list[int]) -> None:
    assert whole_nanoseconds(np.array([nanoseconds]) / 1e6, 1).all()


@given(FLOATS, CALLS)
def test_event_times_over_calls_are_readings(milliseconds: float, calls: int) -> None:
    assert single_precision(np.array([[milliseconds / calls]]), calls).all()


@given(st.floats(1e-4, 1e3))
def test_what_is_a_reading_of_one_call_is_decided_exactly(value: float) -> None:
    """Against exact arithmetic: the nearest float64 of n / 10^6 for the nearest n, and 24 bits of significand."""
    nearest = Fraction(round(Fraction(value) * 10**6), 10**6)
    assert whole_nanoseconds(np.array([[value]]), 1).item() == (float(nearest) == value)
    significand = Fraction(value).numerator
    while significand % 2 == 0:
        significand //= 2
    assert single_precision(np.array([[value]]), 1).item() == (significand < 2**24)


def test_times_of_another_clock_are_none() -> None:
    events = np.array([[9 * 32e-6]]).astype(np.float32).astype(np.float64)
    assert not single_precision(0.9 * events, 1).any()
    assert not whole_nanoseconds(np.array([[0.9 * 12.345678]]), 1).any()
    assert not whole_nanoseconds(np.array([[0.0123455]]), 1).any()


@pytest.mark.parametrize(
    ("timing", "calls"),
    [
        ({"protocol": "per_call", "replays": None}, 1),
        ({"protocol": "replay", "replays": 50}, 50),
        ({"protocol": "replay", "replays": 50.0}, 50),
        ({"protocol": "replay", "replays": 0.5}, None),
        ({"protocol": "replay"}, None),
        ({"protocol": "cold", "method": "evict"}, 1),
        ({"protocol": "cold", "method": "rotate"}, None),
        ({"protocol": "unrolled"}, None),
        ("per_call", None),
    ],
)
def test_what_a_sample_is_divided_by(timing: Any, calls: int | None) -> None:
    assert calls_per_reading({"timing": timing}) == calls


def test_a_round_that_is_another_one_again() -> None:
    row = np.arange(float(DISTINCT + 4))
    other = row[::-1]
    assert repeated(np.stack([row, other, row])) == (0, 2)
    assert repeated(np.stack([row, other])) is None
    coarse = np.repeat(np.arange(DISTINCT - 1.0), 9)
    assert repeated(np.stack([coarse, coarse])) is None
