"""The acceptance rule for chains of blocks: correct chains pass, wrong ones fail where a row can tell them apart."""

import mlp_sums as sums
import numpy as np
import pytest

from mkframe.check import mutants
from mkframe.model.precision import PRECISIONS
from mkframe_plugins.residual_mlp import witnesses

WORKLOAD = sums.WORKLOAD
DEEP = [(rows, channels, hidden, depth) for rows in (1, 33, 257) for channels, hidden in ((64, 128), (256, 512)) for depth in (4, 24)]


@pytest.mark.parametrize("size", DEEP, ids=str)
def test_correct_chains_of_the_deep_set_pass_in_fp16(size: tuple[int, int, int, int]) -> None:
    shape, contract = sums.case(*size), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 1000)
    found = sums.judged(shape, "fp16", values, sums.compute(values, contract, sums.blas))
    assert found.passed, found
    assert found.max_abs_error > 0.0


@pytest.mark.parametrize("order", list(sums.ORDERS))
@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("size", [(33, 7, 13, 2), (129, 32, 64, 3), (65, 64, 128, 24)], ids=str)
def test_correct_chains_pass_in_any_order(size: tuple[int, int, int, int], precision: str, order: str) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, 4)
    found = sums.judged(shape, precision, values, sums.compute(values, contract, sums.ORDERS[order]))
    assert found.passed, found


def tf32_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    def rounded(values: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)

    return rounded(a) @ rounded(b)


@pytest.mark.parametrize("size", [(33, 64, 128, 1), (33, 64, 128, 4), (65, 64, 128, 24)], ids=str)
def test_chains_of_tf32_products_pass_as_tf32_and_fail_as_fp32(size: tuple[int, int, int, int]) -> None:
    shape = sums.case(*size)
    values = sums.inputs(shape, PRECISIONS["tf32"], 4)
    y = sums.compute(values, PRECISIONS["tf32"], tf32_product)
    assert sums.judged(shape, "tf32", values, y).passed
    assert not sums.judged(shape, "fp32", values, y).passed


def test_operands_that_are_cut_off_instead_of_rounded_fail_as_tf32() -> None:
    """What hardware does with float32 bits that nobody rounded."""

    def cut_off(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = ((np.ascontiguousarray(v).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for v in (a, b))
        return a @ b

    shape = sums.case(257, 64, 128)
    values = sums.inputs(shape, PRECISIONS["tf32"], 3)
    assert sums.judged(shape, "tf32", values, sums.compute(values, PRECISIONS["tf32"], tf32_product)).passed
    assert not sums.judged(shape, "tf32", values, sums.compute(values, PRECISIONS["tf32"], cut_off)).passed


def test_the_excuse_is_needed_and_counted() -> None:
    shape, contract = sums.case(129, 64, 128, depth=24), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 0)
    found = sums.judged(shape, "fp16", values, sums.compute(values, contract))
    assert found.passed
    assert found.rounding_rows > 10
    assert found.max_abs_error > 0.01


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("size", [(33, 19, 37, 2), (129, 64, 128, 2), (129, 64, 128, 4)], ids=str)
def test_products_that_end_in_float16_fail(size: tuple[int, int, int, int], precision: str) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, 6)
    assert not sums.judged(shape, precision, values, sums.compute(values, contract, sums.half_output)).passed


def test_a_chain_that_does_not_round_between_its_blocks_fails() -> None:
    shape = sums.case(129, 64, 128, depth=4)
    values = sums.inputs(shape, PRECISIONS["fp16"], 6)
    assert not sums.judged(shape, "fp16", values, sums.compute(values, PRECISIONS["fp32"])).passed


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32", "tf32"])
@pytest.mark.parametrize("size", [(1, 64, 128, 4), (33, 64, 128, 24), (2, 4, 8, 2), (33, 256, 512, 4)], ids=str)
def test_every_mutant_fails(size: tuple[int, int, int, int], precision: str) -> None:
    shape, contract = sums.case(*size), PRECISIONS[precision]
    values = sums.inputs(shape, contract, 1)
    right, other = (WORKLOAD.reference(shape, contract, sums.inputs(shape, contract, seed)) for seed in (1, 2))
    assert mutants.survivors(WORKLOAD, shape, contract, values, right, other) == ()


@pytest.mark.parametrize("factor", [1.01, 0.97])
def test_a_row_that_is_off_as_a_whole_fails(factor: float) -> None:
    shape, contract = sums.case(33, 64, 128, depth=24), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 1)
    y = sums.compute(values, contract)
    y[5] *= factor
    found = sums.judged(shape, "fp16", values, y)
    assert found.violations > 0


def test_a_judgement_does_not_change_from_call_to_call() -> None:
    shape, contract = sums.case(33, 64, 128, depth=24), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 1)
    y = sums.compute(values, contract)
    assert sums.judged(shape, "fp16", values, y) == sums.judged(shape, "fp16", values, y)


def test_chunks_of_rows_change_nothing_for_the_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, contract = sums.case(65, 32, 64, depth=6), PRECISIONS["fp16"]
    values = sums.inputs(shape, contract, 1)
    y = sums.compute(values, contract, sums.sequential)
    whole = sums.judged(shape, "fp16", values, y)
    monkeypatch.setattr(witnesses, "MAX_ELEMENTS", 1)  # one row at a time
    by_row = sums.judged(shape, "fp16", values, y)
    assert whole.passed
    assert by_row.passed
    assert whole.rounding_rows == by_row.rounding_rows > 0


def test_a_disturbance_of_one_element_reaches_the_others() -> None:
    """What `spread` demands, from the definition: one element of the last block's x moved, the rest of y moves with it."""
    contract = PRECISIONS["fp32"]
    for seed in range(20):
        shape = sums.case(1, 64, 128)
        values = sums.inputs(shape, contract, seed)
        before = WORKLOAD.reference(shape, contract, values)["y"]
        values["x"] = values["x"].copy()
        values["x"][0, np.argmax(before)] += 1e-3
        moved = np.abs(WORKLOAD.reference(shape, contract, values)["y"] - before)
        assert witnesses.spread(moved, before)[0]
        alone = np.where(moved == moved.max(), moved, 0.0)
        assert not witnesses.spread(alone, before)[0]
