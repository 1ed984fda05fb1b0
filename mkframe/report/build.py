"""Builds the report of a run from its plan and ledger."""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

import numpy as np

from mkframe import __version__, canonical, peaks, sentences, stats
from mkframe.model.device_card import MeasuredCard
from mkframe.model.outcome import Outcome
from mkframe.model.peaks import PeaksRecord
from mkframe.model.report import (
    CaseResult,
    CellRecord,
    ComparisonReport,
    DeviceRecord,
    EnergyRecord,
    EngineResult,
    EnvironmentRecord,
    FloorRecord,
    FrameworkBlock,
    Interval,
    SamplesRecord,
    TimingRecord,
)
from mkframe.report.peaks import peaks_of
from mkframe.report.run_facts import run_facts
from mkframe.report.twins import twin_record
from mkframe.report.verdicts import verdicts
from mkframe.run.ledger import CellState, Ledger

CHANGED_INPUT = ("input negated", "input fresh")
"""The checks that make `replay_changed_input` true."""


NO_SANITIZER = "not run"


def build_report(
    ledger: Ledger, samples: SamplesRecord, measured: MeasuredCard | None, sanitizers: str = NO_SANITIZER
) -> ComparisonReport | None:
    """The report of everything that finished, or None where no cell is left to report (all unsupported). `measured` is the device's
    measured card, None where it was never probed; `sanitizers` what a sanitizer run said of these engines."""
    sets = _sets(ledger)
    if not sets:
        return None
    block = _block(ledger, samples, measured)
    plan, recorded_on = ledger.plan, datetime.now(UTC).date().isoformat()
    facts = run_facts(block, recorded_on)
    return ComparisonReport(
        recorded_on=recorded_on,
        device=plan.device.name,
        precision=plan.precision.describe(),
        packages={"mkframe": __version__, **ledger.hello.packages},
        timing=plan.timing.protocol,
        rounds=plan.timing.rounds,
        samples_per_round=plan.timing.samples_per_round,
        source_sha256=ledger.sources,
        source_commit=ledger.source.commit,
        sets=sets,
        limitations=sentences.limitations(facts),
        sanitizers=sanitizers,
        source_replay_checks=sentences.replay_checks(facts),
        mkframe=block,
    )


def _sets(ledger: Ledger) -> dict[str, tuple[CaseResult, ...]]:
    """Cases by set, without unsupported cells, without cases that have no cell left, without sets that have no case left."""
    sets: dict[str, list[CaseResult]] = {}
    for case in ledger.plan.cases:
        engines = {
            state.plan.engine.id: _result(ledger, state)
            for state in ledger.of_case(case)
            if ledger.outcome(state) is not Outcome.UNSUPPORTED
        }
        if engines:
            sets.setdefault(case.set, []).append(CaseResult(shape=case.shape, engines=engines))
    return {name: tuple(cases) for name, cases in sets.items()}


def _result(ledger: Ledger, state: CellState) -> EngineResult:
    if ledger.outcome(state) is not Outcome.PASSED:
        return EngineResult(passed=False, replay_changed_input=False)
    stream, host = state.samples()
    followed = set(CHANGED_INPUT) <= set(state.checks)
    return EngineResult(
        passed=True, replay_changed_input=followed, stream_summary=stats.summarize(stream), host_summary=stats.summarize(host)
    )


def _block(ledger: Ledger, samples: SamplesRecord, measured: MeasuredCard | None) -> FrameworkBlock:
    plan = ledger.plan
    device = _device(ledger, peaks_of(ledger.datasheet, plan.precision, measured))
    round_process = tuple(plan.timing.process_of(r) for r in range(plan.timing.rounds))
    step_ms = _step_ms(ledger)
    outcomes = set(ledger.outcomes().values())
    return FrameworkBlock(
        version=__version__,
        workload=plan.workload,
        precision=plan.precision,
        device=device,
        environment=EnvironmentRecord(
            python=platform.python_version(), platform=f"{platform.system()} {platform.machine()}", source_dirty=ledger.source.dirty
        ),
        config=plan.config,
        config_sha256=canonical.digest(dict(plan.config)),
        seeds=plan.seeds,
        timing=TimingRecord(
            protocol=plan.timing.protocol,
            rounds=plan.timing.rounds,
            samples_per_round=plan.timing.samples_per_round,
            processes=plan.timing.processes,
            warmups=plan.timing.warmups,
            hold=plan.timing.hold,
            cache_state=plan.timing.cache_state,
            round_process=round_process,
            timer_step_ms=step_ms,
            floors=_floors(ledger),
        ),
        energy=EnergyRecord(),
        samples=samples,
        cells=tuple(map(partial(_cell, ledger, device.peaks, measured, step_ms), ledger.cells.values())),
        rounds=tuple(ledger.rounds),
        verdicts=verdicts(ledger, step_ms),
        incomplete=ledger.stopped is not None or Outcome.INCOMPLETE in outcomes,
    )


