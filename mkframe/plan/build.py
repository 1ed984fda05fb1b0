"""Configuration to plan."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mkframe.config.load import public
from mkframe.errors import ConfigError
from mkframe.model.device import Device
from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.model.precision import Precision
from mkframe.model.report import CostRecord
from mkframe.plan import memory
from mkframe.plan.budget import rounds_within
from mkframe.plan.engines import Selected, answer, select, unsupported
from mkframe.plan.estimate import estimate
from mkframe.plan.history import load_history
from mkframe.plan.host import measure_host
from mkframe.plan.shapes import ShapeSet, iterate, shape_of, shape_sets
from mkframe.plan.timing import timing_plan
from mkframe.plugin.answers import check_cost
from mkframe.plugin.registry import Registry, choices
from mkframe.plugin.workload import Workload
from mkframe.settings.nodes import Config

MOST_CELLS = 100_000


def build_plan(config: Config, registry: Registry, device: Device) -> RunPlan:
    """Everything that a run will do on `device`. Allocates nothing, imports no torch.

    With `timing.budget_s` the plan and its configuration hold the number of rounds that was chosen, and no budget any more: so a
    resumed run does not choose again.

    Raises ConfigError, SelectionError or PluginError; never leaves a mistake of the configuration to the run.
    """
    workload = registry.workload(config.workload.id)
    if config.precision.id not in workload.precisions:
        raise ConfigError(
            f"precision: {workload.id} does not define {config.precision.id}; {choices(config.precision.id, workload.precisions)}"
        )
    timing = timing_plan(config.timing, device)
    engines = select(config.engine, workload.id, registry, device)
    sets = shape_sets(config.shape, workload, most_cases=MOST_CELLS // len(engines))
    cases = _cases(sets, engines, workload, config.precision, device, timing.protocol)
    memory.check_samples(timing, sum(len(case.runnable) for case in cases))
    plan = RunPlan(
        workload=workload.id,
        precision=config.precision,
        device=device,
        timing=timing,
        energy=config.energy.protocol.value,
        cases=cases,
        seeds={item.name: item.seed for item in sets},
        config=public(config),
        plugin_paths=config.plugin_path,
        unsafe_plugins=registry.unsafe,
        wait_s=_waiting(config.device.wait_s),
    )
    return plan if config.timing.budget_s is None else _within_budget(plan, config, workload, config.timing.budget_s)


def _within_budget(plan: RunPlan, config: Config, workload: Workload, budget_s: float) -> RunPlan:
    choice = rounds_within(budget_s, estimate(plan, workload, load_history(), measure_host()))
    chosen = replace(config, timing=replace(config.timing, rounds=choice.rounds, budget_s=None))
    return replace(plan, timing=replace(plan.timing, rounds=choice.rounds), config=public(chosen), notes=(*plan.notes, choice.note))


def _waiting(wait_s: float) -> float:
    if wait_s < 0:
        raise ConfigError(f"device.wait_s: must be at least 0, not {wait_s:g}")
    return wait_s


def _cases(
    sets: Sequence[ShapeSet], engines: Sequence[Selected], workload: Workload, precision: Precision, device: Device, protocol: str
) -> tuple[CasePlan, ...]:
    machine = memory.machine_memory_bytes()
    return tuple(_case(item, index, case, engines, workload, precision, device, protocol, machine) for item, index, case in iterate(sets))


def _case(
    shape_set: ShapeSet,
    index: int,
    case: Any,
    engines: Sequence[Selected],
    workload: Workload,
    precision: Precision,
    device: Device,
    protocol: str,
    machine_bytes: int,
) -> CasePlan:
    reasons = [unsupported(selected, case, precision, device, protocol) for selected in engines]
    runnable = [selected for selected, reason in zip(engines, reasons, strict=True) if reason is None]
    needed = memory.need(workload, case, precision, runnable)
    memory.check(needed, device, workload, shape_set.name, case, machine_bytes)
    return CasePlan(
        set=shape_set.name,
        index=index,
        seed=shape_set.seed,
        case=case,
        shape=shape_of(workload, case),
        cost=_cost(workload, case, precision),
        cells=tuple(CellPlan(engine=item.plan, unsupported=reason) for item, reason in zip(engines, reasons, strict=True)),
    )


def _cost(workload: Workload, case: Any, precision: Precision) -> CostRecord:
    """Asked before anything runs: whether a time is possible is decided by it, and on resume too."""
    cost = answer(f"workload {workload.id}: cost()", check_cost, workload.cost, case, precision)
    return CostRecord(bytes=cost.bytes, flops=cost.flops)
