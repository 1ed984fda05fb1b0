"""Engine triton-fused on a CUDA device: every schedule is right, eagerly and from a graph, and all processes of a run take one choice."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mlp_on_cuda import allocate, judged

from mkframe.model.precision import PRECISIONS
from mkframe.plugin import NoOptions
from mkframe_plugins.residual_mlp import triton_fused
from mkframe_plugins.residual_mlp.workload import MlpCase

pytestmark = pytest.mark.gpu

ENGINE = triton_fused.TritonFused()
NAMES = ("x", "W1", "b1", "W2", "b2", "y")
DEVELOPMENT = [(1, 7, 13), (33, 32, 64), (129, 31, 47), (257, 64, 128), (1024, 128, 256)]
ODD = [(1, 1, 1), (5, 1, 3), (4, 6, 1), (17, 67, 97), (61, 255, 3), (1000, 3, 211), (3, 1021, 257), (2, 1024, 1024), (33, 64, 128, 3)]
precisions = pytest.mark.parametrize("precision", ["fp16", "bf16"])


def case(rows: int, channels: int, hidden: int, depth: int = 1) -> MlpCase:
    return MlpCase(rows=rows, channels=channels, hidden=hidden, depth=depth)


def ragged(count: int, seed: int = 20_261) -> list[tuple[int, ...]]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return [(int(generator.integers(1, 5001)), *map(int, generator.integers(1, 257, size=2))) for _ in range(count)]


@precisions
@pytest.mark.parametrize("size", [*DEVELOPMENT, *ODD, *ragged(6)], ids=str)
def test_right_eagerly_and_from_a_graph(size: tuple[int, ...], precision: str) -> None:
    shape = case(*size)
    tensors, values = allocate(shape, precision)
    launches = ENGINE.bind(shape, PRECISIONS[precision], tensors, NoOptions())
    assert launches.call is not None
    tensors["y"].fill_(float("nan"))
    launches.call()
    found = judged(shape, precision, values, tensors)
    assert found.passed, found
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
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
    print(precision, size, dict(launches.facts), found.max_abs_error, found.rounding_rows)


@precisions
@pytest.mark.parametrize("size", [(33, 32, 64), (129, 31, 47), (1024, 128, 256), (193, 63, 111), (300, 1024, 999)], ids=str)
def test_every_schedule_is_right(size: tuple[int, ...], precision: str) -> None:
    """Whatever the autotuner may choose; and the compiler keeps each in registers."""
    shape = case(*size)
    tensors, values = allocate(shape, precision)
    for schedule in triton_fused.candidates(shape):
        tensors["y"].fill_(float("nan"))
        compiled = triton_fused.kernel()[(-(-shape.rows // schedule.rows),)](
            *(tensors[name] for name in NAMES),
            shape.rows,
            channels=shape.channels,
            hidden=shape.hidden,
            depth=shape.depth,
            width=triton_fused.padded(shape.channels),
            tile=schedule.rows,
            step=schedule.hidden,
            num_warps=schedule.warps,
            num_stages=schedule.stages,
        )
        found = judged(shape, precision, values, tensors)
        assert found.passed, (schedule, found)
        print(precision, size, schedule, compiled.n_regs, compiled.n_spills, compiled.metadata.shared)


@precisions
def test_every_check_passes_and_all_processes_take_one_choice(run_cli: Any, tmp_path: Path, precision: str) -> None:
    result = run_cli(
        "engine=[triton-fused,triton-fused-graph]",
        "device=cuda",
        f"precision={precision}",
        "shape=[development,assessment]",
        "timing.processes=2",
        "timing.rounds=2",
        "timing.samples_per_round=20",
        "--json",
        env={"TRITON_CACHE_DIR": str(tmp_path / "triton")},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = tmp_path.glob("outputs/*/report.json")
    cells = json.loads(path.read_text())["mkframe"]["cells"]
    assert [cell["outcome"] for cell in cells] == ["passed"] * 18
    assert all(cell["nodes"] == ["residual_mlp_fused"] for cell in cells if cell["engine"] == "triton-fused-graph")
    kept = list((tmp_path / "triton").rglob("*.autotune.json"))
    assert len(kept) == 9
    for file in kept:
        timings = json.loads(file.read_text())["configs_timings"]
        assert len(timings) >= 2
        assert all(np.isfinite(times).all() for _, times in timings)


def test_the_baselines_hold_it(run_cli: Any) -> None:
    document = json.loads(run_cli("plan", "engine=baselines", "device=cuda", "shape=smoke", "--format", "json").stdout)
    assert {"triton-fused", "triton-fused-graph"} <= set(document["cases"][0]["engines"])
