"""Grids, cases and seeds."""

import hashlib
import itertools
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fakes import FakeMlp, FakeToy, MlpCase, ToyCase

from mkframe.errors import ConfigError
from mkframe.plan.grid import LONGEST_AXIS, axis, count, expand
from mkframe.plan.shapes import ShapeSet, shape_sets
from mkframe.seeds import stable_seed

MLP, TOY = FakeMlp(), FakeToy()
SIZES = st.integers(1, 10**6)


def sets(most: int = 100_000, **nodes: Any) -> tuple[ShapeSet, ...]:
    return shape_sets(nodes, MLP, most_cases=most)


@given(SIZES, SIZES, st.integers(2, 10) | st.floats(1.01, 20))
def test_a_range_by_factor(start: int, stop: int, factor: float) -> None:
    start, stop = sorted((start, stop))
    values = axis({"start": start, "stop": stop, "factor": factor}, "k")
    expected, power = [], 0
    while (value := round(start * factor**power)) <= stop:
        expected.append(value)
        power += 1
    assert values == tuple(sorted(set(expected)))


@given(SIZES, SIZES, st.integers(2, 200))
def test_a_range_by_number(start: int, stop: int, number: int) -> None:
    start, stop = sorted((start, stop))
    values = axis({"start": start, "stop": stop, "num": number}, "k")
    expected = np.unique(np.rint(np.geomspace(start, stop, number)).astype(int))
    assert (values[0], values[-1]) == (start, stop)
    assert len(values) <= number
    # geomspace takes logarithms, so a value at a half may round to the other side
    assert all(min(abs(expected - value)) <= 1 for value in values)
    assert all(min(abs(np.array(values) - value)) <= 1 for value in expected)


def test_ranges_by_hand() -> None:
    assert axis({"start": 1, "stop": 64, "factor": 4}, "k") == (1, 4, 16, 64)
    assert axis({"start": 1, "stop": 63, "factor": 4}, "k") == (1, 4, 16)
    assert axis({"start": 1, "stop": 8, "num": 4}, "k") == (1, 2, 4, 8)
    assert axis({"start": 1, "stop": 3, "factor": 1.2}, "k") == (1, 2, 3)
    assert axis({"start": 5, "stop": 5, "num": 1}, "k") == (5,)
    assert axis({"start": 5, "stop": 5, "factor": 2}, "k") == (5,)
    assert axis([8, 1, 8], "k") == (8, 1)
    assert axis(7, "k") == (7,)


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(1, 50), min_size=1, max_size=4, unique=True).map(tuple), min_size=1))
def test_the_product(axes: dict[str, tuple[int, ...]]) -> None:
    expected = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert list(expand(axes)) == expected
    assert count(axes) == len(expected)


@pytest.mark.parametrize(
    "spec",
    [
        True,
        0,
        -1,
        1.5,
        "3",
        None,
        [],
        [True],
        [[1]],
        {},
        {"start": 1},
        {"start": 1, "stop": 4},
        {"start": 1, "stop": 4, "factor": 2, "num": 3},
        {"start": 1, "stop": 4, "factor": True},
        {"start": 1, "stop": 4, "factor": float("nan")},
        {"start": 1, "stop": 4, "factor": float("inf")},
        {"start": 1, "stop": 4, "factor": "2"},
        {"start": 1, "stop": 4, "num": 0},
        {"start": 1, "stop": 4, "num": 1},
        {"start": 1, "stop": 4, "num": 2.0},
        {"start": 0, "stop": 4, "num": 2},
        {"start": 1, "stop": 10**9, "factor": 1.0000001},
        {"start": 1, "stop": 10**400, "factor": 2},
        10**400,
        {"start": 1, "stop": 10**9, "num": LONGEST_AXIS + 1},
        list(range(1, LONGEST_AXIS + 2)),
    ],
    ids=lambda spec: str(spec)[:40],
)
def test_a_bad_axis_names_its_key(spec: Any) -> None:
    with pytest.raises(ConfigError, match=r"^shape\.g\.rows"):
        axis(spec, "shape.g.rows")


def test_a_grid_is_expanded_in_order_without_duplicates() -> None:
    (made,) = sets(grid={"seed": None, "rows": [8, 1, 8], "channels": 4, "hidden": {"start": 2, "stop": 4, "factor": 2}, "depth": [1, 2]})
    assert [(case.rows, case.hidden, case.depth) for case in made.cases] == list(itertools.product((8, 1), (2, 4), (1, 2)))
    assert all(isinstance(case, MlpCase) for case in made.cases)


def test_a_huge_grid_is_refused_without_being_made() -> None:
    axis_of_a_thousand = {"start": 1, "stop": 10**6, "num": 1000}
    began = time.process_time()
    with pytest.raises(ConfigError, match=r"shape\.grid: [\d,]+ cases; this selection has room for 100,000"):
        sets(grid={"rows": axis_of_a_thousand, "channels": axis_of_a_thousand, "hidden": axis_of_a_thousand})
    assert time.process_time() - began < 5  # 10^9 cases would take minutes