def _cell(ledger: Ledger, known: PeaksRecord | None, measured: MeasuredCard | None, step_ms: float | None, state: CellState) -> CellRecord:
    engine, ready = state.plan.engine, state.ready
    outcome = ledger.outcome(state)
    reason = state.reason
    if outcome is Outcome.INCOMPLETE:
        reason = f"{len(state.blocks)} of {ledger.plan.timing.rounds} rounds were measured"
        reason += "" if ledger.stopped is None else f": {ledger.stopped.reason}"
    if outcome is Outcome.UNSTABLE:
        reason = "; ".join(ledger.instability(state))
    if outcome is Outcome.REJECTED:
        reason = state.reason or ledger.impossibility(state)
    interval = rates = None
    if outcome is Outcome.PASSED:
        rates = peaks.rates(ledger.claim(state), known)
        low, high = stats.median_interval(state.samples()[0], state.round_workers(), step_ms, len(state.key[2]))
        interval = Interval(low_ms=low, high_ms=high)
    late = [block.late for block in state.blocks.values() if block.late is not None]
    return CellRecord(
        set=state.case.set,
        case=state.case.index,
        shape=state.case.shape,
        engine=engine.id,
        form="graph" if engine.graph else "eager",
        implementation=engine.implementation,
        baseline=engine.baseline,
        options=engine.options,
        outcome=outcome,
        reason=reason,
        check=state.check,
        checks=state.checks,
        cost=None if outcome is Outcome.UNSUPPORTED else state.case.cost,
        rates=rates,
        bind_s=None if ready is None else ready.bind_s,
        check_s=None if ready is None else ready.check_s,
        capture_s=None if ready is None else ready.capture_s,
        nodes=None if ready is None else ready.nodes,
        late_samples=sum(late) if late else None,
        interval=interval,
        kernels=None if ready is None else ready.kernels,
        twin=twin_record(state.twins, () if ready is None else ready.kernels or (), measured),
        facts=_facts(state),
    )


def _facts(state: CellState) -> Mapping[str, object]:
    """What the engine says of itself, and the kernels of processes that captured others than the first one did."""
    facts = {} if state.ready is None else dict(state.ready.facts)
    first = None if state.ready is None else state.ready.nodes
    other = {str(process): list(nodes) for process, nodes in state.nodes.items() if nodes != first}
    return {**facts, "nodes_of_other_processes": other} if other else facts


def _device(ledger: Ledger, known: PeaksRecord | None) -> DeviceRecord:
    device, hello, card = ledger.plan.device, ledger.hello, ledger.datasheet
    return DeviceRecord(
        kind=device.kind,
        name=device.name,
        uuid=device.uuid,
        compute_capability=device.compute_capability,
        multiprocessors=hello.multiprocessors,
        memory_bytes=device.memory_bytes,
        l2_bytes=hello.l2_bytes,
        driver=device.driver,
        cuda=hello.cuda,
        threads=hello.threads,
        card=None if card is None else card.id,
        peaks=known,
    )


def _floors(ledger: Ledger) -> tuple[FloorRecord, ...]:
    return tuple(
        FloorRecord(name=name, clock=clock, process=process, summary=stats.summarize(samples))
        for process, hello in ledger.hellos.items()
        for (name, clock), samples in hello.floors.items()
    )


def _step_ms(ledger: Ledger) -> float | None:
    """The step of the stream clock: what the sampler says, else what the samples of all engines show."""
    told = ledger.hello.step_ms
    if told is not None:
        return told
    streams = [block.stream_ms for state in ledger.cells.values() for block in state.blocks.values()]
    return stats.event_step_ms(np.concatenate(streams)[: stats.STEP_SAMPLES]) if streams else None
