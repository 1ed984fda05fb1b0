"""One case in the hands of one worker, as a journal tells of it: which event can come next."""

from collections.abc import Container, Sequence

from mkframe.model.checks import all_checks, checks_before_timing
from mkframe.model.plan import CasePlan
from mkframe.model.report import CheckRecord
from mkframe.run import messages as m
from mkframe.run.journal_values import Misfit
from mkframe.run.ledger import CellState, Ledger
from mkframe.run.schedule import blocks_of_round
from mkframe.validate.finding import shown


class Attempt:
    """From the opening of a case to its end. The worker makes engines ready in the order of the plan, times the rounds that the
    coordinator asks for, and closes the engines in the order in which they were opened. A failure takes its engine out at any moment.

    `ledger` must stand as it did when the case was opened. Each event is to be checked, applied to the ledger, and then followed.
    """

    def __init__(self, ledger: Ledger, case: CasePlan, process: int) -> None:
        self.case = case
        self._ledger = ledger
        self._opened = tuple(state.plan.engine.id for state in ledger.alive(case))
        self._to_come = list(ledger.plan.timing.rounds_of(process))
        self._ready: dict[str, CheckRecord] = {}
        self._closed: set[str] = set()
        self._is_ready = False
        self._round: int | None = None
        self._order: list[str] = []
        self._before: m.Event | None = None

    def check(self, event: m.Event) -> None:
        """Raises Misfit where this is not what can come next."""
        match event:
            case m.CellReady():
                self._check_ready(event)
            case m.CaseReady() if self._is_ready:
                raise Misfit("the case was ready already")
            case m.CaseReady() if (engine := self._first(self._opened, self._ready)) is not None:
                raise Misfit(f"engine {shown(engine)} was not tried before the case was ready")
            case m.BlockDone():
                self._check_turn(event)
            case m.TwinDone():
                self._check_twin(event)
            case m.RoundDone():
                self._check_round(event.round)
                if (engine := self._first(self._order)) is not None:
                    raise Misfit(f"round {event.round} has ended without a block of {shown(engine)}")
            case m.CellClosed():
                self._check_closed(event)

    def follow(self, event: m.Event) -> None:
        """Goes on behind an event that fitted, once the ledger has it."""
        match event:
            case m.CellReady() if event.check is not None:
                self._ready[event.engine] = event.check
            case m.CaseReady():
                self._is_ready = True
                self._ask()
            case m.BlockDone():
                self._order = self._order[self._order.index(event.engine) + 1 :]
            case m.RoundDone():
                self._ask()
            case m.CellClosed():
                self._closed.add(event.engine)
        self._before = event

    def left(self) -> str | None:
        """What the worker has still to do before it opens another case: one clause, None where that is nothing."""
        if not self._is_ready:
            return "it was ready"
        if self._round is not None:
            return f"its round {self._round} had ended"
        engine = self._first(self._opened, self._closed)
        return None if engine is None else f"engine {shown(engine)} was closed or failed"

    def _ask(self) -> None:
        """The next round that lacks a block, with what it lacks: the coordinator asks as soon as it has an answer."""
        self._round, self._order = None, []
        while self._to_come and not self._order:
            self._round = self._to_come.pop(0)
            self._order = blocks_of_round(self._ledger, self.case, self._round)
        if not self._order:
            self._round = None

    def _first(self, engines: Sequence[str], done: Container[str] = ()) -> str | None:
        """The first of these engines that has not failed and is not `done`."""
        alive = {state.plan.engine.id for state in self._ledger.alive(self.case)}
        return next((engine for engine in engines if engine in alive and engine not in done), None)

    def _check_ready(self, event: m.CellReady) -> None:
        if self._is_ready:
            raise Misfit(f"engine {shown(event.engine)} became ready after its case")
        self._check_next(self._first(self._opened, self._ready), event.engine, "made ready")
        self._check_evidence(event, checks_before_timing(self._ledger.plan.device.kind))
        form = self._state(event.engine).plan.engine.graph
        for name in ("capture_s", "nodes", "kernels"):
            if (getattr(event, name) is not None) is not form:
                raise Misfit(f"{name} must {'not be' if form else 'be'} null: {shown(event.engine)} is {'' if form else 'not '}a graph")

    def _check_turn(self, event: m.BlockDone) -> None:
        self._check_round(event.round)
        self._check_next(self._first(self._order), event.engine, f"timed in round {event.round}")

    def _check_round(self, round_index: int) -> None:
        if not self._is_ready:
            raise Misfit("there is no CaseReady before its first round")
        if self._round is None:
            raise Misfit("no round was left to be measured")
        if round_index != self._round:
            raise Misfit(f"round must be {self._round}, the next one, not {round_index}")

    def _check_twin(self, event: m.TwinDone) -> None:
        if not isinstance(self._before, m.BlockDone) or self._before.engine != event.engine:
            raise Misfit(f"the launch twin of {shown(event.engine)} does not follow its first block")

    def _check_closed(self, event: m.CellClosed) -> None:
        if not self._is_ready or self._round is not None:
            raise Misfit(f"engine {shown(event.engine)} was closed before {self.left()}")
        self._check_next(self._first(self._opened, self._closed), event.engine, "closed")
        plan = self._ledger.plan
        self._check_evidence(event, all_checks(plan.device.kind, chained=plan.timing.chained))
        before = self._ready[event.engine]
        if event.check is not None and event.check.max_abs_error < before.max_abs_error:
            raise Misfit(f"max_abs_error must be at least {before.max_abs_error:g}, what it was when the engine became ready")

    def _check_next(self, expected: str | None, engine: str, what: str) -> None:
        if engine != expected:
            raise Misfit(f"the next engine to be {what} is {'none' if expected is None else shown(expected)}, not {shown(engine)}")

    def _check_evidence(self, event: m.CellReady | m.CellClosed, wanted: tuple[str, ...]) -> None:
        """Every check, in order, and what they showed."""
        if event.checks != wanted:
            odd = next((name for name in wanted if name not in event.checks), None)
            raise Misfit(f"checks {'are not the ones of this device in their order' if odd is None else f'lack {shown(odd)}'}")
        if event.check is None or event.check.violations:
            raise Misfit(f"check must hold no violations, not {shown(event.check if event.check is None else event.check.violations)}")

    def _state(self, engine: str) -> CellState:
        return self._ledger.cells[(*self.case.key, engine)]
