"""The coordinator: walks the plan, asks a worker for blocks, journals them, and survives the worker's faults.

It never imports torch and never holds a CUDA context.
"""

from collections.abc import Mapping
from dataclasses import asdict

from mkframe.errors import DeviceError, RunError
from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan, RunPlan
from mkframe.redact import storable
from mkframe.run import messages as m
from mkframe.run.journal import Journal
from mkframe.run.journal_codec import Entry
from mkframe.run.ledger import Ledger
from mkframe.run.observer import Observer
from mkframe.run.schedule import blocks_of_round
from mkframe.run.signals import Interrupted, Signals
from mkframe.run.sources import imported_sources
from mkframe.run.stopped import Changed, Stopped, UnwritableJournal, check_conditions, check_sources
from mkframe.run.worker_process import WorkerDied, WorkerProcess, WorkerSilent
from mkframe.stamp import source

_START_UP_S = 300.0
"""A worker may take this long to import torch and open its device, however short the silence is that a cell may keep."""


def new_ledger(plan: RunPlan) -> Ledger:
    """An empty ledger of the code as it is now: what is wrong with that must not cost a run.

    Raises UsageError for a broken MKFRAME_SOURCE_COMMIT, UnreadableError for a source file that cannot be hashed.
    """
    return Ledger(plan, source(), imported_sources(()))


def run_plan(ledger: Ledger, journal: Journal, observer: Observer, signals: Signals) -> None:
    """Measures every block of the ledger's plan that it lacks; `ledger.stopped` then says why where not everything ran.

    A signal, and a journal that cannot be written any more, end the run early and keep what is there. Raises DeviceError where the
    device cannot be used at all, RunError where no worker can be started, UnwritableJournal where the journal was removed, and
    Changed where a report could not state code and conditions once, before anything was measured here: the journal is then as it was.
    """
    coordinator = _Coordinator(ledger, journal, observer, signals)
    observer.started(sum(ledger.plan.timing.rounds - len(state.blocks) for state in ledger.cells.values() if state.alive))
    try:
        coordinator.run()
    except Interrupted as interrupt:
        ledger.stopped = Stopped(reason=str(interrupt))
    except UnwritableJournal as error:
        if error.gone:
            raise
        ledger.stopped = error.stopped
    except Changed as error:
        if not coordinator.measured:
            journal.take_back()
            raise
        ledger.stopped = error.stopped
    finally:
        coordinator.end_worker()
        observer.finished()


def check_card(plan: RunPlan, hello: m.Hello) -> None:
    """Raises DeviceError where the configuration asks for another device. A card that was found by name asks for nothing."""
    card = plan.device.card
    asked_for = plan.config["device"]["card"] is not None
    if card is not None and asked_for and hello.multiprocessors != card.multiprocessors:
        raise DeviceError(
            f"device: card {card.id} has {card.multiprocessors} multiprocessors, "
            f"this {hello.name} has {hello.multiprocessors}; use device=cuda"
        )


