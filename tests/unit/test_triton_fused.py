"""Engine triton-fused without a GPU: what it refuses and tries, and its kernel, run on CPU tensors by a stand-in for Triton."""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import mlp_sums as sums
import numpy as np
import pytest
import torch
import triton_on_torch
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_on_torch import StandIn

from mkframe.model.precision import PRECISIONS
from mkframe.plugin import Device, NoOptions
from mkframe_plugins.residual_mlp import triton_fused
from mkframe_plugins.residual_mlp.triton_fused import SCHEDULES, Schedule, TritonFused, candidates, padded

ENGINE = TritonFused()
GPU = Device(kind="cuda", name="a GPU", memory_bytes=2**36, compute_capability="9.0")
NAMES = ("x", "W1", "b1", "W2", "b2", "y")
HALVES = ("fp16", "bf16")
sizes = st.sampled_from([1, 2, 3, 7, 13, 16, 17, 31, 33, 47, 64, 67, 97, 128])


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    caches = (triton_fused.kernel, triton_fused.tuner)
    for cache in caches:
        cache.cache_clear()
    yield triton_on_torch.install(monkeypatch)
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether Triton is there, as the engine sees it; there unless a test says otherwise."""
    there = [True]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if there[0] else None)
    triton_fused.has_triton.cache_clear()
    yield there
    triton_fused.has_triton.cache_clear()


def allocate(shape: Any, precision: str, seed: int = 3) -> tuple[dict[str, Any], Mapping[str, Any]]:
    contract = PRECISIONS[precision]
    values = sums.inputs(shape, contract, seed)
    specs = sums.WORKLOAD.tensors(shape, contract)
    tensors = {name: torch.full(spec.shape, float("nan"), dtype=getattr(torch, spec.dtype)) for name, spec in specs.items()}
    for name, value in values.items():
        tensors[name].copy_(torch.from_numpy(value))
    return tensors, values


def launch(shape: Any, tensors: Mapping[str, Any], schedule: Schedule) -> None:
    triton_fused.kernel()[(-(-shape.rows // schedule.rows),)](
        *(tensors[name] for name in NAMES),
        shape.rows,
        channels=shape.channels,
        hidden=shape.hidden,
        depth=shape.depth,
        width=padded(shape.channels),
        tile=schedule.rows,
        step=schedule.hidden,
    )


def judged(shape: Any, precision: str, values: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    return sums.judged(shape, precision, values, tensors["y"].double().numpy())


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize(
    "size", [(1, 7, 13), (33, 32, 64), (129, 31, 47), (49, 64, 128), (5, 19, 37), (1, 1, 1), (17, 67, 1), (33, 31, 17, 3)], ids=str
)
def test_the_kernel_is_right_under_every_schedule(stand_in: StandIn, size: tuple[int, ...], precision: str) -> None:
    shape = sums.case(*size)
    tensors, values = allocate(shape, precision)
    for schedule in candidates(shape):
        tensors["y"].fill_(float("nan"))
        launch(shape, tensors, schedule)
        found = judged(shape, precision, values, tensors)
        assert found.passed, (schedule, found)
    assert all(np.array_equal(tensors[name].double().numpy(), value) for name, value in values.items())


@settings(max_examples=30)
@given(rows=sizes, channels=sizes, hidden=sizes, depth=st.sampled_from([1, 1, 2]), precision=st.sampled_from(HALVES), data=st.data())
def test_the_kernel_is_right_on_odd_shapes(rows: int, channels: int, hidden: int, depth: int, precision: str, data: Any) -> None:
    # in a narrow chain the rule of acceptance refuses right rows too: docs/workloads/residual_mlp.md, Chains
    shape = sums.case(rows, channels, hidden, depth if min(channels, hidden) >= 16 else 1)
    schedule = data.draw(st.sampled_from(candidates(shape)))
    tensors, values = allocate(shape, precision)
    with pytest.MonkeyPatch.context() as patch:
        triton_fused.kernel.cache_clear()
        triton_on_torch.install(patch)
        launch(shape, tensors, schedule)
    triton_fused.kernel.cache_clear()
    assert judged(shape, precision, values, tensors).passed


def test_nothing_outside_the_tensors_counts(stand_in: StandIn) -> None:
    """The tensors lie in larger ones full of NaN: what a mask leaves out may not enter a sum, and is not written."""
    shape = sums.case(19, 23, 37)
    tensors, values = allocate(shape, "fp16")
    larger = {name: torch.full((tensor.numel() + 4096,), float("nan"), dtype=tensor.dtype) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        larger[name][: tensor.numel()] = tensor.view(-1)
    launch(shape, larger, SCHEDULES[3])
    tensors["y"].copy_(larger["y"][: tensors["y"].numel()].view(19, 23))
    assert judged(shape, "fp16", values, tensors).passed
    assert larger["y"][tensors["y"].numel() :].isnan().all()


@pytest.mark.parametrize("fastest", [0, 4])
def test_bind_takes_what_the_autotuner_finds(stand_in: StandIn, fastest: int) -> None:
    stand_in.fastest = fastest
    shape = sums.case(33, 32, 64)
    tensors, values = allocate(shape, "bf16")
    launches = ENGINE.bind(shape, PRECISIONS["bf16"], tensors, NoOptions())
    tried, best = candidates(shape), candidates(shape)[fastest]
    assert dict(launches.facts) == {
        "triton": "of a test",
        "tile_rows": best.rows,
        "hidden_step": best.hidden,
        "num_warps": best.warps,
        "num_stages": best.stages,
        "candidates": len(tried),
        "programs": 3,
        "registers": 40,
        "spills": 0,
        "shared_bytes": 1024,
    }
    json.dumps(dict(launches.facts))
    stand_in.launched.clear()
    tensors["y"].fill_(float("nan"))
    tensors["x"].neg_()
    assert launches.call is not None
    launches.call()
    ((grid, constants),) = stand_in.launched
    assert grid == (3,)
    assert (constants["tile"], constants["step"], constants["num_warps"], constants["num_stages"]) == (
        best.rows,
        best.hidden,
        best.warps,
        best.stages,
    )
    assert judged(shape, "bf16", {**values, "x": -values["x"]}, tensors).passed


def test_two_bindings_share_the_tuning(stand_in: StandIn) -> None:
    assert triton_fused.tuner(candidates(sums.case(33, 32, 64))) is triton_fused.tuner(candidates(sums.case(40, 30, 60)))


def test_it_says_what_it_is() -> None:
    assert (ENGINE.id, ENGINE.workload, ENGINE.devices, ENGINE.precisions) == ("triton-fused", "residual_mlp", ("cuda",), HALVES)
    assert ENGINE.baseline
    assert not ENGINE.overlaps
    assert str(triton_fused.MOST_CHANNELS) in ENGINE.limits


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ((1, 1024, 2**20), None),
        ((2**31 - 1, 1, 1), None),
        ((1, 1, 1, 24), None),
        ((1, 1025, 1), "a tile of more than 1024 channels does not fit in registers"),
        ((1, 1024, 2**20 + 1), "a weight matrix of more than 1073741824 elements needs 64-bit offsets"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_unsupported(installed: list[bool], size: tuple[int, ...], reason: str | None) -> None:
    assert ENGINE.unsupported(sums.case(*size), PRECISIONS["fp16"], GPU) == reason


@pytest.mark.parametrize(("capability", "reason"), [("8.0", None), ("12.0", None), (None, None), ("7.5", "needs sm_80 or newer")])
def test_the_device_must_have_the_products(installed: list[bool], capability: str | None, reason: str | None) -> None:
    assert ENGINE.unsupported(sums.case(1, 7, 13), PRECISIONS["fp16"], replace(GPU, compute_capability=capability)) == reason


def test_without_triton_it_is_unsupported(installed: list[bool]) -> None:
    installed[0] = False
    assert ENGINE.unsupported(sums.case(1, 7, 13), PRECISIONS["fp16"], GPU) == "triton is not installed"


@given(size=st.integers(1, 2**20))
def test_sizes_are_padded_to_a_power_of_two(size: int) -> None:
    assert padded(size) >= max(16, size)
    assert padded(size).bit_count() == 1
    assert padded(size) < 2 * size or padded(size) == 16


@given(rows=st.integers(1, 2**31 - 1), channels=st.integers(1, 1024), hidden=st.integers(1, 2**20))
def test_every_supported_case_has_candidates_that_fit(rows: int, channels: int, hidden: int) -> None:
    found = candidates(sums.case(rows, channels, hidden))
    assert found
    for schedule in found:
        assert schedule.rows < 2 * max(rows, 16)
        assert schedule.hidden < 2 * max(hidden, 16)
        assert schedule.rows * padded(channels) / (32 * schedule.warps) <= 64
        assert schedule.stages == 1 or schedule.hidden < hidden


def test_no_schedule_stands_twice_or_for_nothing() -> None:
    assert len(set(SCHEDULES)) == len(SCHEDULES)
    large = [sums.case(4096, channels, 1024) for channels in (16, 128, 1024)]
    assert {schedule for case in large for schedule in candidates(case)} == set(SCHEDULES)
