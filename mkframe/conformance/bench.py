"""Cells to ask about: data drawn and checked by the framework, tensors between guard bands, engines bound to them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch

from mkframe.check.buffers import PATTERNS, SHIFT_BYTES, Tensors, names_of, poison, read_back, write
from mkframe.check.case_data import BASE, CaseData, draw_case
from mkframe.conformance.messages import Broken, CaseOf, NotAsked, Setup
from mkframe.conformance.questions import Subject
from mkframe.errors import WorkloadError
from mkframe.graph.launch import callable_of
from mkframe.model.device import Device
from mkframe.model.precision import PRECISIONS, Precision
from mkframe.model.tensors import Role, TensorSpec
from mkframe.plugin.engine import Engine, engine_on
from mkframe.plugin.launches import Launches

GUARD_BYTES = 512
_GUARD = 0xA5
_FEW_SETS = 2
_FEW_GENERATED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One case in one precision on one device, with its data."""

    engine: Engine
    options: Any
    device: Device
    precision: Precision
    case: CaseOf
    data: CaseData

    @property
    def where(self) -> str:
        """The cell for people: `development[3] 257x64x128x1 in fp16 on cpu`."""
        return where(self.case, self.precision.id, self.device)

    @property
    def torch_device(self) -> torch.device:
        return torch.device(self.device.kind, 0) if self.device.kind == "cuda" else torch.device("cpu")


@dataclass(kw_only=True, slots=True)
class Bound:
    """An engine bound to a cell. `bands` are the bytes of every allocation, guard bands included."""

    cell: Cell
    specs: Mapping[str, TensorSpec]
    tensors: Tensors
    bands: dict[str, torch.Tensor]
    launches: Launches
    run: Callable[[], None]

    def judge(self, variant: str = BASE) -> None:
        """Raises Broken where the outputs are not right for a variant of the input."""
        data = self.cell.data
        found = data.judge(read_back(self.tensors, data.outputs), variant)
        if not found.passed:
            raise Broken(found.finding)

    def poison(self, pattern: str = PATTERNS[0]) -> None:
        poison(self.tensors, self.specs, pattern)

    def call(self, times: int = 1) -> None:
        for _ in range(times):
            self.run()
        settle()

    def trespassed(self) -> str | None:
        """The tensor next to which something was written, or None."""
        for name, band in self.bands.items():
            if not (torch.all(band[:GUARD_BYTES] == _GUARD) and torch.all(band[-GUARD_BYTES:] == _GUARD)):
                return name
        return None


class Bench(Subject):
    """The engine with everything that its cells need. `beat` tells the parent what it turns to."""

    def __init__(self, setup: Setup, beat: Callable[[str], None]) -> None:
        super().__init__(setup)
        self._beat = beat
        self._drawn = lru_cache(maxsize=64)(self._draw)
        self.where = ""

    @cached_property
    def pristine(self) -> dict[str, tuple[int, str]]:
        """The engine's attributes before anything was bound: see `kept`."""
        return kept(self.engine)

    def turn_to(self, place: str) -> None:
        """Says what comes now, to the parent and for reasons."""
        self.where = place
        self._beat(place)

    def cells(self, *, generated: bool | None = None, kind: str | None = None) -> Iterator[Cell]:
        """Every cell that unsupported() lets through, of shape sets (False), generated (True) or both (None).

        Raises NotAsked where there is none, with a reason why.
        """
        cases = [index for index, case in enumerate(self.setup.cases) if generated is None or case.generated is generated]
        yield from self._made(cases, kind)

    def few(self, kind: str | None = None) -> Iterator[Cell]:
        """The smallest cases of the shape sets and the first generated ones."""
        listed = list(enumerate(self.setup.cases))
        size = self.workload.cost
        named = [index for index, case in listed if not case.generated]
        named.sort(key=lambda index: size(self.case_of(self.setup.cases[index]), PRECISIONS[self.setup.precisions[0]]).bytes)
        generated = [index for index, case in listed if case.generated]
        yield from self._made(named[:_FEW_SETS] + generated[:_FEW_GENERATED], kind)

    def case_of(self, case: CaseOf) -> Any:
        return self.workload.Case(**case.values)

    def _made(self, indices: list[int], kind: str | None) -> Iterator[Cell]:
        count, reasons = 0, []
        assert self.pristine is not None, "taken before anything is bound"
        for device in self.setup.devices:
            for precision in self.setup.precisions:
                for index in indices:
                    case = self.setup.cases[index]
                    reason = self._refusal(case, precision, device, kind)
                    if reason is None:
                        data = self._data(index, precision, device)
                        reason = data if isinstance(data, str) else None
                    if reason is not None:
                        reasons.append(reason)
                        continue
                    assert isinstance(data, CaseData)
                    count += 1
                    yield Cell(
                        engine=engine_on(self.engine, device.kind),
                        options=self.options,
                        device=device,
                        precision=PRECISIONS[precision],
                        case=case,
                        data=data,
                    )
        if not count:
            raise NotAsked(f"no cell can run here: {reasons[0] if reasons else 'there is no case'}")

    def _refusal(self, case: CaseOf, precision: str, device: Device, kind: str | None) -> str | None:
        if kind is not None and device.kind != kind:
            return f"needs a {kind.upper()} device"
        if device.kind not in self.engine.devices:
            return f"the engine runs on {' and '.join(self.engine.devices)} only"
        engine = engine_on(self.engine, device.kind)
        if precision not in engine.precisions:
            return f"it holds {', '.join(engine.precisions)} on this device"
        return engine.unsupported(self.case_of(case), PRECISIONS[precision], device)

    def _data(self, index: int, precision: str, device: Device) -> CaseData | str:
        self.turn_to(where(self.setup.cases[index], precision, device))
        return self._drawn(index, precision)

    def _draw(self, index: int, precision: str) -> CaseData | str:
        """The data of a case, or why the workload cannot check anybody on it."""
        case = self.setup.cases[index]
        try:
            return draw_case(self.workload, self.case_of(case), PRECISIONS[precision], case.seed)
        except WorkloadError as error:
            return str(error)


