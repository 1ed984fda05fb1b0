"""What a run has found out so far, cell by cell. Mutable, owned by the coordinator alone; the report is built from it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.model.report import CheckRecord, RoundRecord
from mkframe.run import messages as m
from mkframe.stamp import Source
from mkframe.stats import Samples

Key = tuple[str, int, str]
"""(shape set, index of the case in it, engine)."""


@dataclass(slots=True)
class CellState:
    """One cell while it runs. `blocks` by round; `nodes` by process, since two processes may compile different kernels."""

    plan: CellPlan
    case: CasePlan
    failure: Outcome | None = None
    reason: str | None = None
    check: CheckRecord | None = None
    checks: tuple[str, ...] = ()
    ready: m.CellReady | None = None
    nodes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    blocks: dict[int, m.BlockDone] = field(default_factory=dict)

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

    def keep_worst(self, check: CheckRecord | None, checks: tuple[str, ...]) -> None:
        """Takes over the evidence of one more process; the worst comparison stands."""
        self.checks = max(self.checks, checks, key=len)
        if check is not None and (self.check is None or _badness(check) > _badness(self.check)):
            self.check = check


class Ledger:
    """All cells of a plan, the clocks of its rounds, and what the workers said of the device.

    `source` is the commit that runs, `sources` the SHA-256 of every file of it that took part; `stopped` tells why a run
    ended early.
    """

    def __init__(self, plan: RunPlan, source: Source, sources: Mapping[str, str]) -> None:
        self.plan = plan
        self.source = source
        self.sources = sources
        self.cells: dict[Key, CellState] = {}
        for case, cell in plan.cells():
            state = CellState(plan=cell, case=case)
            if cell.unsupported is not None:
                state.failure, state.reason = Outcome.UNSUPPORTED, cell.unsupported
            self.cells[state.key] = state
        self.rounds: list[RoundRecord] = []
        self.hellos: dict[int, m.Hello] = {}
        self.stopped: str | None = None

    def of_case(self, case: CasePlan) -> Iterator[CellState]:
        for cell in case.cells:
            yield self.cells[(*case.key, cell.engine.id)]

    def alive(self, case: CasePlan) -> list[CellState]:
        """The cells of a case that have not failed, in the order of the plan."""
        return [state for state in self.of_case(case) if state.alive]

    def fail(self, case: CasePlan, failed: m.CellFailed) -> None:
        """Ends one cell (or, without an engine, all cells of the case that are alive). Its samples stay, its timings are void."""
        targets = self.alive(case) if failed.engine is None else [self.cells[(*case.key, failed.engine)]]
        for state in targets:
            state.failure, state.reason = failed.outcome, failed.reason
            state.keep_worst(failed.check, failed.checks)

    def ready(self, case: CasePlan, ready: m.CellReady, process: int) -> None:
        state = self.cells[(*case.key, ready.engine)]
        state.ready = state.ready or ready
        state.keep_worst(ready.check, ready.checks)
        if ready.nodes is not None:
            state.nodes[process] = ready.nodes

    def outcome(self, state: CellState) -> Outcome:
        """The end of a cell as things stand: a cell without all of its blocks is incomplete."""
        if state.failure is not None:
            return state.failure
        return Outcome.PASSED if len(state.blocks) == self.plan.timing.rounds else Outcome.INCOMPLETE

    def outcomes(self) -> dict[Key, Outcome]:
        return {key: self.outcome(state) for key, state in self.cells.items()}


def _badness(check: CheckRecord) -> tuple[Any, ...]:
    return check.violations, check.max_abs_error
