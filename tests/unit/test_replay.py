"""What a coordinator and its workers write, however they end, is read again; what they cannot have written is not."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.model.checks import all_checks, checks_before_timing
from mkframe.model.device import ClockReading, Device
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan, CellPlan, EnginePlan, RunPlan, TimingPlan
from mkframe.model.precision import PRECISIONS
from mkframe.model.report import CheckRecord, CostRecord
from mkframe.run import coordinator
from mkframe.run import messages as m
from mkframe.run.journal_codec import JOURNALLED, Entry
from mkframe.run.journal_values import Misfit
from mkframe.run.ledger import Ledger
from mkframe.run.replay import Replay
from mkframe.run.schedule import next_process
from mkframe.run.signals import Signals
from mkframe.run.worker_process import WorkerDied, WorkerSilent
from mkframe.stamp import Source

ENGINES = ("one", "two-graph", "three")
SAMPLES = 5


@dataclass(frozen=True)
class Shape:
    batch: int


def plan_of(*, cases: int = 2, protocol: str = "per_call", device_kind: str = "cuda") -> RunPlan:
    engines = [
        EnginePlan(id=name, engine=name.removesuffix("-graph"), graph="graph" in name, baseline=False, implementation="", options={})
        for name in ENGINES
    ]
    return RunPlan(
        workload="w",
        precision=next(iter(PRECISIONS.values())),
        device=Device(kind=device_kind, name="D", memory_bytes=1, uuid="GPU-0" if device_kind == "cuda" else None),
        timing=TimingPlan(
            protocol=protocol,
            rounds=4,
            samples_per_round=SAMPLES,
            processes=2,
            warmups=1,
            hold=False,
            spin_up_s=0.0,
            cell_timeout_s=1.0,
        ),
        energy="none",
        cases=tuple(
            CasePlan(
                set="s",
                index=index,
                seed=index,
                case=Shape(index),
                shape={"batch": index},
                cost=CostRecord(bytes=1, flops=1),
                cells=tuple(
                    CellPlan(engine=engine, unsupported="not here" if (index, engine.id) == (1, "three") else None) for engine in engines
                ),
            )
            for index in range(cases)
        ),
        seeds={},
        config={"device": {"card": None}},
    )


def check_of(largest: float) -> CheckRecord:
    return CheckRecord(max_abs_error=largest, mean_abs_error=largest, violations=0, elements=1, rtol=0.1, atol=0.1, rounding_rows=0)


LAUNCH = LaunchRecord(
    name="k",
    grid=(1, 1, 1),
    block=(1, 1, 1),
    cluster=(1, 1, 1),
    shared_bytes=0,
    cooperative=False,
    programmatic=False,
    registers=1,
    local_bytes=0,
)
HELLO = m.Hello(
    pid=1,
    name="D",
    multiprocessors=1,
    l2_bytes=1,
    cuda="1",
    threads=None,
    packages={},
    floors={("empty-pair", "stream"): np.ones(1)},
    step_ms=None,
)
CLOCKS = ClockReading(sm_clock_mhz=None, temperature_c=None, power_w=None, throttle_reasons=None)


class FakeWorker:
    """Answers as worker and opened case do. At every step an engine may fail and the process may end, as `faults` has it."""

    faults: Random
    share = 0.0
    plan: RunPlan

    def __init__(self, setup: m.WorkerSetup) -> None:
        self.events: deque[m.Event] = deque([HELLO])
        self.greeted = False
        self.cells: dict[str, bool] = {}

    def send(self, request: m.Request) -> None:
        match request:
            case m.OpenCase():
                self.cells = {}
                if not self.fails(None):
                    for engine in request.engines:
                        self.cells[engine.id] = True
                        self.step(engine.id, self.ready(engine))
                    for name in list(self.cells):
                        self.step(name)
                self.events.append(m.CaseReady(sources={}))
            case m.RoundRequest():
                for name in request.engines:
                    if name in self.cells:
                        self.step(name, *self.block(name, request.round))
                self.events.append(m.RoundDone(round=request.round, before=CLOCKS, after=CLOCKS))
            case m.CloseCase():
                checks = all_checks(self.plan.device.kind, chained=self.plan.timing.chained)
                for name in list(self.cells):
                    self.step(name, m.CellClosed(engine=name, check=check_of(0.02), checks=checks))
                self.events.append(m.CaseClosed())

    def step(self, name: str, *events: m.Event) -> None:
        """What an engine does goes well, or fails before or behind what it says."""
        if name in self.cells:
            self.events.append(m.Stage(engine=name, doing="something"))
            if not self.fails(name):
                self.events.extend(events)
                self.fails(name)

    def fails(self, name: str | None) -> bool:
        if self.faults.random() >= self.share:
            return False
        self.events.append(m.CellFailed(engine=name, outcome=Outcome.INCORRECT, reason="wrong"))
        self.cells.pop(name or "", None)
        return True

    def ready(self, engine: m.EngineRequest) -> m.CellReady:
        return m.CellReady(
            engine=engine.id,
            check=check_of(0.01),
            checks=checks_before_timing(self.plan.device.kind),
            bind_s=0.1,
            check_s=0.1,
            capture_s=0.1 if engine.graph else None,
            nodes=("k",) if engine.graph else None,
            kernels=(LAUNCH,) if engine.graph else None,
        )

    def block(self, name: str, round_index: int) -> list[m.Event]:
        times = np.ones(SAMPLES)
        events: list[m.Event] = [m.BlockDone(engine=name, round=round_index, stream_ms=times, host_ms=times, late=None)]
        if self.cells[name] and name.endswith("-graph"):
            events.append(m.TwinDone(engine=name, stream_ms=times))
        self.cells[name] = False
        return events

    def next_event(self, timeout_s: float) -> m.Event:
        if self.greeted and self.faults.random() < self.share / 2:
            raise self.faults.choice([WorkerDied("it is gone", killed=True), WorkerDied("it is gone"), WorkerSilent("no sign of life")])
        self.greeted = True
        return self.events.popleft()

    def stop(self) -> None:
        self.events.clear()


class Killed(BaseException):
    """The coordinator is no more."""


class FakeJournal:
    """Keeps what a journal keeps. After `lines` of them the coordinator is killed."""

    def __init__(self, entries: list[Entry], lines: int | None) -> None:
        self.entries = entries
        self.lines = lines

    def write(self, entry: Entry) -> None:
        if self.lines == 0:
            raise Killed
        if type(entry.event).__name__ in JOURNALLED:
            self.entries.append(entry)
            self.lines = None if self.lines is None else self.lines - 1


class Nobody:
    """Watches, and does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


