"""The CPU engines of residual_mlp: right in every contract and depth, in the buffers that they are given, without allocating."""

from collections.abc import Mapping
from typing import Any

import mlp_sums as sums
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mkframe.model.precision import PRECISIONS
from mkframe.plugin.engine import engine_on
from mkframe_plugins.residual_mlp.conventional import Conventional
from mkframe_plugins.residual_mlp.cpu_schedules import CpuSchedule, TileOptions
from mkframe_plugins.residual_mlp.persistent import Persistent
from mkframe_plugins.residual_mlp.persistent_global import PersistentGlobal

WORKLOAD = sums.WORKLOAD
ENGINES = (Persistent(), PersistentGlobal(), Conventional())
engines = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.id)
precisions = pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])


def allocate(engine: CpuSchedule, shape: Any, precision: str, tile_rows: int, seed: int = 3) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Tensors as the framework hands them over, output and scratch full of NaN; and the inputs as float64 arrays."""
    contract = PRECISIONS[precision]
    values = sums.inputs(shape, contract, seed)
    specs = {**WORKLOAD.tensors(shape, contract), **engine.scratch(shape, contract, TileOptions(tile_rows=tile_rows))}
    tensors = {name: torch.full(spec.shape, float("nan"), dtype=getattr(torch, spec.dtype)) for name, spec in specs.items()}
    for name, value in values.items():
        tensors[name].copy_(torch.from_numpy(value))
    return tensors, values


def bind(engine: CpuSchedule, shape: Any, precision: str, tensors: Mapping[str, Any], tile_rows: int) -> Any:
    launches = engine.bind(shape, PRECISIONS[precision], tensors, TileOptions(tile_rows=tile_rows))
    assert launches.call is not None
    return launches


def judged(shape: Any, precision: str, values: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    return sums.judged(shape, precision, values, tensors["y"].double().numpy())


@engines
@precisions
@pytest.mark.parametrize("size", [(1, 7, 13), (33, 32, 64), (129, 31, 47), (5, 19, 37, 3), (70, 24, 40, 4)], ids=str)
@pytest.mark.parametrize("tile_rows", [1, 32, 1000])
def test_every_schedule_is_right(engine: CpuSchedule, size: tuple[int, ...], precision: str, tile_rows: int) -> None:
    shape = sums.case(*size)
    tensors, values = allocate(engine, shape, precision, tile_rows)
    launches = bind(engine, shape, precision, tensors, tile_rows)
    assert launches.facts == {"tiles": -(-size[0] // tile_rows), "workers": 1}
    launches.call()
    found = judged(shape, precision, values, tensors)
    assert found.passed, found


@engines
def test_a_second_call_takes_new_inputs_and_new_weights(engine: CpuSchedule) -> None:
    shape = sums.case(40, 16, 24, 2)
    tensors, _ = allocate(engine, shape, "fp16", 16, seed=1)
    call = bind(engine, shape, "fp16", tensors, 16).call
    call()
    other = sums.inputs(shape, PRECISIONS["fp16"], 2)
    for name, value in other.items():
        tensors[name].copy_(torch.from_numpy(value))
    for name in set(tensors) - set(other):
        tensors[name].fill_(float("nan"))
    call()
    assert judged(shape, "fp16", other, tensors).passed


@engines
@precisions
def test_inputs_and_weights_are_only_read(engine: CpuSchedule, precision: str) -> None:
    shape = sums.case(20, 16, 24, 2)
    tensors, values = allocate(engine, shape, precision, 8)
    before = {name: tensors[name].clone() for name in values}
    bind(engine, shape, precision, tensors, 8).call()
    assert all(torch.equal(tensors[name], before[name]) for name in values)


class Storages(TorchDispatchMode):
    """Collects the storage of every tensor that an operator returns."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for item in result if isinstance(result, tuple | list) else (result,):
            if isinstance(item, torch.Tensor):
                self.seen.append((str(func), item.untyped_storage().data_ptr()))
        return result