def test_the_limit_holds_over_all_sets() -> None:
    node = {"rows": [1, 2, 3], "channels": 1, "hidden": 1}
    assert len(sets(6, a=node, b=node)) == 2
    with pytest.raises(ConfigError, match=r"shape\.b: 3 cases; this selection has room for 2"):
        sets(5, a=node, b=node)
    with pytest.raises(ConfigError, match="room for 1"):
        sets(1, a={"cases": [{"rows": 1, "channels": 1, "hidden": 1}, {"rows": 2, "channels": 1, "hidden": 1}]})


CASE = st.fixed_dictionaries({"rows": SIZES, "channels": SIZES, "hidden": SIZES}, optional={"depth": st.integers(1, 100)})


@given(st.lists(CASE, min_size=1, max_size=8, unique_by=lambda case: tuple({"depth": 1, **case}[key] for key in MlpCase.__slots__)))
def test_good_cases_keep_their_order_and_values(cases: list[dict[str, int]]) -> None:
    (made,) = sets(mine={"cases": cases})
    assert [MLP.shape_of(case) for case in made.cases] == [
        {key: case[key] for key in MlpCase.__slots__ if key in case and not (key == "depth" and case[key] == 1)} for case in cases
    ]


BAD_VALUE = (
    st.none() | st.booleans() | st.integers(max_value=0) | st.floats() | st.text(max_size=3) | st.lists(st.integers(1, 3), max_size=2)
)


@given(CASE, st.sampled_from(["rows", "channels", "hidden", "depth"]), BAD_VALUE)
def test_a_bad_value_is_refused_with_its_place(case: dict[str, Any], key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^shape\.mine\.cases\[1\]\.{key}: "):
        sets(mine={"cases": [{"rows": 10**7, "channels": 1, "hidden": 1}, {**case, key: value}]})


@given(CASE, st.sampled_from(["rows", "channels", "hidden"]))
def test_a_missing_or_unknown_axis_is_refused(case: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} missing"):
        sets(mine={"cases": [{name: value for name, value in case.items() if name != key}]})
    with pytest.raises(ConfigError, match=r"cases\[0\]\.width: residual_mlp has no such axis"):
        sets(mine={"cases": [{**case, "width": 3}]})


def test_what_the_workload_refuses_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^shape\.mine\.cases\[0\]: length must be even$"):
        shape_sets({"mine": {"cases": [{"rows": 1, "length": 3}]}}, TOY, most_cases=9)
    with pytest.raises(ConfigError, match=r"^shape\.grid: length must be even$"):
        shape_sets({"grid": {"rows": 1, "length": 3}}, TOY, most_cases=9)
    (made,) = shape_sets({"grid": {"rows": 1, "length": 2}}, TOY, most_cases=9)
    assert made.cases == (ToyCase(rows=1, length=2),)


def test_the_same_shape_in_two_ordinary_sets_is_fine() -> None:
    case = {"cases": [{"rows": 1, "channels": 1, "hidden": 1}]}
    assert [item.name for item in sets(a=case, b=case)] == ["a", "b"]
    with pytest.raises(ConfigError, match="both development and assessment"):
        sets(development=case, assessment={"cases": [{"rows": 1, "channels": 1, "hidden": 1, "depth": 1}]})


@pytest.mark.parametrize("name", ["device", "rounds", "mkframe", "validation", "timing", "Upper", "a b", ""])
def test_a_set_cannot_be_called_like_another_key_of_the_report(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^shape\."):
        sets(**{name: {"cases": [{"rows": 1, "channels": 1, "hidden": 1}]}})


def test_seeds() -> None:
    case = {"cases": [{"rows": 1, "channels": 1, "hidden": 1}]}
    (declared, zero, stable) = sets(a={**case, "seed": 1729}, b={**case, "seed": 0}, c={**case, "seed": None})
    assert (declared.seed, zero.seed) == (1729, 0)
    assert stable.seed == 1000 + int(hashlib.sha256(b"c").hexdigest()[:8], 16) % (2**31 - 1000)
    for seed in (-1, 2**63, 1.0, True, "3"):
        with pytest.raises(ConfigError, match=r"^shape\.a\.seed"):
            sets(a={**case, "seed": seed})


@given(st.text())
def test_a_stable_seed_is_in_range_and_stable(name: str) -> None:
    assert 1000 <= stable_seed(name) < 2**31
    assert stable_seed(name) == stable_seed(str(name))


def test_stable_seeds_do_not_change() -> None:
    assert stable_seed("smoke") == 81104051
    assert stable_seed("deep") == 1952522245
