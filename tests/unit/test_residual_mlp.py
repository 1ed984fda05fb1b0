"""The workload residual_mlp: what it declares, draws and computes."""

from fractions import Fraction

import mlp_sums as sums
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import Role

WORKLOAD = sums.WORKLOAD


def test_tensors_of_one_block_are_plain_matrices() -> None:
    specs = WORKLOAD.tensors(sums.case(2, 3, 5), PRECISIONS["fp16"])
    assert {name: (spec.shape, spec.dtype, spec.role) for name, spec in specs.items()} == {
        "x": ((2, 3), "float16", Role.INPUT),
        "W1": ((3, 5), "float16", Role.WEIGHT),
        "b1": ((5,), "float32", Role.WEIGHT),
        "W2": ((5, 3), "float16", Role.WEIGHT),
        "b2": ((3,), "float32", Role.WEIGHT),
        "y": ((2, 3), "float32", Role.OUTPUT),
    }


def test_deeper_chains_stack_their_weights() -> None:
    specs = WORKLOAD.tensors(sums.case(2, 3, 5, depth=4), PRECISIONS["bf16"])
    assert [specs[name].shape for name in ("x", "W1", "b1", "W2", "b2", "y")] == [(2, 3), (4, 3, 5), (4, 5), (4, 5, 3), (4, 3), (2, 3)]
    assert specs["W1"].dtype == "bfloat16"


def test_the_shape_leaves_a_depth_of_one_out() -> None:
    assert WORKLOAD.shape_of(sums.case(2, 3, 5)) == {"rows": 2, "channels": 3, "hidden": 5}
    assert WORKLOAD.shape_of(sums.case(2, 3, 5, depth=2)) == {"rows": 2, "channels": 3, "hidden": 5, "depth": 2}


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0])
def test_a_case_is_four_positive_integers(wrong: object) -> None:
    with pytest.raises(AssertionError, match="hidden"):
        sums.case(2, 3, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [1, 3])
def test_draws_have_the_announced_distribution(depth: int) -> None:
    drawn = WORKLOAD.draw(sums.case(500, 64, 256, depth), 3)
    assert all(values.dtype == np.float32 for values in drawn.values())
    spread = {"x": 1.0, "W1": 64**-0.5, "b1": 0.1, "W2": 256**-0.5, "b2": 0.1}
    for name, values in drawn.items():
        error = spread[name] / np.sqrt(values.size)
        assert abs(values.mean()) < 5 * error
        assert abs(values.std() - spread[name]) < 5 * error


def test_a_seed_fixes_every_value() -> None:
    first, again, other = (WORKLOAD.draw(sums.case(3, 4, 5), seed) for seed in (7, 7, 8))
    assert list(first) == ["x", "W1", "b1", "W2", "b2"]
    for name in first:
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])
    # PCG64 and the ziggurat of numpy: these two values hold the generator and the order of draws in place.
    assert first["x"][0, 0] == np.random.Generator(np.random.PCG64(7)).standard_normal(dtype=np.float32)
    rest = np.random.Generator(np.random.PCG64(7)).standard_normal(12 + 20, dtype=np.float32)[12:]
    assert np.array_equal(first["W1"].ravel(), rest * np.float32(0.5))


def exact_y(values: dict[str, np.ndarray], dtype: str) -> list[list[float]]:
    """One block in rational arithmetic, by the definition, element by element."""
    x, w1, b1, w2, b2 = (values[name] for name in ("x", "W1", "b1", "W2", "b2"))
    rational = np.vectorize(Fraction, otypes=[object])
    x, w1, b1, w2, b2 = (rational(value) for value in (x, w1, b1, w2, b2))
    result = []
    for row in x:
        h = []
        for k in range(w1.shape[1]):
            value = max(sum(row[c] * w1[c, k] for c in range(len(row))) + b1[k], Fraction(0))
            h.append(nearest_half(value) if dtype == "float16" else value)
        result.append([float(max(sum(h[k] * w2[k, c] for k in range(len(h))) + b2[c] + row[c], Fraction(0))) for c in range(len(row))])
    return result


def nearest_half(value: Fraction) -> Fraction:
    """The nearest float16 of a rational number of moderate size, ties to even, found among three neighbours."""
    start = np.float16(float(value))
    near = [Fraction(float(n)) for n in (np.nextafter(start, np.float16(-1)), start, np.nextafter(start, np.float16(np.inf)))]
    even = {n: np.float16(float(n)).view(np.uint16) % 2 for n in near}
    return min(near, key=lambda n: (abs(n - value), even[n]))


@given(rows=st.integers(1, 3), channels=st.integers(1, 6), hidden=st.integers(1, 6), seed=st.integers(0, 2**32))
def test_the_reference_is_the_definition(rows: int, channels: int, hidden: int, seed: int) -> None:
    shape = sums.case(rows, channels, hidden)
    values = sums.inputs(shape, PRECISIONS["fp16"], seed)
    found = WORKLOAD.reference(shape, PRECISIONS["fp16"], values)["y"]
    assert found == pytest.approx(np.array(exact_y(values, "float16")), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "tf32"])
def test_a_chain_is_its_blocks_with_y_rounded_between_them(precision: str) -> None:
    contract, shape = PRECISIONS[precision], sums.case(4, 6, 9, depth=3)
    values = sums.inputs(shape, contract, 11)
    x = values["x"]
    for block in range(3):
        one = {name: value if name == "x" else value[block] for name, value in values.items()} | {"x": x}
        y = WORKLOAD.reference(sums.case(4, 6, 9), contract, one)["y"]
        x = sums.narrow(y.astype(np.float32), contract.input).astype(np.float64)
    assert np.array_equal(WORKLOAD.reference(shape, contract, values)["y"], y)


def test_the_cost_counts_every_tensor_once_and_both_products() -> None:
    cost = WORKLOAD.cost(sums.case(10, 4, 6, depth=2), PRECISIONS["fp16"])
    assert cost.flops == 2 * (2 * 10 * 4 * 6 + 2 * 10 * 6 * 4)
    assert cost.bytes == 2 * (10 * 4 + 2 * (4 * 6 + 6 * 4)) + 4 * (2 * (6 + 4) + 10 * 4)
