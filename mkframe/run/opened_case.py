"""One case in the worker: its data, its bound engines, their checks and their rounds."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from mkframe import canonical
from mkframe.check.buffers import Tensors, allocate, names_of
from mkframe.check.case_data import BASE, CaseData, draw_case
from mkframe.check.cell import BoundCell, CheckFailed, Evidence, Seal, bind_cell, check_after_timing, check_cell
from mkframe.check.joined import reject_if_late
from mkframe.check.producer import check_producer
from mkframe.check.rotation import Rotation, inputs_of_set, sets_for
from mkframe.errors import RunError
from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import Role
from mkframe.originals import Originals
from mkframe.plan.engines import options_of
from mkframe.plugin.engine import Engine, engine_on
from mkframe.plugin.registry import Registry
from mkframe.redact import storable, storable_value
from mkframe.run import messages as m
from mkframe.run.classify import LONGEST_REASON, classify
from mkframe.run.defences import Defences
from mkframe.run.sources import file_sources, imported_sources
from mkframe.run.worker_device import WorkerDevice, end_compile_workers
from mkframe.text import told
from mkframe.timing.sampler import Subject, Timed
from mkframe.validate.values import value_faults

_MOST_FACTS = 65_536
_TWIN_SAMPLES = 20


class DeviceLost(Exception):
    """The device no longer answers, or the process cannot be trusted any more; the worker must end."""


@dataclass(slots=True)
class _Cell:
    bound: BoundCell
    evidence: Evidence
    seal: Seal
    rotation: Rotation | None = None
    timed: Timed | None = None
    twin_due: bool = True


class OpenedCase:
    """Opens, times and closes one case, and reports every step through `send`. A fault of an engine ends that engine's cell only."""

    def __init__(
        self, send: Callable[[m.Event], None], setup: m.WorkerSetup, registry: Registry, device: WorkerDevice, originals: Originals
    ) -> None:
        self._send = send
        self._defences = Defences(device, originals)
        self._timing = setup.timing
        self._workload = registry.workload(setup.workload)
        self._precision = PRECISIONS[setup.precision]
        self._registry = registry
        self._device = device
        self._cells: dict[str, _Cell] = {}
        self._blocks: dict[str, int] = {}
        self._files: dict[str, str] = {}
        self._data: CaseData | None = None
        self._shared: Tensors = {}

    def open(self, request: m.OpenCase) -> None:
        """Draws the case, then binds and checks one engine after the other."""
        if self._attempt(None, "drawing the case", lambda: self._draw(request)):
            for engine in request.engines:
                self._attempt(engine.id, "binding and checking", lambda engine=engine: self._open_cell(engine))  # type: ignore[misc]
            for name, cell in list(self._cells.items()):
                if cell.bound.launches.on_ready is not None:
                    self._attempt(name, "getting ready", cell.bound.launches.on_ready)
            self._end_processes()
        self._send(m.CaseReady(sources=self._sources(request)))

    def _end_processes(self) -> None:
        """None of an engine may run beside a sample. Inductor's are its own affair: it starts them again when it needs them."""
        names = [name for name in self._cells if self._defences.owns_children(name)]
        if names:
            end_compile_workers()
        for name in names:
            self._attempt(name, "getting ready", lambda name=name: self._defences.check_children(name))  # type: ignore[misc]

    def run_round(self, request: m.RoundRequest) -> None:
        """Times one block of each engine that is still there, in the order asked for, with clocks read around the round."""
        self._device.wake()
        before = self._device.clocks.read()
        for name in request.engines:
            if name in self._cells:
                self._attempt(name, f"timing round {request.round}", lambda name=name: self._block(name, request.round))  # type: ignore[misc]
        self._send(m.RoundDone(round=request.round, before=before, after=self._device.clocks.read()))

    def close(self) -> None:
        """Checks the outputs that the last timed calls left behind, and lets everything go."""
        for name in list(self._cells):
            self._attempt(name, "checking after timing", lambda name=name: self._close_cell(name))  # type: ignore[misc]
        self._cells.clear()
        self._shared = {}
        self._data = None

    def _drawn(self) -> CaseData:
        assert self._data is not None, "the case is drawn before anything else"
        return self._data

    def _draw(self, request: m.OpenCase) -> None:
        case = self._workload.Case(**request.case)
        data = draw_case(self._workload, case, self._precision, request.seed, rotation=self._timing.chained)
        given = names_of(data.specs, Role.INPUT, Role.WEIGHT)
        self._shared = allocate({name: data.specs[name] for name in given}, self._device.device)
        fill_stored(self._shared, data, given)
        self._data = data

    def _open_cell(self, request: m.EngineRequest) -> None:
        engine = engine_on(self._registry.engine(self._workload.id, request.engine), self._device.device.type)
        options = options_of(engine, request.options)
        data, device = self._drawn(), self._device

        def bind(shifted: bool = False) -> BoundCell:
            return bind_cell(engine, options, data, self._shared, device.stream, request.graph, shifted)

        self._defences.before_cell()
        self._files |= _own_sources(engine)
        bound = bind()
        cell = _Cell(bound, Evidence(), Seal(bound.tensors, names_of(data.specs, Role.INPUT, Role.WEIGHT)))
        self._cells[request.id] = cell
        begin = perf_counter()
        check_cell(bound, lambda: bind(shifted=True), data, device.settle, cell.evidence)
        if device.stream is not None:
            check_producer(bound, data, device.stream, cell.evidence)
        check_s = perf_counter() - begin
        if self._timing.chained:
            cell.rotation = self._rotation(bound, lambda shared: bind_cell(engine, options, data, shared, device.stream, False))
        cell.timed = device.sampler.open(_subject(cell))
        self._send(
            m.CellReady(
                engine=request.id,
                check=cell.evidence.record(),
                checks=tuple(cell.evidence.checks),
                bind_s=bound.bind_s,
                check_s=check_s,
                capture_s=bound.capture_s,
                nodes=bound.nodes,
                kernels=bound.kernels,
                facts=_facts(cell),
            )
        )

    def _rotation(self, first: BoundCell, bind: Callable[[Tensors], BoundCell]) -> Rotation:
        """Sets of buffers for a chain; the first is the cell that was checked."""
        timing, data, stream = self._timing, self._drawn(), self._device.stream
        assert stream is not None, "chains are for CUDA devices"
        cold = timing.cache_state == "cold"
        count = sets_for(data, timing.sets, timing.footprint * (self._device.hello.l2_bytes or 0) if cold else 0.0)
        others = tuple(bind(inputs_of_set(index, data, self._shared, cold)) for index in range(1, count))
        return Rotation(sets=(first, *others), data=data, stream=stream, may_overlap=first.engine.overlaps)

    def _block(self, name: str, round_index: int) -> None:
        cell = self._cells[name]
        timed = cell.timed
        assert timed is not None, "a cell is opened before it is timed"
        self._blocks[name] = self._blocks.get(name, 0) + 1
        self._defences.before_cell()
        timed.warm_up(self._timing.warmups)
        block = self._defences.sampled(lambda: timed.sample(self._timing.samples_per_round))
        self._defences.check_children(name)
        cell.bound.places.check()
        cell.seal.check()  # now: the next engine would compute on what this one left
        self._send(m.BlockDone(engine=name, round=round_index, stream_ms=block.stream_ms, host_ms=block.host_ms, late=block.late))
        if self._cells[name].twin_due:
            self._time_twin(name)

    def _time_twin(self, name: str) -> None:
        """Times the launch twin of a graph once, right after the first block of its cell. Without one the cell stands as it is."""
        cell = self._cells[name]
        cell.twin_due = False
        assert cell.timed is not None, "a cell is opened before it is timed"
        self._send(m.Stage(engine=name, doing="timing its launch twin"))
        try:
            twin = self._device.sampler.open_twin(_subject(cell), cell.timed)
            if twin is None:
                return
            twin.warm_up(self._timing.warmups)
            self._send(m.TwinDone(engine=name, stream_ms=twin.sample(_TWIN_SAMPLES).stream_ms))
        except (RuntimeError, RunError) as error:
            self._send(m.TwinDone(engine=name, stream_ms=np.empty(0), reason=storable(told(error))[:LONGEST_REASON]))

    def _close_cell(self, name: str) -> None:
        cell = self._cells[name]
        block = self._timing.warmups + self._timing.samples_per_round
        if name not in self._blocks:  # its blocks were measured by a worker that is gone: check calls made as those were
            assert cell.timed is not None, "a cell is opened before it is closed"
            cell.timed.warm_up(block)
        for bound in (cell.bound,) if cell.rotation is None else cell.rotation.sets:
            bound.places.check()
        if cell.rotation is not None:
            cell.rotation.check(cell.evidence, self._device.settle)
        else:
            try:
                check_after_timing(cell.bound, self._drawn(), cell.evidence)
            except CheckFailed:
                reject_if_late(cell.bound, self._drawn(), self._device.settle)
                raise
        beat = m.Stage(engine=name, doing="comparing fresh inputs with the known one")
        streak = block * self._timing.replays * self._blocks.get(name, 1)
        self._defences.after_timing(cell.bound, self._drawn(), cell.evidence, lambda: self._send(beat), streak)
        self._defences.check_children(name)
        self._send(m.CellClosed(engine=name, check=cell.evidence.record(), checks=tuple(cell.evidence.checks)))

    def _attempt(self, engine: str | None, doing: str, work: Callable[[], Any]) -> bool:
        """Runs `work` for one engine (None: for the whole case). What goes wrong becomes the outcome of that cell.

        Raises DeviceLost where the device does not answer any more, or where something that was replaced cannot be put back.
        """
        self._send(m.Stage(engine=engine, doing=doing))
        try:
            work()
            self._defences.check_left(engine)
            return True
        except BaseException as error:  # SystemExit too: an engine that exits ends its own cell
            outcome, reason = classify(error, doing)
            cell = self._cells.pop(engine, None) if engine is not None else None
            evidence = Evidence() if cell is None else cell.evidence
            del cell, error
        self._send(m.CellFailed(engine=engine, outcome=outcome, reason=reason, check=evidence.record(), checks=tuple(evidence.checks)))
        if not self._device.healthy() or not self._defences.put_back(engine):
            raise DeviceLost
        self._restore_inputs()
        self._device.release()
        return False

    def _restore_inputs(self) -> None:
        """An engine that failed may have left changed inputs, or have written them: the next one starts from the drawn ones."""
        if self._data is not None:
            fill_stored(self._shared, self._data, tuple(self._shared))

    def _sources(self, request: m.OpenCase) -> dict[str, str]:
        engines = [self._registry.engines[self._workload.id, engine.engine].module for engine in request.engines]
        return imported_sources([self._registry.workloads[self._workload.id].module, *engines]) | self._files