@engines
@precisions
@pytest.mark.parametrize("depth", [1, 3])
def test_a_call_allocates_nothing(engine: CpuSchedule, precision: str, depth: int) -> None:
    shape = sums.case(20, 16, 24, depth)
    tensors, _ = allocate(engine, shape, precision, 8)
    call = bind(engine, shape, precision, tensors, 8).call
    owned = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    with Storages() as storages:
        call()
    assert len(storages.seen) > 10
    assert [name for name, storage in storages.seen if storage not in owned] == []


@engines
@precisions
@pytest.mark.parametrize("depth", [1, 3])
def test_all_scratch_is_used(engine: CpuSchedule, precision: str, depth: int) -> None:
    shape = sums.case(20, 16, 24, depth)
    tensors, values = allocate(engine, shape, precision, 10)
    bind(engine, shape, precision, tensors, 10).call()
    untouched = [name for name in set(tensors) - set(values) if tensors[name].isnan().any()]
    assert untouched == []


def test_where_h_lies_is_what_tells_the_schedules_apart() -> None:
    shape, contract, options = sums.case(100, 16, 24), PRECISIONS["fp16"], TileOptions(tile_rows=32)
    rows = {engine.id: engine.scratch(shape, contract, options)["h"].shape[0] for engine in ENGINES}
    assert rows == {"persistent": 32, "persistent-global": 100, "conventional": 100}
    assert all(engine.scratch(shape, contract, options)["h"].dtype == "float16" for engine in ENGINES)


def test_the_control_differs_from_persistent_in_nothing_but_h() -> None:
    shape, contract, options = sums.case(100, 16, 24, 3), PRECISIONS["bf16"], TileOptions(tile_rows=32)
    own, control = (dict(engine.scratch(shape, contract, options)) for engine in ENGINES[:2])
    del own["h"], control["h"]
    assert own == control
    outputs = []
    for engine in ENGINES[:2]:
        tensors, _ = allocate(engine, shape, "bf16", 32)
        with Operators() as operators:
            bind(engine, shape, "bf16", tensors, 32).call()
        outputs.append((tensors["y"], operators.names))
    assert torch.equal(outputs[0][0], outputs[1][0])
    assert [name for name in outputs[0][1] if "slice" not in name] == [name for name in outputs[1][1] if "slice" not in name]


class Operators(TorchDispatchMode):
    """The operators in the order in which they run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("engine", ENGINES[1:], ids=lambda engine: engine.id)
def test_h_is_rounded_once_after_relu(engine: CpuSchedule, precision: str) -> None:
    """h in memory is the float64 value rounded once, but for sums that lie within float32 error of a boundary."""
    shape = sums.case(64, 32, 48)
    tensors, values = allocate(engine, shape, precision, 16)
    bind(engine, shape, precision, tensors, 16).call()
    exact = np.maximum(values["x"] @ values["W1"] + values["b1"], 0)
    expected = sums.narrow(exact.astype(np.float32), PRECISIONS[precision].hidden)
    found = tensors["h"].float().numpy()
    assert (found >= 0).all()
    assert np.mean(found != expected) < 0.01
    assert np.max(np.abs(found - exact) / np.maximum(exact, 1e-3)) < (2.0**-10 if precision == "fp16" else 2.0**-7)


@pytest.mark.parametrize("wrong", [0, -5])
def test_a_tile_has_at_least_one_row(wrong: int) -> None:
    with pytest.raises(ValueError, match=r"tile_rows must be at least 1, not -?\d"):
        TileOptions(tile_rows=wrong)


@engines
def test_scratch_never_exceeds_what_the_rows_need(engine: CpuSchedule) -> None:
    shape = sums.case(5, 16, 24)
    for name, spec in engine.scratch(shape, PRECISIONS["fp16"], TileOptions(tile_rows=10**9)).items():
        assert name.startswith("wide_") or spec.shape[0] == 5


@engines
def test_they_say_what_they_are(engine: CpuSchedule) -> None:
    assert engine.workload == "residual_mlp"
    assert engine.devices == ("cpu", "cuda")
    assert engine_on(engine, "cpu") is engine
    for kind in engine.devices:
        assert engine_on(engine, kind).id == engine.id
    assert engine.precisions == ("fp16", "bf16", "fp32")
    assert "CUDA" in engine.limits
    assert not engine.baseline
