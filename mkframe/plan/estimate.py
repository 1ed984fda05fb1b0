"""How long a plan will take, part by part, before anything runs.

A cell that an earlier run measured under the same conditions (workload, engine, shape, precision, device, protocol) takes what it took
then. Another one takes what a slow roofline says (docs/estimate.md), scaled by what the same engine's other shapes took.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from mkframe.model.plan import CasePlan, CellPlan, RunPlan, TimingPlan
from mkframe.model.tensors import Role
from mkframe.peaks import flops_of
from mkframe.plan.engines import asked
from mkframe.plan.history import History, Seen, key_of
from mkframe.plan.host import HostRates
from mkframe.plugin.workload import Cost, Workload


class Part(StrEnum):
    """What a run spends its time on, in the order in which a process gets there."""

    START = "start"
    DRAW = "draw"
    BIND = "bind"
    CHECK = "check"
    WARM_UP = "warm-up"
    TIMING = "timing"
    STATISTICS = "statistics"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Defaults:
    """Cautious figures for a kind of device that nothing is known of. Rates in operations and bytes per second, the rest in seconds.
    A CPU's rate of operations is measured instead."""

    flops_per_s: float
    bytes_per_s: float
    launch_s: float
    bind_s: float
    start_s: float
    sample_s: float
    block_s: float


_DEFAULTS = {
    "cpu": _Defaults(flops_per_s=math.nan, bytes_per_s=4e9, launch_s=5e-5, bind_s=1.0, start_s=4.0, sample_s=1e-6, block_s=4e-3),
    "cuda": _Defaults(flops_per_s=5e12, bytes_per_s=3e11, launch_s=1e-4, bind_s=3.0, start_s=9.0, sample_s=6e-5, block_s=6e-3),
}
_SHARE_OF_HOST = 0.25  # of the measured rate of float64 products: engines convert, too, and small products are slow
_SHARE_OF_PEAK = 0.1  # of a device card, for an engine that was never seen
_VARIANTS = 3  # inputs with a reference each: base, negated, fresh
_DRAWS = 2
_COMPARED_S_PER_ELEMENT = 5e-8  # float64 comparison with the reference
_MUTANTS = 5
_CHECKED_CALLS = 6  # two poisons, two inputs, shifted buffers, after timing
_CHECK_S = 1e-3
_DRAW_S = 5e-3
_BOOTSTRAP_S_PER_SAMPLE = 3 * 500 * 2e-8  # three bootstraps of 500 resamples: the interval, and both sides of a verdict
_SHORTEST_CALL_S = 1e-7
_EVICTION_S = 5e-4  # a buffer of a few L2 caches written, another one read


