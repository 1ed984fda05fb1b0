"""What the sentences of a report tell, out of its block."""

from mkframe.model.report import CellRecord, FrameworkBlock
from mkframe.sentences import CellFacts, RunFacts


def run_facts(block: FrameworkBlock, recorded_on: str) -> RunFacts:
    """`recorded_on` is the day of the report, YYYY-MM-DD. mkframe.validate.run_facts finds the same in the written report."""
    timing = block.timing
    return RunFacts(
        recorded_on=recorded_on,
        workload=block.workload,
        seeds=block.seeds,
        device_kind=block.device.kind,
        source_dirty=block.environment.source_dirty,
        protocol=timing.protocol,
        rounds=timing.rounds,
        samples_per_round=timing.samples_per_round,
        processes=timing.processes,
        warmups=timing.warmups,
        hold=timing.hold,
        cache_state=timing.cache_state,
        energy_measured=block.energy.status != "not_measured",
        incomplete=block.incomplete,
        cells=tuple(map(_cell, block.cells)),
    )


def _cell(cell: CellRecord) -> CellFacts:
    return CellFacts(
        set=cell.set,
        case=cell.case,
        engine=cell.engine,
        baseline=cell.baseline,
        outcome=cell.outcome,
        checks=cell.checks,
        late_samples=cell.late_samples or 0,
        rated=cell.rates is not None,
        read_share=None if cell.rates is None else cell.rates.read_share,
    )