def replayed(plan: RunPlan, entries: list[Entry]) -> Ledger:
    ledger = Ledger(plan, Source(commit=None, dirty=None), {})
    replay = Replay(ledger)
    for entry in entries:
        replay.take(entry)
    return ledger


def goes_on(plan: RunPlan, entries: list[Entry], faults: Random, share: float, lines: int | None) -> Ledger | None:
    """Resumes the run from `entries`, and adds to them. None where it was killed."""
    ledger = replayed(plan, entries)
    worker: Any = type("Worker", (FakeWorker,), {"faults": faults, "share": share, "plan": plan})
    journal: Any = FakeJournal(entries, lines)
    watcher: Any = Nobody()
    with pytest.MonkeyPatch.context() as patch, Signals() as signals:
        patch.setattr(coordinator, "WorkerProcess", worker)
        try:
            coordinator.run_plan(ledger, journal, watcher, signals)
        except Killed:
            return None
    return ledger


def undisturbed(plan: RunPlan) -> list[Entry]:
    entries: list[Entry] = []
    assert goes_on(plan, entries, Random(0), 0.0, None) is not None
    return entries


protocols = st.sampled_from([("per_call", "cpu"), ("per_call", "cuda"), ("unrolled", "cuda")])


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.3]), st.lists(st.integers(0, 40), max_size=6), protocols)
def test_whatever_a_run_has_written_is_read_again(seed: int, share: float, kills: list[int], form: tuple[str, str]) -> None:
    plan = plan_of(protocol=form[0], device_kind=form[1])
    entries: list[Entry] = []
    faults, ledger = Random(seed), None
    for lines in (*kills, None):
        ledger = goes_on(plan, entries, faults, share, lines)
        if ledger is not None:
            break
    assert ledger is not None
    assert next_process(ledger, 0) is None
    again = replayed(plan, entries)
    assert {key: (s.failure, s.closed, s.blocks.keys(), s.workers) for key, s in again.cells.items()} == {
        key: (s.failure, s.closed, s.blocks.keys(), s.workers) for key, s in ledger.cells.items()
    }


