"""Rebuilds a ledger from a journal: an entry that no run of the plan can have written is refused, whoever has edited the file."""

from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan
from mkframe.run import messages as m
from mkframe.run.attempt import Attempt
from mkframe.run.journal_codec import Entry
from mkframe.run.journal_values import Misfit
from mkframe.run.ledger import CellState, Ledger
from mkframe.run.schedule import next_case, next_process
from mkframe.run.stopped import Changed, check_conditions
from mkframe.validate.finding import shown

_COMPUTED = (Outcome.PASSED, Outcome.INCOMPLETE, Outcome.UNSTABLE)
"""What follows from the samples and is never told as a failure."""


class Replay:
    """Feeds a ledger, entry by entry. `ledger` must be new."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._plan = ledger.plan
        self._cases = {case.key: case for case in ledger.plan.cases}
        self._process = 0
        self._rounds: set[tuple[tuple[str, int], int, int]] = set()
        self._ready: set[tuple[str, int, str]] = set()
        self._attempt: Attempt | None = None

    def take(self, entry: Entry) -> None:
        """Applies the entry. Raises Misfit, and leaves the ledger as it was, where it does not fit the plan or what came before it."""
        if isinstance(entry.event, m.Hello):
            self._check_hello(entry, entry.event)
            self._ledger.apply(entry)
            return
        self._check_worker(entry)
        case = self._case(entry)
        self._check_event(case, entry)
        attempt = self._attempt_at(case)
        attempt.check(entry.event)
        self._attempt = attempt
        self._ledger.apply(entry)
        attempt.follow(entry.event)

    def _check_hello(self, entry: Entry, event: m.Hello) -> None:
        serial = len(self._ledger.hellos)
        if entry.set is not None or entry.case is not None:
            raise Misfit("a Hello belongs to no case")
        if entry.worker != serial:
            raise Misfit(f"worker must be {serial}, the next one, not {shown(entry.worker)}")
        if entry.process >= self._plan.timing.processes:
            raise Misfit(f"process must be below {self._plan.timing.processes}, not {shown(entry.process)}")
        self._check_due(entry.process)
        if serial > 0:
            try:
                check_conditions(self._ledger.hello, event)
            except Changed as error:
                raise Misfit(error.stopped.reason) from error
        self._process = entry.process
        self._ready.clear()
        self._attempt = None

    def _check_due(self, process: int) -> None:
        """A coordinator goes on with the process that it was at, one that resumes a run begins with the first: whichever has work left."""
        due = sorted({found for first in (0, self._process) if (found := next_process(self._ledger, first)) is not None})
        if not due:
            raise Misfit("nothing was left to be measured by another worker")
        if process not in due:
            raise Misfit(f"process must be {' or '.join(map(str, due))}, which has work left, not {process}")

    def _attempt_at(self, case: CasePlan) -> Attempt:
        """The one that is going on, or that of the next case where its worker has ended the last."""
        going = self._attempt
        if going is not None and going.case is case:
            return going
        if going is not None and (left := going.left()) is not None:
            raise Misfit(f"case {shown(going.case.set)}, {going.case.index} was left before {left}")
        expected = next_case(self._ledger, self._process)
        if case is not expected:
            what = "none" if expected is None else f"{shown(expected.set)}, {expected.index}"
            raise Misfit(f"the next case of process {self._process} is {what}, not {shown(case.set)}, {case.index}")
        return Attempt(self._ledger, case, self._process)

    def _check_worker(self, entry: Entry) -> None:
        last = len(self._ledger.hellos) - 1
        if last < 0:
            raise Misfit("no worker has said Hello")
        if (entry.worker, entry.process) != (last, self._process):
            raise Misfit(
                f"worker and process must be {last} and {self._process}, as in the last Hello, "
                f"not {shown(entry.worker)} and {shown(entry.process)}"
            )

    def _case(self, entry: Entry) -> CasePlan:
        if entry.set is None or entry.case is None or (entry.set, entry.case) not in self._cases:
            raise Misfit(f"set and case must be a case of the plan, not {shown(entry.set)} and {shown(entry.case)}")
        return self._cases[entry.set, entry.case]

    def _check_event(self, case: CasePlan, entry: Entry) -> None:
        match entry.event:
            case m.CaseReady() as event:
                self._check_sources(event)
            case m.CellReady() as event:
                self._ready.add(self._alive(case, event.engine).key)
            case m.CellClosed() as event:
                self._measurable(case, event.engine)
            case m.CellFailed() as event:
                self._check_failure(case, event)
            case m.TwinDone() as event:
                self._check_twin(case, event, entry.worker)
            case m.BlockDone() as event:
                self._check_block(case, event)
            case m.RoundDone() as event:
                self._check_round(event.round)
                done = (case.key, event.round, entry.worker)
                if done in self._rounds:
                    raise Misfit(f"worker {entry.worker} has ended round {event.round} of this case already")
                self._rounds.add(done)

    def _check_sources(self, event: m.CaseReady) -> None:
        known = self._ledger.sources
        for file, digest in event.sources.items():
            if known.get(file, digest) != digest:
                raise Misfit(f"sources names another SHA-256 for {shown(file)} than before")

    def _check_failure(self, case: CasePlan, event: m.CellFailed) -> None:
        if event.outcome in _COMPUTED:
            raise Misfit(f"outcome {event.outcome} is no failure")
        if event.engine is not None:
            self._alive(case, event.engine)

    def _check_twin(self, case: CasePlan, event: m.TwinDone, worker: int) -> None:
        if worker in self._measurable(case, event.engine).twins:
            raise Misfit(f"the launch twin of {shown(event.engine)} was timed by this worker already")

    def _check_block(self, case: CasePlan, event: m.BlockDone) -> None:
        self._check_round(event.round)
        wanted = self._plan.timing.samples_per_round
        if len(event.stream_ms) != wanted:
            raise Misfit(f"a block holds {wanted} samples, not {len(event.stream_ms)}")
        if event.round in self._measurable(case, event.engine).blocks:
            raise Misfit(f"round {event.round} of {shown(event.engine)} was measured already")

    def _check_round(self, round_index: int) -> None:
        mine = self._plan.timing.rounds_of(self._process)
        if round_index not in mine:
            raise Misfit(f"round must be one of process {self._process} ({mine[0]} to {mine[-1]}), not {shown(round_index)}")

    def _measurable(self, case: CasePlan, engine: str) -> CellState:
        state = self._alive(case, engine)
        if state.key not in self._ready:
            raise Misfit(f"engine {shown(engine)} was not made ready by this worker")
        return state

    def _alive(self, case: CasePlan, engine: str) -> CellState:
        state = self._cell(case, engine)
        if not state.alive:
            raise Misfit(f"engine {shown(engine)} has failed on this case already")
        return state

    def _cell(self, case: CasePlan, engine: str) -> CellState:
        state = self._ledger.cells.get((*case.key, engine))
        if state is None:
            raise Misfit(f"engine must be one of this case, not {shown(engine)}")
        return state
