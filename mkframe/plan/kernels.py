"""Which kernels a configuration needs on which architectures, without a device of any of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from mkframe.errors import ConfigError, PluginError
from mkframe.kernels.targets import capability_of
from mkframe.model.device import Device
from mkframe.model.kernel import Kernel, Target
from mkframe.plan.engines import Selected, answer, select, unsupported
from mkframe.plan.shapes import iterate, shape_sets
from mkframe.plugin.answers import check_kernels
from mkframe.plugin.engine import Engine
from mkframe.plugin.registry import Registry, choices
from mkframe.settings.nodes import Config

MOST_CELLS = 100_000
NOT_AHEAD = "not compiled ahead: it has no kernels that can be"


@dataclass(kw_only=True, slots=True)
class Use:
    """Which engines launch a kernel, and for which cases ("development[0]")."""

    engines: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A case that an engine has no kernels for on one architecture, and why. `failed`: it gave no proper answer."""

    engine: str
    arch: str
    case: str
    reason: str
    failed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Kernels by architecture, each once with its uses; what cannot be had; and the engines without kernels, with the reason."""

    kernels: dict[Target, dict[Kernel, Use]]
    refusals: tuple[Refusal, ...]
    without: dict[str, str]


def wanted_kernels(config: Config, registry: Registry, targets: Sequence[Target]) -> Wanted:
    """The kernels of every selected engine for every case and target.

    Raises ConfigError or SelectionError as a plan does, PluginError where an engine that was asked for by name is broken.
    """
    workload = registry.workload(config.workload.id)
    if config.precision.id not in workload.precisions:
        raise ConfigError(
            f"precision: {workload.id} does not define {config.precision.id}; {choices(config.precision.id, workload.precisions)}"
        )
    engines = _without_graph_twins(select(config.engine, workload.id, registry, _device(targets[0])))
    sets = shape_sets(config.shape, workload, most_cases=MOST_CELLS // (len(engines) * len(targets)))
    kernels: dict[Target, dict[Kernel, Use]] = {target: {} for target in targets}
    refusals: list[Refusal] = []
    bringing: set[str] = set()
    ahead = [item for item in engines if _brings_kernels(item.engine)]
    for target in targets:
        device = _device(target)
        for item in ahead:
            for shape_set, index, case in iterate(sets):
                label = f"{shape_set.name}[{index}]"
                try:
                    reason = unsupported(item, case, config.precision, device)
                    found = () if reason is not None else _kernels(item, case, config, target)
                except PluginError as error:
                    refusals.append(Refusal(engine=item.engine.id, arch=target.arch, case=label, reason=str(error), failed=True))
                    continue
                if reason is not None:
                    refusals.append(Refusal(engine=item.engine.id, arch=target.arch, case=label, reason=reason))
                for kernel in found:
                    bringing.add(item.engine.id)
                    _note(kernels[target].setdefault(kernel, Use()), item.engine.id, label)
    refused = {refusal.engine for refusal in refusals}
    without = [item.engine.id for item in engines if item.engine.id not in bringing | refused]
    return Wanted(kernels=kernels, refusals=tuple(refusals), without=dict.fromkeys(without, NOT_AHEAD))


def _kernels(item: Selected, case: object, config: Config, target: Target) -> tuple[Kernel, ...]:
    return answer("kernels()", check_kernels, item.engine.kernels, case, config.precision, target, item.options)


def _brings_kernels(engine: Engine) -> bool:
    return "cuda" in engine.devices and type(engine).kernels is not Engine.kernels


def _without_graph_twins(engines: Sequence[Selected]) -> list[Selected]:
    """A graph form launches the kernels of its engine: it counts only where it has options of its own."""
    kept: list[Selected] = []
    for item in engines:
        if not any(other.engine.id == item.engine.id and other.options == item.options for other in kept):
            kept.append(item)
    return kept


def _note(use: Use, engine: str, case: str) -> None:
    for items, new in ((use.engines, engine), (use.cases, case)):
        if new not in items:
            items.append(new)


def _device(target: Target) -> Device:
    """A device of an architecture, for the question whether an engine supports a case. No board is named, so its memory is no limit."""
    return Device(kind="cuda", name=target.arch, memory_bytes=sys.maxsize, compute_capability=capability_of(target.arch))
