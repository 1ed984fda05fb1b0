"""residual_mlp on a CUDA device, for tests of its engines: drawn tensors, and whether an output is right."""

from collections.abc import Mapping
from typing import Any

import torch

from mkframe.model.precision import PRECISIONS
from mkframe.plugin import TensorSpec
from mkframe_plugins.residual_mlp.workload import MlpCase, ResidualMlp

WORKLOAD = ResidualMlp()
SEED = 3


def allocate(case: MlpCase, precision: str, scratch: Mapping[str, TensorSpec] | None = None) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The tensors of a case, inputs drawn and everything else NaN; and the inputs as the device holds them, in float64."""
    drawn = WORKLOAD.draw(case, SEED)
    tensors = {}
    for name, spec in {**WORKLOAD.tensors(case, PRECISIONS[precision]), **(scratch or {})}.items():
        tensors[name] = torch.full(spec.shape, float("nan"), dtype=getattr(torch, spec.dtype), device="cuda")
        if name in drawn:
            tensors[name].copy_(torch.from_numpy(drawn[name]))
    return tensors, {name: tensors[name].double().cpu().numpy() for name in drawn}


def judged(case: MlpCase, precision: str, values: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    """What the workload says of tensors["y"] for these inputs."""
    contract = PRECISIONS[precision]
    reference = WORKLOAD.reference(case, contract, values)
    return WORKLOAD.accepts(case, contract, values, {"y": tensors["y"].double().cpu().numpy()}, reference)
