"""Rank decisions: every engine against the fastest baseline of its form, where the clock can tell."""

import zlib
from collections.abc import Iterator

from mkframe import stats
from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan
from mkframe.model.report import VerdictRecord
from mkframe.run.ledger import CellState, Ledger


def verdicts(ledger: Ledger, step_ms: float | None) -> tuple[VerdictRecord, ...]:
    """One record for each passed engine beside the fastest passed baseline of the same form (eager or graph) and case."""
    return tuple(record for case in ledger.plan.cases for record in _of_case(ledger, case, step_ms))


def _of_case(ledger: Ledger, case: CasePlan, step_ms: float | None) -> Iterator[VerdictRecord]:
    passed = [state for state in ledger.of_case(case) if ledger.outcome(state) is Outcome.PASSED]
    for graph in (False, True):
        of_form = [state for state in passed if state.plan.engine.graph is graph]
        baselines = [state for state in of_form if state.plan.engine.baseline]
        if not baselines:
            continue
        fastest = min(baselines, key=_p50)
        for state in of_form:
            if state is not fastest:
                yield _record(state, fastest, step_ms)


def _record(state: CellState, baseline: CellState, step_ms: float | None) -> VerdictRecord:
    seed = zlib.crc32(repr(state.key).encode())
    found = stats.compare(
        state.samples()[0], baseline.samples()[0], state.round_workers(), step_ms, seed, other_process=baseline.round_workers()
    )
    return VerdictRecord(
        set=state.case.set,
        case=state.case.index,
        engine=state.plan.engine.id,
        baseline=baseline.plan.engine.id,
        verdict=found.verdict,
        ratio=found.ratio,
        ratio_low=found.low,
        ratio_high=found.high,
        reason=found.reason,
    )


def _p50(state: CellState) -> float:
    return stats.summarize(state.samples()[0]).p50_ms