class _Coordinator:
    def __init__(self, ledger: Ledger, journal: Journal, observer: Observer, signals: Signals) -> None:
        self._plan = ledger.plan
        self._ledger = ledger
        self._journal = journal
        self._observer = observer
        self._signals = signals
        self._worker: WorkerProcess | None = None
        self._serial = max(ledger.hellos, default=-1)
        self._stage = m.Stage(engine=None, doing="starting")
        self._killed: set[tuple[str, int, str | None]] = set()
        self.measured = False

    def run(self) -> None:
        for process in range(self._plan.timing.processes):
            rounds = self._plan.timing.rounds_of(process)
            for case in self._plan.cases:
                while self._ledger.missing(case, rounds):
                    try:
                        worker = self._started(process)
                    except (RunError, DeviceError) as error:
                        if not any(state.blocks for state in self._ledger.cells.values()):
                            raise
                        self._ledger.stopped = Stopped(reason=storable(str(error)))  # what was measured before is kept
                        return
                    self._attempt(worker, case, process)
            self.end_worker()

    def end_worker(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

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
            unsafe_plugins=plan.unsafe_plugins,
        )
        self._observer.starting(process)
        worker = WorkerProcess(setup)
        self._worker = worker
        try:
            event = self._next(worker, max(plan.timing.cell_timeout_s, _START_UP_S))
        except (WorkerDied, WorkerSilent) as fault:
            self._worker = None
            raise RunError(f"the worker could not start: {fault}") from fault
        if isinstance(event, m.WorkerFailed):
            self.end_worker()
            raise DeviceError(event.reason) if event.usage else RunError(f"the worker could not start: {event.reason}")
        assert isinstance(event, m.Hello), "a worker says hello first"
        check_card(plan, event)
        if self._ledger.hellos:
            check_conditions(self._ledger.hello, event)
        self._serial += 1
        self._keep(event, None, process)
        return worker

    def _attempt(self, worker: WorkerProcess, case: CasePlan, process: int) -> None:
        """Opens a case and measures what is missing; a fault of the worker costs the guilty engine its cell."""
        alive_before = len(self._ledger.alive(case))
        try:
            self._open(worker, case, process)
            for round_index in self._plan.timing.rounds_of(process):
                engines = blocks_of_round(self._ledger, case, round_index)
                if engines:
                    self._round(worker, case, process, round_index, engines)
            worker.send(m.CloseCase())
            self._pump(worker, case, process, m.CaseClosed)
        except (WorkerDied, WorkerSilent) as fault:
            self._worker = None
            if isinstance(fault, WorkerDied) and fault.killed and self._spared(fault, case):
                return
            self._blame(fault, case, process)
            if len(self._ledger.alive(case)) == alive_before:  # nobody was guilty: do not try the same again for ever
                self._keep(m.CellFailed(engine=None, outcome=Outcome.CRASHED, reason=f"the worker ended: {fault}"), case, process)

    def _spared(self, fault: WorkerDied, case: CasePlan) -> bool:
        """Whether nobody is blamed for a death that came from outside: the first one that met this engine on this case."""
        met = (*case.key, self._stage.engine)
        if met in self._killed:
            return False
        self._killed.add(met)
        self._observer.trying_again(case, self._stage.engine, f"the worker ended while {self._stage.doing}: {fault}")
        return True

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
            event = self._next(worker, self._plan.timing.cell_timeout_s)
            self._keep(event, case, process)
            if isinstance(event, until):
                return

    def _next(self, worker: WorkerProcess, timeout_s: float) -> m.Event:
        """Waits for the worker: the only moment at which a signal ends the run."""
        with self._signals.interruptible():
            return worker.next_event(timeout_s)

    def _keep(self, event: m.Event, case: CasePlan | None, process: int) -> None:
        """Journal first, ledger second, then whoever watches: what the ledger knows can always be rebuilt."""
        if isinstance(event, m.CaseReady):
            event = m.CaseReady(sources=self._news(event.sources))
        name, index = (None, None) if case is None else case.key
        entry = Entry(worker=self._serial, process=process, set=name, case=index, event=event)
        dropped = 0
        if isinstance(event, m.CellFailed) and case is not None:
            dropped = sum(self._plan.timing.rounds - len(state.blocks) for state in self._ledger.targets(case, event.engine))
        self._journal.write(entry)
        self._ledger.apply(entry)
        self.measured = self.measured or isinstance(event, m.BlockDone | m.CellClosed)
        if case is not None:
            self._tell(event, case, dropped)

    def _news(self, sources: Mapping[str, str]) -> dict[str, str]:
        """The files that the ledger does not know yet. Raises Changed for one that is not what it was."""
        known = self._ledger.sources
        check_sources(known, sources)
        return {file: digest for file, digest in sources.items() if file not in known}

    def _tell(self, event: m.Event, case: CasePlan, dropped: int) -> None:
        match event:
            case m.Stage():
                self._stage = event
                self._observer.doing(case, event.engine, event.doing)
            case m.CellFailed():
                self._observer.blocks_dropped(dropped)
                self._observer.cell_failed(case, event.engine, event.outcome, event.reason)
            case m.BlockDone():
                self._observer.block_done()

    def _blame(self, fault: WorkerDied | WorkerSilent, case: CasePlan, process: int) -> None:
        """The engine that the worker was busy with is the guilty one, unless it has failed already."""
        stage = self._stage
        outcome = Outcome.TIMEOUT if isinstance(fault, WorkerSilent) else Outcome.CRASHED
        if stage.engine is None or self._ledger.cells[(*case.key, stage.engine)].alive:
            reason = f"the worker ended while {stage.doing}: {fault}"
            self._keep(m.CellFailed(engine=stage.engine, outcome=outcome, reason=reason), case, process)
