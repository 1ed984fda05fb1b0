"""What a run has found out so far, cell by cell. It changes by events alone, so that a journal rebuilds it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from mkframe import peaks, stats
from mkframe.model.device import DeviceCard
from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.model.report import CheckRecord, RoundRecord
from mkframe.run import messages as m
from mkframe.run.journal_codec import Entry
from mkframe.run.sources import merge
from mkframe.run.stopped import Stopped
from mkframe.stability import RoundKey, unstable_rounds
from mkframe.stamp import Source
from mkframe.stats import Samples

Key = tuple[str, int, str]
"""(shape set, index of the case in it, engine)."""


@dataclass(slots=True)
class CellState:
    """One cell while it runs.

    `blocks` and `workers` by round: the samples, and the serial number of the worker that took them. `nodes` by worker,
    since two processes may compile different kernels; `twins`, their launch twins, by worker too. `closed`: the output of
    its last timed call was checked.
    """

    plan: CellPlan
    case: CasePlan
    failure: Outcome | None = None
    reason: str | None = None
    check: CheckRecord | None = None
    checks: tuple[str, ...] = ()
    ready: m.CellReady | None = None
    nodes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    blocks: dict[int, m.BlockDone] = field(default_factory=dict)
    workers: dict[int, int] = field(default_factory=dict)
    twins: dict[int, m.TwinDone] = field(default_factory=dict)
    closed: bool = True

    @property
    def key(self) -> Key:
        return (*self.case.key, self.plan.engine.id)

    @property
    def alive(self) -> bool:
        return self.failure is None

    def samples(self) -> tuple[Samples, Samples]:
        """(stream, host) samples in ms, shape (finished rounds, samples per round), rounds in order."""
        rounds = [self.blocks[index] for index in sorted(self.blocks)]
        return np.stack([block.stream_ms for block in rounds]), np.stack([block.host_ms for block in rounds])

    def round_workers(self) -> tuple[int, ...]:
        """The worker of each finished round, rounds in order."""
        return tuple(self.workers[index] for index in sorted(self.workers))

    def keep_worst(self, check: CheckRecord | None, checks: tuple[str, ...]) -> None:
        """Takes over the evidence of one more process; the worst comparison stands."""
        self.checks = max(self.checks, checks, key=len)
        if check is not None and (self.check is None or _badness(check) > _badness(self.check)):
            self.check = check


class Ledger:
    """All cells of a plan, the clocks of its rounds, and what the workers said of the device.

    `source` is the commit that runs, `sources` the SHA-256 of every file of it that took part; `hellos` by worker serial;
    `stopped` tells why a run ended early.
    """

    def __init__(self, plan: RunPlan, source: Source, sources: Mapping[str, str]) -> None:
        self.plan = plan
        self.source = source
        self.sources = sources
        self.cells: dict[Key, CellState] = {}
        self._cases = {case.key: case for case in plan.cases}
        for case, cell in plan.cells():
            state = CellState(plan=cell, case=case)
            if cell.unsupported is not None:
                state.failure, state.reason = Outcome.UNSUPPORTED, cell.unsupported
            self.cells[state.key] = state
        self.rounds: list[RoundRecord] = []
        self._judged: tuple[int, dict[RoundKey, str]] = (0, {})
        self.hellos: dict[int, m.Hello] = {}
        self.stopped: Stopped | None = None

    def apply(self, entry: Entry) -> None:
        """Takes over one event. Raises KeyError for a cell that is not in the plan."""
        event = entry.event
        if isinstance(event, m.Hello):
            self.hellos[entry.worker] = event
            return
        if isinstance(event, m.CaseReady):
            self.sources = merge(self.sources, event.sources)
            return
        if entry.set is not None and entry.case is not None:
            self._apply_to_case(self._cases[entry.set, entry.case], entry)

    def _apply_to_case(self, case: CasePlan, entry: Entry) -> None:
        match entry.event:
            case m.CellReady() as event:
                state = self._cell(case, event.engine)
                state.ready = state.ready or event
                state.keep_worst(event.check, event.checks)
                if event.nodes is not None:
                    state.nodes[entry.worker] = event.nodes
            case m.CellClosed() as event:
                state = self._cell(case, event.engine)
                state.closed = True
                state.keep_worst(event.check, event.checks)
            case m.CellFailed() as event:
                for state in self.targets(case, event.engine):
                    state.failure, state.reason = event.outcome, event.reason
                    state.keep_worst(event.check, event.checks)
            case m.BlockDone() as event:
                state = self._cell(case, event.engine)
                state.blocks[event.round], state.workers[event.round] = event, entry.worker
                state.closed = False
            case m.TwinDone() as event:
                self._cell(case, event.engine).twins[entry.worker] = event
            case m.RoundDone() as event:
                self.rounds.append(
                    RoundRecord(
                        set=case.set, case=case.index, process=entry.process, round=event.round, before=event.before, after=event.after
                    )
                )

    def targets(self, case: CasePlan, engine: str | None) -> list[CellState]:
        """The cells that a failure ends: one engine's, or all of the case that are alive."""
        return self.alive(case) if engine is None else [self._cell(case, engine)]

    def of_case(self, case: CasePlan) -> Iterator[CellState]:
        for cell in case.cells:
            yield self.cells[(*case.key, cell.engine.id)]

    def alive(self, case: CasePlan) -> list[CellState]:
        """The cells of a case that have not failed, in the order of the plan."""
        return [state for state in self.of_case(case) if state.alive]

    def missing(self, case: CasePlan, rounds: tuple[int, ...]) -> bool:
        """Whether a cell that is alive lacks a block of these rounds, or has one whose last output is unchecked."""
        return any(not state.closed or any(r not in state.blocks for r in rounds) for state in self.alive(case))

    def outcome(self, state: CellState) -> Outcome:
        """The end of a cell as things stand: a cell without all of its blocks, or unchecked after them, is incomplete."""
        if state.failure is not None:
            return state.failure
        if not state.closed or len(state.blocks) < self.plan.timing.rounds:
            return Outcome.INCOMPLETE
        if self.impossibility(state) is not None:
            return Outcome.REJECTED
        return Outcome.UNSTABLE if self.instability(state) else Outcome.PASSED

    def impossibility(self, state: CellState) -> str | None:
        """Why the median of a cell cannot be true of this device: one clause, or None."""
        card, plan = self.datasheet, self.plan
        if card is None or not state.blocks:
            return None
        return peaks.impossible(self.claim(state), peaks.datasheet_peaks(plan.precision, card), card.id, plan.precision.id)

    def claim(self, state: CellState) -> peaks.Claim:
        """What the samples of a cell say that its device has done."""
        cost, timing = state.case.cost, self.plan.timing
        return peaks.Claim(
            bytes=cost.bytes,
            flops=cost.flops,
            p50_ms=stats.summarize(state.samples()[0]).p50_ms,
            rotated=peaks.is_rotated(timing.cache_state, timing.method),
            l2_bytes=self.hello.l2_bytes,
        )

    @property
    def hello(self) -> m.Hello:
        """What the first worker saw of the device; every other one saw the same. Raises StopIteration before there was one."""
        return next(iter(self.hellos.values()))

    @property
    def datasheet(self) -> DeviceCard | None:
        """The card of the device, unless it was found by name alone and has another number of multiprocessors."""
        card = self.plan.device.card
        return None if card is None or self.hello.multiprocessors != card.multiprocessors else card

    def instability(self, state: CellState) -> list[str]:
        """Why rounds of this cell cannot be trusted, one clause each."""
        bad = self._unstable()
        return [bad[*state.case.key, index] for index in sorted(state.blocks) if (*state.case.key, index) in bad]

    def _unstable(self) -> dict[RoundKey, str]:
        """Judged anew when a round is added: what counts as slow depends on all of them."""
        if self._judged[0] != len(self.rounds):
            self._judged = (len(self.rounds), unstable_rounds(self.rounds))
        return self._judged[1]

    def outcomes(self) -> dict[Key, Outcome]:
        return {key: self.outcome(state) for key, state in self.cells.items()}

    def _cell(self, case: CasePlan, engine: str) -> CellState:
        return self.cells[(*case.key, engine)]


def _badness(check: CheckRecord) -> tuple[int, float]:
    return check.violations, check.max_abs_error