def _own_sources(engine: Engine) -> dict[str, str]:
    """The files beyond Python modules that an engine names. Raises TypeError for anything but names of files, UnreadableError."""
    files: object = engine.sources()
    if not isinstance(files, tuple | list) or not all(isinstance(file, str) for file in files):
        raise TypeError(f"sources() must return a tuple of file names, not {type(files).__name__}")
    return file_sources(files)


def _subject(cell: _Cell) -> Subject:
    """What the protocol sees of a cell."""
    bound, rotation = cell.bound, cell.rotation
    if rotation is not None:
        return Subject(run=bound.run, chain=rotation.chain, sets=len(rotation.sets), twin=lambda calls: rotation.twin(calls).replay)
    graph = bound.graph
    return Subject(run=bound.run, twin=None if graph is None else lambda calls: graph.twin().replay)


def _facts(cell: _Cell) -> dict[str, Any]:
    """What the engine says, what the protocol settled on, and what the graph showed. Raises TypeError for facts that are no JSON."""
    try:
        facts = dict(cell.bound.launches.facts)
        size = len(canonical.line(facts))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"Launches.facts must hold JSON types only ({type(error).__name__})") from None
    if size > _MOST_FACTS:
        raise TypeError(f"Launches.facts are {size} characters of JSON, and {_MOST_FACTS} are allowed")
    if cell.timed is not None:
        facts |= dict(cell.timed.facts)
    if cell.rotation is not None:
        facts |= {"sets": len(cell.rotation.sets), "edges": cell.rotation.edges}
    stored: dict[str, Any] = storable_value(facts)
    faults = value_faults(stored)
    if faults:  # the journal and the report could not be read again
        raise TypeError(f"Launches.facts must hold what JSON has: {faults[0].message}")
    return stored


def fill_stored(tensors: Tensors, data: CaseData, names: tuple[str, ...]) -> None:
    """Copies the drawn inputs and weights of a case to the device."""
    for name in names:
        tensors[name].copy_(data.variants[BASE].stored[name])