def bind(cell: Cell, variant: str = BASE, shifted: bool = False) -> Bound:
    """Binds to fresh tensors between guard bands: inputs of `variant`, outputs and scratch zero.

    Raises Broken for what is no Launches, and whatever the engine raises.
    """
    data = cell.data
    specs: dict[str, TensorSpec] = {**data.specs, **cell.engine.scratch(data.case, data.precision, cell.options)}
    tensors: Tensors = {}
    bands = {}
    for name, spec in specs.items():
        tensors[name], bands[name] = _between_guards(spec, cell.torch_device, SHIFT_BYTES if shifted else 0)
    for name in names_of(specs, Role.INPUT, Role.WEIGHT):
        tensors[name].copy_(data.variants[variant].stored[name])
    settle()
    launches = cell.engine.bind(data.case, data.precision, dict(tensors), cell.options)
    if not isinstance(launches, Launches):
        raise Broken(f"bind() returns {type(launches).__name__}; return Launches")
    return Bound(cell=cell, specs=specs, tensors=tensors, bands=bands, launches=launches, run=callable_of(launches))


def load(bound: Bound, variant: str) -> None:
    """Writes the inputs of a variant in place."""
    data = bound.cell.data
    for name in data.dynamic:
        write(bound.tensors[name], data.variants[variant].stored[name])


def settle() -> None:
    """Waits for the device. Raises what it reports."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def where(case: CaseOf, precision: str, device: Device) -> str:
    shape = "x".join(str(value) for value in case.values.values())
    return f"{case.label} {shape} in {precision} on {device.kind}"


def kept(engine: Any) -> dict[str, tuple[int, str]]:
    """Every attribute of an instance and its classes, by identity and content."""
    own = getattr(engine, "__dict__", {})
    shared = {name: value for kind in type(engine).__mro__[:-1] for name, value in vars(kind).items() if not name.startswith("__")}
    return {name: (id(value), _content(value)) for name, value in {**shared, **own}.items() if not name.startswith("_abc_")}


def _content(value: Any) -> str:
    """What a container holds, a level deep; other values are told apart by identity."""
    if isinstance(value, dict):
        return str([(id(key), id(item)) for key, item in value.items()])
    if isinstance(value, list | tuple | set | frozenset):
        return str([id(item) for item in value])
    return ""


def _between_guards(spec: TensorSpec, device: torch.device, shift: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor of zeros that starts GUARD_BYTES (and `shift`) into an allocation, and the bytes of that allocation."""
    dtype: torch.dtype = getattr(torch, spec.dtype)
    head = GUARD_BYTES + shift
    band = torch.full((head + spec.bytes + GUARD_BYTES,), _GUARD, dtype=torch.uint8, device=device)
    tensor = torch.empty(0, dtype=dtype, device=device)
    tensor.set_(band.untyped_storage(), head // dtype.itemsize, spec.shape, _strides(spec.shape))
    tensor.zero_()
    return tensor, band


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
