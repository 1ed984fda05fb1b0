"""The two engines that every workload gets from its torch expression."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlp_sums as sums
import numpy as np
import pytest
import torch

from mkframe.model.precision import PRECISIONS
from mkframe.plugin import Cost, Defaults, Device, NoOptions, Role, TensorSpec, Tolerance, Workload
from mkframe_plugins import torch_engines

CPU = Device(kind="cpu", name="a CPU", memory_bytes=2**33)
CUDA = Device(kind="cuda", name="a GPU", memory_bytes=2**33, compute_capability="9.0")
EAGER, COMPILED = torch_engines.engines_of(sums.WORKLOAD)
needs_compiler = pytest.mark.skipif(torch_engines.missing_cpp_tools() is not None, reason="needs a C++ compiler and Python's headers")


def allocate(workload: Workload, shape: Any, precision: str, seed: int = 3) -> tuple[dict[str, Any], Mapping[str, Any]]:
    contract = PRECISIONS[precision]
    specs, drawn = workload.tensors(shape, contract), workload.draw(shape, seed)
    tensors = {name: torch.full(spec.shape, float("nan"), dtype=getattr(torch, spec.dtype)) for name, spec in specs.items()}
    for name, values in drawn.items():
        tensors[name].copy_(torch.from_numpy(values))
    return tensors, {name: tensors[name].double().numpy() for name in drawn}


def judged(shape: Any, precision: str, values: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    return sums.judged(shape, precision, values, tensors["y"].double().numpy())


class Scaled(Workload):
    """y = 2 x: small enough to compile many times."""

    id = "scaled"
    Case = sums.MlpCase
    precisions = ("fp32", "fp16")
    defaults = Defaults(engines=("torch-eager",), shapes=("any",), precision="fp32")

    def tensors(self, case: Any, precision: Any) -> Any:
        size = (case.rows, case.channels)
        return {
            "x": TensorSpec(shape=size, dtype=precision.input, role=Role.INPUT),
            "y": TensorSpec(shape=size, dtype="float32", role=Role.OUTPUT),
        }

    def draw(self, case: Any, seed: int) -> Any:
        return {"x": np.random.default_rng(seed).standard_normal((case.rows, case.channels), dtype=np.float32)}

    def reference(self, case: Any, precision: Any, inputs: Any) -> Any:
        return {"y": 2 * inputs["x"]}

    def tolerance(self, precision: Any) -> Tolerance:
        return Tolerance(rtol=0.0, atol=0.0)

    def cost(self, case: Any, precision: Any) -> Cost:
        return Cost(bytes=1, flops=1)

    def expression(self, case: Any, precision: Any, tensors: Mapping[str, Any]) -> None:
        torch.mul(tensors["x"].float(), 2, out=tensors["y"])


def test_every_workload_gets_both_as_baselines() -> None:
    assert [(engine.id, engine.workload) for engine in (EAGER, COMPILED)] == [
        ("torch-cublas", "residual_mlp"),
        ("torch-compile", "residual_mlp"),
    ]
    assert [engine.id for engine in torch_engines.engines_of(Scaled())] == ["torch-eager", "torch-compile"]
    for engine in (EAGER, COMPILED, *torch_engines.engines_of(Scaled())):
        assert engine.baseline
        assert engine.devices == ("cpu", "cuda")
    assert EAGER.precisions == sums.WORKLOAD.precisions
    assert torch_engines.engines_of(Scaled())[1].precisions == ("fp32", "fp16")


@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("size", [(1, 7, 13), (129, 31, 47), (9, 19, 37, 3)], ids=str)
def test_the_expression_is_right_as_it_stands(size: tuple[int, ...], precision: str) -> None:
    shape = sums.case(*size)
    tensors, values = allocate(sums.WORKLOAD, shape, precision)
    call = EAGER.bind(shape, PRECISIONS[precision], tensors, NoOptions()).call
    assert call is not None
    for _ in range(2):
        tensors["y"].fill_(float("nan"))
        call()
        assert judged(shape, precision, values, tensors).passed
    assert all(np.array_equal(tensors[name].double().numpy(), value) for name, value in values.items())


@needs_compiler
@pytest.mark.parametrize("precision", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("size", [(5, 19, 37), (9, 19, 37, 2)], ids=str)
def test_the_compiled_expression_is_right_and_rounds_where_the_contract_does(size: tuple[int, ...], precision: str) -> None:
    """Inductor left alone keeps h in float32 on a CPU; the error is then that of a chain without its roundings."""
    shape = sums.case(*size)
    tensors, values = allocate(sums.WORKLOAD, shape, precision)
    launches = COMPILED.bind(shape, PRECISIONS[precision], tensors, NoOptions())
    assert launches.call is not None
    tensors["y"].fill_(float("nan"))
    launches.call()
    found = judged(shape, precision, values, tensors)
    assert found.passed
    if precision != "fp32":
        without_roundings = sums.judged(shape, precision, values, sums.compute(values, PRECISIONS["fp32"]))
        assert found.mean_abs_error < without_roundings.mean_abs_error / 10
    assert launches.facts["mode"] == "max-autotune-no-cudagraphs"
    assert launches.facts["fullgraph"] is True
    assert launches.facts["dynamic"] is False
    assert launches.facts["operators"] >= 8
    assert launches.facts["exact_casts"] == (precision != "fp32")


@needs_compiler
def test_more_shapes_than_dynamo_keeps_compile_in_one_process_and_go_on_working() -> None:
    workload = Scaled()
    engine = torch_engines.engines_of(workload)[1]
    cells = []
    for rows in range(1, torch._dynamo.config.recompile_limit + 4):
        shape = sums.case(rows, 3, 1)
        tensors, values = allocate(workload, shape, "fp32")
        cells.append((engine.bind(shape, PRECISIONS["fp32"], tensors, NoOptions()), tensors, values))
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for launches, tensors, values in cells:
        tensors["y"].fill_(float("nan"))
        assert launches.call is not None
        launches.call()
        assert np.array_equal(tensors["y"].numpy(), 2 * values["x"])
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before  # none was compiled again


@needs_compiler
def test_compile_workers_end_and_come_back() -> None:
    workload = Scaled()
    engine = torch_engines.engines_of(workload)[1]
    for rows in (21, 22):
        shape = sums.case(rows, 3, 1)
        tensors, values = allocate(workload, shape, "fp16")
        launches = engine.bind(shape, PRECISIONS["fp16"], tensors, NoOptions())
        assert launches.on_ready is not None
        assert launches.call is not None
        launches.on_ready()
        assert not torch._inductor.async_compile._pool_set
        launches.call()
        assert np.array_equal(tensors["y"].numpy(), 2 * values["x"])


def test_nothing_of_inductors_configuration_is_left_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    before = (config.emulate_precision_casts, config.cpp.cxx, config.pattern_matcher)
    for version, matcher in (("2.11.0+cu130", False), ("2.12.1", False), ("2.13.0+cpu", True), ("2.14.0", True)):
        monkeypatch.setattr(torch, "__version__", version)
        with torch_engines._compiling(PRECISIONS["fp16"], "a-compiler"):
            assert config.emulate_precision_casts is True
            assert config.cpp.cxx == ("a-compiler",)
            assert config.pattern_matcher is matcher
        with torch_engines._compiling(PRECISIONS["fp32"], None):
            assert (config.emulate_precision_casts, config.cpp.cxx, config.pattern_matcher) == before
    assert (config.emulate_precision_casts, config.cpp.cxx, config.pattern_matcher) == before
    backends = config.max_autotune_gemm_backends
    assert "TRITON" in backends
    with torch_engines._compiling(PRECISIONS["tf32"], None):
        assert config.max_autotune_gemm_backends == "ATEN"
    assert config.max_autotune_gemm_backends == backends


@pytest.mark.parametrize("engine", [EAGER, COMPILED], ids=lambda engine: engine.id)
def test_tf32_needs_cuda(engine: Any) -> None:
    shape = sums.case(1, 2, 3)
    assert engine.unsupported(shape, PRECISIONS["tf32"], CPU) == "a CPU has no TF32 product"
    assert engine.unsupported(shape, PRECISIONS["tf32"], CUDA) is None


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("before", ["highest", "high", "medium"])
def test_the_tf32_switch_is_set_and_put_back(before: str, allowed: bool) -> None:
    torch.set_float32_matmul_precision(before)
    try:
        with torch_engines.tf32_products(allowed):
            assert torch.backends.cuda.matmul.fp32_precision == ("tf32" if allowed else "ieee")
            assert torch.backends.cuda.matmul.allow_tf32 is allowed
        assert torch.get_float32_matmul_precision() == before
        with pytest.raises(RuntimeError, match="inside"), torch_engines.tf32_products(allowed):
            raise RuntimeError("inside")
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision("highest")


def test_reduced_precision_reductions_are_off_once_an_engine_is_bound() -> None:
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    tensors, _ = allocate(Scaled(), sums.case(2, 3, 1), "fp16")
    torch_engines.engines_of(Scaled())[0].bind(sums.case(2, 3, 1), PRECISIONS["fp16"], tensors, NoOptions())
    assert torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction is False
    assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction is False


def executable(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_compiler_is_cxx_then_gxx_then_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(torch_engines, "_has_python_headers", lambda: True)
    unsupported = torch_engines.engines_of(Scaled())[1].unsupported
    assert unsupported(None, PRECISIONS["fp32"], CPU) == "no C++ compiler: install g++ or clang++, or set CXX"
    assert unsupported(None, PRECISIONS["fp32"], CUDA) is None
    assert torch_engines.engines_of(Scaled())[0].unsupported(None, PRECISIONS["fp32"], CPU) is None
    clang = executable(tmp_path, "clang++")
    torch_engines._find_compiler.cache_clear()
    assert torch_engines.cpp_compiler() == str(clang)
    gxx = executable(tmp_path, "g++")
    torch_engines._find_compiler.cache_clear()
    assert torch_engines.cpp_compiler() == str(gxx)
    own = executable(tmp_path, "my-c++")
    monkeypatch.setenv("CXX", "my-c++")
    assert torch_engines.cpp_compiler() == str(own)
    monkeypatch.setenv("CXX", "absent-c++")
    assert unsupported(None, PRECISIONS["fp32"], CPU) == "CXX names 'absent-c++', which is not there"
    torch_engines._find_compiler.cache_clear()


def test_python_headers_are_needed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_engines, "cpp_compiler", lambda: "g++")
    monkeypatch.setattr(torch_engines, "_has_python_headers", lambda: False)
    reason = COMPILED.unsupported(None, PRECISIONS["fp32"], CPU)
    assert reason is not None
    assert "Python.h" in reason


def test_listing_engines_does_not_import_torch() -> None:
    code = (
        "import json, sys\n"
        "from mkframe.plugin.loader import load_registry\n"
        "registry = load_registry()\n"
        "assert not registry.failures, registry.failures\n"
        "print(json.dumps(registry.engine_ids('residual_mlp')), 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names, loaded = done.stdout.strip().rsplit(" ", 1)
    assert {"torch-cublas", "torch-compile", "conventional", "persistent", "persistent-global"} <= set(json.loads(names))
    assert loaded == "False"
