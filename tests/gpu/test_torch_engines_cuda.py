"""The engines of the torch expression on a CUDA device: right in every contract, compiled and captured, with the switches in place."""

from typing import Any

import numpy as np
import pytest
import torch
from mlp_on_cuda import WORKLOAD, allocate, judged

from mkframe.model.precision import PRECISIONS
from mkframe.plugin import NoOptions
from mkframe_plugins import torch_engines
from mkframe_plugins.residual_mlp.workload import MlpCase

pytestmark = pytest.mark.gpu

EAGER, COMPILED = torch_engines.engines_of(WORKLOAD)
engines = pytest.mark.parametrize("engine", [EAGER, COMPILED], ids=lambda engine: engine.id)


def case(rows: int, channels: int, hidden: int, depth: int = 1) -> MlpCase:
    return MlpCase(rows=rows, channels=channels, hidden=hidden, depth=depth)


@engines
@pytest.mark.parametrize(
    ("precision", "size"),
    [
        *(
            (precision, size)
            for precision in ("fp16", "bf16")
            for size in [(1, 7, 13), (5, 1, 3), (4, 6, 1), (257, 64, 128), (33, 64, 128, 3)]
        ),
        *((precision, size) for precision in ("fp32", "tf32") for size in [(1, 7, 13), (257, 64, 128)]),
    ],
    ids=str,
)
def test_right_eagerly_and_from_a_graph(engine: Any, precision: str, size: tuple[int, ...]) -> None:
    shape = case(*size)
    tensors, values = allocate(shape, precision)
    before = torch.get_float32_matmul_precision()
    launches = engine.bind(shape, PRECISIONS[precision], tensors, NoOptions())
    assert launches.call is not None
    tensors["y"].fill_(float("nan"))
    launches.call()
    found = judged(shape, precision, values, tensors)
    assert found.passed, found
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            launches.call()
        graph.capture_begin()
        launches.call()
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    tensors["y"].fill_(float("nan"))
    tensors["x"].neg_()
    graph.replay()
    torch.cuda.synchronize()
    changed = judged(shape, precision, {**values, "x": -values["x"]}, tensors)
    assert changed.passed, changed
    assert torch.get_float32_matmul_precision() == before
    print(engine.id, precision, size, dict(launches.facts), found.max_abs_error, found.rounding_rows)


@engines
def test_tf32_products_are_allowed_in_tf32_alone(engine: Any) -> None:
    """Large enough for tensor cores: the error of TF32 products stands far above that of float32 ones."""
    shape, errors = case(512, 512, 1024), {}
    for precision in ("fp32", "tf32"):
        tensors, values = allocate(shape, precision)
        call = engine.bind(shape, PRECISIONS[precision], tensors, NoOptions()).call
        assert call is not None
        call()
        errors[precision] = judged(shape, precision, values, tensors).mean_abs_error
    assert errors["fp32"] < 1e-6
    assert errors["tf32"] > 20 * errors["fp32"]


@engines
def test_half_products_end_in_float32(engine: Any) -> None:
    """With many terms, a product or a partial sum that were rounded to half would stand out."""
    shape = case(64, 2048, 4096)
    tensors, values = allocate(shape, "fp16")
    call = engine.bind(shape, PRECISIONS["fp16"], tensors, NoOptions()).call
    assert call is not None
    call()
    found = judged(shape, "fp16", values, tensors)
    assert found.passed
    assert found.mean_abs_error < 2e-5
    assert np.isfinite(found.max_abs_error)
