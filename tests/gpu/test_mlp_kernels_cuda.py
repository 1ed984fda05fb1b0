"""The CuTe DSL kernels of residual_mlp on a CUDA device: right on every kind of shape, eagerly and from a graph."""

from pathlib import Path

import pytest
import torch
import yaml
from mlp_on_cuda import allocate, judged

from mkframe.graph.capture import capture
from mkframe.graph.launch import callable_of
from mkframe.kernels import compile_kernels, current_target
from mkframe.model.precision import PRECISIONS
from mkframe.plugin import Engine
from mkframe_plugins.residual_mlp.conventional_cuda import ConventionalCuda
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.persistent_cuda import PersistentCuda, PersistentGlobalCuda
from mkframe_plugins.residual_mlp.workload import MlpCase

pytestmark = pytest.mark.gpu

CONF = Path(__file__).resolve().parents[2] / "conf"

CHOSEN = [
    (1, 7, 13),
    (8, 5, 64),
    (9, 16, 30),
    (5, 19, 37),
    (33, 32, 64),
    (129, 31, 47),
    (257, 64, 128),
    (1024, 128, 256),
    (49, 48, 96),
    (193, 63, 111),
    (513, 96, 192),
    (5000, 128, 256),
    (5000, 7, 13),
    (5000, 31, 47),
    (5000, 64, 128),
    (77, 256, 256),
    (40, 16, 256),
    (40, 256, 16),
    (100, 1, 1),
    (3, 250, 3),
]


def ragged() -> list[tuple[int, int, int]]:
    """The shapes of shape=ragged."""
    cases = yaml.safe_load((CONF / "shape/ragged.yaml").read_text())["cases"]
    return [(case["rows"], case["channels"], case["hidden"]) for case in cases]


@pytest.mark.parametrize("engine", [PersistentCuda(), PersistentGlobalCuda(), ConventionalCuda()], ids=lambda engine: engine.id)
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_right_eagerly_and_from_a_graph(engine: Engine, precision: str) -> None:
    wrong: list[str] = []
    torch.zeros(1, device="cuda")
    stream, target, contract = torch.cuda.Stream(), current_target(), PRECISIONS[precision]
    sizes = [*CHOSEN, *ragged()]
    cases = [MlpCase(rows=rows, channels=channels, hidden=hidden) for rows, channels, hidden in sizes]
    compile_kernels(tuple({kernel for case in cases for kernel in engine.kernels(case, contract, target, TileOptions())}), target)
    for size, case in zip(sizes, cases, strict=True):
        tensors, values = allocate(case, precision, engine.scratch(case, contract, TileOptions()))
        launches = engine.bind(case, contract, tensors, TileOptions())
        call = callable_of(launches)
        for flipped in (False, True):
            tensors["y"].fill_(float("nan"))
            if flipped:
                tensors["x"].neg_()
                values = {**values, "x": -values["x"]}
                graph = capture(call, stream)
                tensors["y"].fill_(float("nan"))
                torch.cuda.synchronize()
                with torch.cuda.stream(stream):
                    graph.replay()
            else:
                call()
            torch.cuda.synchronize()
            found = judged(case, precision, values, tensors)
            if not found.passed:
                wrong.append(f"{size} {'graph' if flipped else 'eager'} {launches.nodes[0].name}: {found}")
    assert not wrong, "\n".join(wrong)