@dataclass(frozen=True, kw_only=True, slots=True)
class CellCost:
    """One runnable cell, in seconds: bind and check once a process, warm-up and timing once a round, statistics a round too.

    `known`: an earlier run measured this cell.
    """

    engine: str
    bind_s: float
    check_s: float
    warm_up_s: float
    timing_s: float
    statistics_s: float
    known: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseCost:
    """One case: `draw_s` once a process, and its cells."""

    case: CasePlan
    draw_s: float
    cells: tuple[CellCost, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Expected seconds of a whole run: `start_s` a process, the rest by case."""

    processes: int
    rounds: int
    start_s: float
    cases: tuple[CaseCost, ...]

    @property
    def parts(self) -> dict[Part, float]:
        """Seconds by part, over all processes and rounds."""
        cells = [cell for case in self.cases for cell in case.cells]
        return {
            Part.START: self.processes * self.start_s,
            Part.DRAW: self.processes * sum(case.draw_s for case in self.cases),
            Part.BIND: self.processes * sum(cell.bind_s for cell in cells),
            Part.CHECK: self.processes * sum(cell.check_s for cell in cells),
            Part.WARM_UP: self.rounds * sum(cell.warm_up_s for cell in cells),
            Part.TIMING: self.rounds * sum(cell.timing_s for cell in cells),
            Part.STATISTICS: self.rounds * sum(cell.statistics_s for cell in cells),
        }

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())

    @property
    def fixed_s(self) -> float:
        """What does not depend on the number of rounds."""
        parts = self.parts
        return parts[Part.START] + parts[Part.DRAW] + parts[Part.BIND] + parts[Part.CHECK]

    @property
    def round_s(self) -> float:
        """What one more round costs."""
        return (self.total_s - self.fixed_s) / self.rounds


def estimate(plan: RunPlan, workload: Workload, history: History, host: HostRates) -> Estimate:
    """Expected seconds of `plan`. Raises PluginError where the workload cannot say what a case costs."""
    model = _Model(plan, workload, history, host)
    start_s = _DEFAULTS[plan.device.kind].start_s + plan.timing.spin_up_s
    cases = tuple(model.case(case) for case in plan.cases if case.runnable)
    return Estimate(processes=plan.timing.processes, rounds=plan.timing.rounds, start_s=start_s if cases else 0.0, cases=cases)


def sample_s(timing: TimingPlan, call_s: float, overhead_s: float) -> float:
    """One sample of a call that takes `call_s`: as many calls as the protocol makes (docs/measurement.md)."""
    if timing.protocol == "replay":
        return timing.replays * call_s + overhead_s
    if timing.chained:
        more = max(1, math.ceil(timing.slope_us * 1e-6 / max(call_s, _SHORTEST_CALL_S)))
        return (2 * timing.k1 + more) * call_s + 2 * overhead_s
    held = 1.5 * call_s if timing.hold else 0.0  # the delay lasts as long as the host needs to enqueue, and half as much again
    return call_s + held + overhead_s + (_EVICTION_S if timing.evicts else 0.0)


class _Model:
    def __init__(self, plan: RunPlan, workload: Workload, history: History, host: HostRates) -> None:
        self._plan = plan
        self._workload = workload
        self._history = history
        self._host = host
        self._defaults = _DEFAULTS[plan.device.kind]
        self._scales: dict[str, tuple[float, float]] = {}

    def case(self, case: CasePlan) -> CaseCost:
        plan, workload = self._plan, self._workload
        specs = asked(f"workload {workload.id}: tensors()", workload.tensors, case.case, plan.precision)
        drawn = sum(spec.elements for spec in specs.values() if spec.role in (Role.INPUT, Role.WEIGHT))
        compared_s = sum(spec.elements for spec in specs.values() if spec.role is Role.OUTPUT) * _COMPARED_S_PER_ELEMENT
        flops = self._cost(case.case).flops
        draw_s = (
            _DRAW_S + _DRAWS * 4 * drawn / self._host.draw_bytes_per_s + _VARIANTS * flops / self._host.flops_per_s + _MUTANTS * compared_s
        )
        return CaseCost(case=case, draw_s=draw_s, cells=tuple(self._cell(case, cell, compared_s) for cell in case.runnable))

    def _cell(self, case: CasePlan, cell: CellPlan, compared_s: float) -> CellCost:
        timing, defaults = self._plan.timing, self._defaults
        seen = self._history.entries.get(key_of(*self._conditions(cell.engine.id), case.shape))
        known = seen is not None
        if seen is None:
            call_scale, bind_s = self._scale(cell.engine.id)
            call_s = self._call_s(case.case) * call_scale
            check_s = bind_s + _CHECKED_CALLS * (call_s + compared_s + _CHECK_S)
            seen = Seen(call_s=call_s, bind_s=bind_s, check_s=check_s)
        return CellCost(
            engine=cell.engine.id,
            bind_s=seen.bind_s,
            check_s=seen.check_s,
            warm_up_s=timing.warmups * seen.call_s,
            timing_s=timing.samples_per_round * sample_s(timing, seen.call_s, defaults.sample_s) + defaults.block_s,
            statistics_s=timing.samples_per_round * _BOOTSTRAP_S_PER_SAMPLE,
            known=known,
        )

    def _conditions(self, engine: str) -> tuple[str, str, str, str, str]:
        plan = self._plan
        return plan.workload, engine, plan.precision.id, plan.device.name, plan.timing.protocol

    def _scale(self, engine: str) -> tuple[float, float]:
        """(how much longer than the roofline the engine's other shapes took, what binding one of them took): medians."""
        if engine not in self._scales:
            ratios, binds = [], []
            for shape, seen in self._history.of_engine(*self._conditions(engine)):
                case = _case_of(self._workload, shape)
                if case is not None:
                    ratios.append(seen.call_s / self._call_s(case))
                    binds.append(seen.bind_s)
            self._scales[engine] = (median(ratios), median(binds)) if ratios else (1.0, self._defaults.bind_s)
        return self._scales[engine]

    def _call_s(self, case: Any) -> float:
        cost, defaults, card = self._cost(case), self._defaults, self._plan.device.card
        flops_per_s, bytes_per_s = defaults.flops_per_s, defaults.bytes_per_s
        if self._plan.device.kind == "cpu":
            flops_per_s = _SHARE_OF_HOST * self._host.flops_per_s
        if card is not None:
            peak = flops_of(self._plan.precision, card)
            flops_per_s = flops_per_s if peak is None else _SHARE_OF_PEAK * peak
            bytes_per_s = _SHARE_OF_PEAK * card.memory_bytes_per_s
        return defaults.launch_s + max(cost.flops / flops_per_s, cost.bytes / bytes_per_s)

    def _cost(self, case: Any) -> Cost:
        cost: Cost = asked(f"workload {self._workload.id}: cost()", self._workload.cost, case, self._plan.precision)
        return cost


def _case_of(workload: Workload, shape: Mapping[str, int]) -> Any:
    """The case of a remembered shape, or None where the workload has changed since."""
    try:
        return workload.Case(**shape)
    except Exception:
        return None
