"""From a configuration to what a conformance test asks about: options, precisions, devices and cases."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from mkframe.config.store import GRID
from mkframe.conformance.messages import CaseOf, Setup
from mkframe.conformance.shapes import SEED, small_cases
from mkframe.errors import ConfigError, SelectionError
from mkframe.model.device import Device
from mkframe.model.precision import PRECISIONS
from mkframe.plan.devices import resolve
from mkframe.plan.engines import select
from mkframe.plan.shapes import ShapeSet, shape_sets
from mkframe.plugin.registry import Registry
from mkframe.plugin.workload import Workload
from mkframe.settings.nodes import Config, DeviceConfig, DeviceKind

GENERATED = 12
_MOST_CASES = 10_000
_LARGE_FLOPS = 3e8
_LARGE_BYTES = 64e6


def setup_of(config: Config, registry: Registry, engine_id: str, *, own_shapes: bool, own_precision: bool) -> Setup:
    """What to ask about. `own_shapes` and `own_precision`: whether the user named shape sets and a precision; otherwise all are meant.

    Raises SelectionError or ConfigError as a plan does.
    """
    workload = registry.workload(config.workload.id)
    engine = registry.engine(workload.id, engine_id)
    shared = tuple(name for name in engine.precisions if name in workload.precisions)
    if own_precision and config.precision.id not in shared:
        raise SelectionError(f"precision: {engine_id} and {workload.id} share {', '.join(shared) or 'none'}, not {config.precision.id}")
    devices = _devices(config.device)
    (selected, *_) = select(config.engine, workload.id, registry, devices[0])
    cases, left_out = _cases(config, workload, own_shapes)
    return Setup(
        engine=engine_id,
        workload=workload.id,
        plugin_paths=config.plugin_path,
        options=selected.plan.options,
        precisions=(config.precision.id,) if own_precision else shared,
        devices=devices,
        cases=cases,
        left_out=left_out,
    )


def _devices(config: DeviceConfig) -> tuple[Device, ...]:
    """The device that was named; with `auto` the CPU and, where there is one, the first CUDA device."""
    device = resolve(config).device
    if config.kind is not DeviceKind.AUTO or device.kind == "cpu":
        return (device,)
    return (resolve(DeviceConfig(kind=DeviceKind.CPU)).device, device)


def _cases(config: Config, workload: Workload, own_shapes: bool) -> tuple[tuple[CaseOf, ...], int]:
    """Cases of shape sets, then generated ones; and how many were too large. Sets that the user named are taken whole."""
    listed = list(_listed(config.shape, workload, own_shapes))
    kept = [(item, index, case) for item, index, case in listed if own_shapes or not _large(workload, case)]
    named = [CaseOf(label=f"{item.name}[{index}]", seed=item.seed, values=asdict(case), generated=False) for item, index, case in kept]
    made = [
        CaseOf(label=f"generated[{index}]", seed=SEED + index, values=asdict(case), generated=True)
        for index, case in enumerate(small_cases(workload, GENERATED))
    ]
    return (*named, *made), len(listed) - len(kept)


def _listed(shapes: Mapping[str, Mapping[str, Any]], workload: Workload, own_shapes: bool) -> Iterator[tuple[ShapeSet, int, Any]]:
    for name, node in shapes.items():
        if name == GRID and not own_shapes:
            continue
        try:
            sets = shape_sets({name: node}, workload, most_cases=_MOST_CASES)
        except ConfigError:
            if own_shapes:
                raise
            continue  # a set of another workload
        for item in sets:
            yield from ((item, index, case) for index, case in enumerate(item.cases))


def _large(workload: Workload, case: Any) -> bool:
    cost = workload.cost(case, PRECISIONS[workload.defaults.precision])
    return cost.flops > _LARGE_FLOPS or cost.bytes > _LARGE_BYTES
