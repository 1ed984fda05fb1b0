"""The coordinator: walks the plan, asks a worker for blocks, journals them, and survives the worker's faults.

It never imports torch and never holds a CUDA context.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType

from mkframe.errors import DeviceError, RunError, UnreadableError
from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan, RunPlan
from mkframe.model.report import RoundRecord
from mkframe.run import messages as m
from mkframe.run.journal import Journal
from mkframe.run.ledger import CellState, Ledger
from mkframe.run.observer import Observer
from mkframe.run.sources import imported_sources, merge
from mkframe.run.worker_process import WorkerDied, WorkerProcess, WorkerSilent
from mkframe.stamp import source


class Terminated(KeyboardInterrupt):
    """SIGTERM, treated as Ctrl-C is."""


def run_plan(plan: RunPlan, journal: Journal, observer: Observer) -> Ledger:
    """Runs every block of the plan and returns what was found; `ledger.stopped` says why where not everything ran.

    Ctrl-C, SIGTERM and a journal that cannot be written any more end the run early and keep what is there. Raises DeviceError
    where the device cannot be used at all, RunError where no worker can be started, UsageError for a broken
    MKFRAME_SOURCE_COMMIT.
    """
    ledger = Ledger(plan, source(), imported_sources(()))  # before anything is measured: what is wrong here must not cost a run
    coordinator = _Coordinator(plan, ledger, journal, observer)
    observer.started(sum(len(case.runnable) for case in plan.cases) * plan.timing.rounds)
    try:
        with _sigterm_as_interrupt():
            coordinator.run()
    except KeyboardInterrupt as interrupt:
        ledger.stopped = "terminated by a signal" if isinstance(interrupt, Terminated) else "interrupted from the keyboard"
    except UnreadableError as error:
        ledger.stopped = str(error)
    finally:
        coordinator.end_worker()
        observer.finished()
    return ledger


def rotated(engines: list[str], round_index: int) -> list[str]:
    """The order of a round: one position further in each, so that no engine always follows the same one."""
    shift = round_index % len(engines) if engines else 0
    return engines[shift:] + engines[:shift]


class _Coordinator:
    def __init__(self, plan: RunPlan, ledger: Ledger, journal: Journal, observer: Observer) -> None:
        self._plan = plan
        self._ledger = ledger
        self._journal = journal
        self._observer = observer
        self._worker: WorkerProcess | None = None
        self._stage = m.Stage(engine=None, doing="starting")

    def run(self) -> None:
        for process in range(self._plan.timing.processes):
            for case in self._plan.cases:
                while self._missing(case, process):
                    try:
                        worker = self._started(process)
                    except (RunError, DeviceError) as error:
                        if not any(state.blocks for state in self._ledger.cells.values()):
                            raise
                        self._ledger.stopped = str(error)  # what was measured before is kept
                        return
                    self._attempt(worker, case, process)
            self.end_worker()

    def end_worker(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _missing(self, case: CasePlan, process: int) -> list[tuple[int, CellState]]:
        """Blocks of this process that can still be measured, by round."""
        rounds = self._plan.timing.rounds_of(process)
        return [(r, state) for r in rounds for state in self._ledger.alive(case) if r not in state.blocks]

    def _started(self, process: int) -> WorkerProcess:
        """The worker of this process number, started if there is none."""
        if self._worker is not None:
            return self._worker
        plan = self._plan
        setup = m.WorkerSetup(
            workload=plan.workload,
            precision=plan.precision.id,
            device_kind=plan.device.kind,
            device_uuid=plan.device.uuid,
            timing=plan.timing,
            plugin_paths=plan.plugin_paths,
            process=process,
        )
        worker = WorkerProcess(setup)
        self._worker = worker
        try:
            event = worker.next_event(plan.timing.cell_timeout_s)
        except (WorkerDied, WorkerSilent) as fault:
            self._worker = None
            raise RunError(f"the worker could not start: {fault}") from fault
        if isinstance(event, m.WorkerFailed):
            self.end_worker()
            raise DeviceError(event.reason) if event.usage else RunError(f"the worker could not start: {event.reason}")
        assert isinstance(event, m.Hello), "a worker says hello first"
        self._check_card(event)
        self._ledger.hellos.setdefault(process, event)
        return worker

    def _check_card(self, hello: m.Hello) -> None:
        card = self._plan.device.card
        if card is not None and hello.multiprocessors != card.multiprocessors:
            raise DeviceError(
                f"device: card {card.id} has {card.multiprocessors} multiprocessors, "
                f"this {hello.name} has {hello.multiprocessors}; use device=cuda"
            )

    def _attempt(self, worker: WorkerProcess, case: CasePlan, process: int) -> None:
        """Opens a case and measures what is missing; a fault of the worker costs the guilty engine its cell."""
        alive_before = len(self._ledger.alive(case))
        try:
            self._open(worker, case, process)
            for round_index in self._plan.timing.rounds_of(process):
                wanted = [s.plan.engine.id for s in self._ledger.alive(case) if round_index not in s.blocks]
                if wanted:
                    self._round(worker, case, process, round_index, rotated(wanted, round_index))
            worker.send(m.CloseCase())
            self._pump(worker, case, process, m.CaseClosed)
        except (WorkerDied, WorkerSilent) as fault:
            self._worker = None
            self._blame(fault, case)
            if len(self._ledger.alive(case)) == alive_before:  # nobody was guilty: do not try the same again for ever
                self._fail(case, m.CellFailed(engine=None, outcome=Outcome.CRASHED, reason=f"the worker ended: {fault}"))

    def _open(self, worker: WorkerProcess, case: CasePlan, process: int) -> None:
        engines = tuple(
            m.EngineRequest(id=s.plan.engine.id, engine=s.plan.engine.engine, graph=s.plan.engine.graph, options=s.plan.engine.options)
            for s in self._ledger.alive(case)
        )
        worker.send(m.OpenCase(set=case.set, index=case.index, seed=case.seed, case=asdict(case.case), engines=engines))
        self._pump(worker, case, process, m.CaseReady)

    def _round(self, worker: WorkerProcess, case: CasePlan, process: int, round_index: int, engines: list[str]) -> None:
        worker.send(m.RoundRequest(round=round_index, engines=tuple(engines)))
        self._pump(worker, case, process, m.RoundDone)

    def _pump(self, worker: WorkerProcess, case: CasePlan, process: int, until: type[m.Event]) -> None:
        """Takes events until one of type `until` has been taken."""
        while True:
            event = worker.next_event(self._plan.timing.cell_timeout_s)
            self._take(event, case, process)
            if isinstance(event, until):
                return

    def _take(self, event: m.Event, case: CasePlan, process: int) -> None:
        ledger = self._ledger
        match event:
            case m.Stage():
                self._stage = event
                self._observer.doing(case, event.engine, event.doing)
            case m.CellReady():
                ledger.ready(case, event, process)
            case m.CellClosed():
                ledger.cells[(*case.key, event.engine)].keep_worst(event.check, event.checks)
            case m.CellFailed():
                self._fail(case, event)
            case m.CaseReady():
                ledger.sources = merge(ledger.sources, event.sources)
            case m.BlockDone():
                self._journal.block(case, process, event)
                ledger.cells[(*case.key, event.engine)].blocks[event.round] = event
                self._observer.block_done()
            case m.RoundDone():
                ledger.rounds.append(
                    RoundRecord(set=case.set, case=case.index, process=process, round=event.round, before=event.before, after=event.after)
                )

    def _fail(self, case: CasePlan, failed: m.CellFailed) -> None:
        targets = self._ledger.alive(case) if failed.engine is None else [self._ledger.cells[(*case.key, failed.engine)]]
        self._observer.blocks_dropped(sum(self._plan.timing.rounds - len(state.blocks) for state in targets))
        self._ledger.fail(case, failed)
        self._observer.cell_failed(case, failed.engine, failed.outcome, failed.reason)

    def _blame(self, fault: WorkerDied | WorkerSilent, case: CasePlan) -> None:
        """The engine that the worker was busy with is the guilty one, unless it has failed already."""
        stage = self._stage
        outcome = Outcome.TIMEOUT if isinstance(fault, WorkerSilent) else Outcome.CRASHED
        if stage.engine is None or self._ledger.cells[(*case.key, stage.engine)].alive:
            self._fail(case, m.CellFailed(engine=stage.engine, outcome=outcome, reason=f"the worker ended while {stage.doing}: {fault}"))


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
