"""The documented third-party files, loaded through the door and run against their references; no line of mkframe knows them."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mkframe.check import mutants
from mkframe.model.precision import PRECISIONS
from mkframe.plugin import Device, round_to
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry
from mkframe_plugins.torch_engines import missing_cpp_tools

CPU = Device(kind="cpu", name="a CPU", memory_bytes=2**33)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """Both examples in a folder of somebody else."""
    folder = tmp_path_factory.mktemp("third party")
    for example in (Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.py"):
        shutil.copy(example, folder)
    found = load_registry([str(folder)])
    assert found.failures == ()
    return found


def inputs_of(workload: Any, case: Any, precision: str, seed: int) -> dict[str, Any]:
    specs = workload.tensors(case, PRECISIONS[precision])
    return {name: round_to(value.astype(np.float64), specs[name].dtype) for name, value in workload.draw(case, seed).items()}


def run(registry: Registry, workload_id: str, engine_id: str, case: Any, precision: str, options: Mapping[str, Any]) -> Any:
    """Binds one cell, calls it on poisoned outputs, and returns the workload's Acceptance."""
    workload, engine, contract = registry.workload(workload_id), registry.engine(workload_id, engine_id), PRECISIONS[precision]
    assert engine.unsupported(case, contract, CPU) is None
    inputs, chosen = inputs_of(workload, case, precision, 1), engine.Options(**options)
    specs = {**workload.tensors(case, contract), **engine.scratch(case, contract, chosen)}
    tensors = {name: torch.full(spec.shape, float("nan"), dtype=getattr(torch, spec.dtype)) for name, spec in specs.items()}
    for name, value in inputs.items():
        tensors[name].copy_(torch.from_numpy(value))
    call = engine.bind(case, contract, tensors, chosen).call
    assert call is not None
    for name in set(tensors) - set(inputs):
        tensors[name].fill_(float("nan"))
    call()
    reference = workload.reference(case, contract, inputs)
    outputs = {name: tensors[name].double().numpy() for name in reference}
    return workload.accepts(case, contract, inputs, outputs, reference)


def test_the_examples_are_as_short_as_promised(root: Path) -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (root / "docs" / "examples").glob("*.py")}
    assert lines["rmsnorm.py"] <= 60
    code = [line for line in (root / "docs" / "examples" / "my_engine.py").read_text().split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= 22


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("tile_rows", [1, 8, 64])
def test_the_engine_computes_residual_mlp(registry: Registry, precision: str, tile_rows: int) -> None:
    case = registry.workload("residual_mlp").Case(rows=33, channels=32, hidden=64)
    assert run(registry, "residual_mlp", "my-engine", case, precision, {"tile_rows": tile_rows}).passed


def test_the_engine_says_what_it_cannot_do(registry: Registry) -> None:
    case = registry.workload("residual_mlp").Case(rows=3, channels=4, hidden=5, depth=2)
    assert registry.engine("residual_mlp", "my-engine").unsupported(case, PRECISIONS["fp16"], CPU) == "one block only"
    assert registry.engines["residual_mlp", "my-engine"].origin == "folder third party0/my_engine.py"


def test_the_workload_gets_the_torch_engines_for_nothing(registry: Registry) -> None:
    assert registry.engine_ids("rmsnorm") == ("torch-eager", "torch-compile")


@pytest.mark.parametrize("engine", ["torch-eager", "torch-compile"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_the_workload_runs_with_them(registry: Registry, engine: str, precision: str) -> None:
    if engine == "torch-compile" and (missing := missing_cpp_tools()):
        pytest.skip(missing)
    workload = registry.workload("rmsnorm")
    for shape in workload.shapes["norm"]:
        found = run(registry, "rmsnorm", engine, workload.Case(**shape), precision, {})
        assert found.passed, found


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_the_workload_rejects_its_mutants(registry: Registry, precision: str) -> None:
    workload, contract = registry.workload("rmsnorm"), PRECISIONS[precision]
    for shape in workload.shapes["norm"]:
        case = workload.Case(**shape)
        first, second = (inputs_of(workload, case, precision, seed) for seed in (1, 2))
        right, other = (workload.reference(case, contract, inputs) for inputs in (first, second))
        assert mutants.survivors(workload, case, contract, first, right, other) == ()


def test_the_workload_normalises(registry: Registry) -> None:
    """Against the property that gives it its name: with g = 1 every row of y has a mean square of one."""
    workload = registry.workload("rmsnorm")
    case = workload.Case(rows=7, channels=50)
    inputs = inputs_of(workload, case, "fp32", 1) | {"g": np.ones(50)}
    y = workload.reference(case, PRECISIONS["fp32"], inputs)["y"]
    assert np.mean(y**2, axis=1) == pytest.approx(np.ones(7), rel=1e-5)
    assert np.sign(y).tolist() == np.sign(inputs["x"]).tolist()