@pytest.mark.parametrize("left_out", range(len(undisturbed(plan_of()))))
def test_a_line_that_is_missing_is_seen(left_out: int) -> None:
    """But for launch twins, which not every graph has, and for the last line, without which a run has merely ended earlier."""
    plan = plan_of()
    entries = undisturbed(plan)
    gone = entries.pop(left_out)
    if isinstance(gone.event, m.TwinDone) or left_out == len(entries):
        replayed(plan, entries)
    else:
        with pytest.raises(Misfit):
            replayed(plan, entries)


@pytest.mark.parametrize("first", range(len(undisturbed(plan_of())) - 1))
def test_two_lines_in_the_wrong_order_are_seen(first: int) -> None:
    plan = plan_of()
    entries = undisturbed(plan)
    entries[first : first + 2] = reversed(entries[first : first + 2])
    with pytest.raises(Misfit):
        replayed(plan, entries)


def changed(kind: type[m.Event], **values: Any) -> Callable[[list[Entry]], None]:
    """The first event of its kind with other values."""

    def change(entries: list[Entry]) -> None:
        at = next(i for i, entry in enumerate(entries) if isinstance(entry.event, kind))
        entries[at] = replace(entries[at], event=replace(entries[at].event, **values))

    return change


def without(kind: type[m.Event]) -> Callable[[list[Entry]], None]:
    def change(entries: list[Entry]) -> None:
        entries[:] = [entry for entry in entries if not isinstance(entry.event, kind)]

    return change


def another_worker(entries: list[Entry]) -> None:
    entries.append(Entry(worker=2, process=0, event=HELLO))


def another_machine(entries: list[Entry]) -> None:
    at = max(i for i, entry in enumerate(entries) if isinstance(entry.event, m.Hello))
    entries[at] = replace(entries[at], event=replace(HELLO, packages={"torch": "1"}))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (changed(m.CellReady, checks=("poison nan", "poison second")), 'checks lack "input negated"'),
        (changed(m.CellClosed, checks=("poison nan", "poison second")), 'checks lack "input negated"'),
        (changed(m.CellReady, checks=checks_before_timing("cuda")[::-1]), "not the ones of this device in their order"),
        (changed(m.CellReady, check=None), "check must hold no violations, not null"),
        (changed(m.CellReady, check=replace(check_of(0.01), violations=1)), "check must hold no violations, not 1"),
        (changed(m.CellReady, check=check_of(0.5)), "max_abs_error must be at least 0.5"),
        (changed(m.CellReady, nodes=("k",)), 'nodes must be null: "one" is not a graph'),
        (without(m.CaseReady), "there is no CaseReady before its first round"),
        (without(m.CellClosed), 'was left before engine "one" was closed or failed'),
        (without(m.RoundDone), "round must be 0, the next one, not 1"),
        (changed(m.BlockDone, round=1), "round must be 0, the next one, not 1"),
        (changed(m.BlockDone, engine="three"), 'the next engine to be timed in round 0 is "one", not "three"'),
        (another_worker, "nothing was left to be measured by another worker"),
        (another_machine, "the version of torch was unknown when the run began and is 1 now"),
    ],
)
def test_what_is_wrong_is_said(change: Callable[[list[Entry]], None], complaint: str) -> None:
    plan = plan_of()
    entries = undisturbed(plan)
    change(entries)
    with pytest.raises(Misfit, match=complaint):
        replayed(plan, entries)
