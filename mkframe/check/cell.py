"""The checks of one cell: an engine bound to buffers that the framework owns and poisons."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch

from mkframe.check.buffers import PATTERNS, Tensors, allocate, names_of, poison, read_back, write
from mkframe.check.case_data import BASE, FRESH, NEGATED, CaseData
from mkframe.check.places import NAME as PLAIN
from mkframe.check.places import Places
from mkframe.graph.capture import CapturedGraph, capture
from mkframe.graph.launch import callable_of
from mkframe.model.launch import LaunchRecord
from mkframe.model.report import CheckRecord
from mkframe.model.tensors import Role
from mkframe.plugin.engine import Engine
from mkframe.plugin.launches import Launches
from mkframe.plugin.workload import Acceptance


class CheckFailed(Exception):
    """One clause: which check an engine failed, and how."""


@dataclass(kw_only=True, slots=True)
class BoundCell:
    """An engine bound to one case: `call` is one call of it as it was bound, `run` the same or the replay of its graph, `places` where
    its tensors must stay."""

    engine: Engine
    launches: Launches
    tensors: Tensors
    specs: Mapping[str, Any]
    call: Callable[[], None]
    run: Callable[[], None]
    places: Places
    bind_s: float
    capture_s: float | None
    graph: CapturedGraph | None

    @property
    def nodes(self) -> tuple[str, ...] | None:
        return None if self.graph is None else self.graph.nodes

    @property
    def kernels(self) -> tuple[LaunchRecord, ...] | None:
        return None if self.graph is None else self.graph.launches


@dataclass(slots=True)
class Evidence:
    """What the checks of a cell showed: their names in order, and the worst comparison."""

    checks: list[str] = field(default_factory=list)
    worst: Acceptance | None = None
    rounding_rows: int = 0

    def add(self, name: str, acceptance: Acceptance) -> None:
        self.checks.append(name)
        self.rounding_rows = max(self.rounding_rows, acceptance.rounding_rows)
        if self.worst is None or (acceptance.violations, acceptance.max_abs_error) > (self.worst.violations, self.worst.max_abs_error):
            self.worst = acceptance
        if not acceptance.passed:
            raise CheckFailed(f"{name}: {acceptance.finding}")

    def record(self) -> CheckRecord | None:
        if self.worst is None:
            return None
        return CheckRecord(
            max_abs_error=self.worst.max_abs_error,
            mean_abs_error=self.worst.mean_abs_error,
            violations=self.worst.violations,
            elements=self.worst.elements,
            rtol=self.worst.rtol,
            atol=self.worst.atol,
            rounding_rows=self.rounding_rows,
        )


def bind_cell(
    engine: Engine, options: Any, data: CaseData, shared: Tensors, stream: "torch.cuda.Stream | None", graph: bool, shifted: bool = False
) -> BoundCell:
    """Binds an engine to `shared` inputs and weights and to outputs and scratch of its own, and captures it if asked to.

    `shifted` gives it copies of everything at other addresses. Raises CheckFailed for a graph without nodes, Rejected where the
    engine puts a tensor elsewhere, and whatever it raises itself.
    """
    device = next(iter(shared.values())).device
    specs = {**data.specs, **engine.scratch(data.case, data.precision, options)}
    given = names_of(specs, Role.INPUT, Role.WEIGHT)
    own = {name: spec for name, spec in specs.items() if name not in given}
    tensors = {**allocate(own, device, shifted)}
    if shifted:
        tensors |= allocate({name: specs[name] for name in given}, device, shifted)
        for name in given:
            tensors[name].copy_(shared[name])
    else:
        tensors |= {name: shared[name] for name in given}
    ordered = {name: tensors[name] for name in specs}
    poison(ordered, specs, PATTERNS[0])
    places = Places(ordered)
    begin = perf_counter()
    launches = engine.bind(data.case, data.precision, dict(ordered), options)
    if not isinstance(launches, Launches):
        raise TypeError(f"bind must return Launches, not {type(launches).__name__}")
    call = callable_of(launches)
    bind_s = perf_counter() - begin
    places.check()
    captured, capture_s, run = None, None, call
    if graph:
        assert stream is not None, "graph forms exist on CUDA devices only"
        begin = perf_counter()
        captured = capture(call, stream)
        capture_s = perf_counter() - begin
        if not captured.nodes:
            raise CheckFailed("graph: the captured graph holds no node; the engine does its work outside of the stream, or does none")
        run = captured.replay
    return BoundCell(
        engine=engine,
        launches=launches,
        tensors=ordered,
        specs=specs,
        call=call,
        run=run,
        places=places,
        bind_s=bind_s,
        capture_s=capture_s,
        graph=captured,
    )


def check_cell(bound: BoundCell, rebind: Callable[[], BoundCell], data: CaseData, settle: Callable[[], None], evidence: Evidence) -> None:
    """Lines 1, 2 and 3 of the table in docs/measurement.md, on every element:

    - both poisons, each before a call of its own;
    - the same bound call (for a graph: the same capture) after its input was negated in place, and after a fresh draw;
    - inputs and weights are as they were;
    - a second binding (and capture) on shifted buffers.

    And of line 7: the tensors are still the ones that the framework allocated.

    `settle` waits for the device. Raises CheckFailed with the first check that does not hold, Rejected for tensors put elsewhere;
    `evidence` keeps what was seen.
    """
    for pattern in PATTERNS:
        evidence.add(f"poison {pattern}", _judged(bound, data, BASE, pattern, settle))
    for variant, pattern in ((NEGATED, PATTERNS[0]), (FRESH, PATTERNS[1])):
        load(bound.tensors, data, variant)
        evidence.add(f"input {variant}", _judged(bound, data, variant, pattern, settle))
    load(bound.tensors, data, BASE)
    check_inputs(bound, data)  # before the shifted buffers, which are copied from these
    evidence.checks.append("inputs intact")
    evidence.add("shifted buffers", _judged(rebind(), data, BASE, PATTERNS[0], settle))
    bound.places.check()
    evidence.checks.append(PLAIN)


def check_after_timing(bound: BoundCell, data: CaseData, evidence: Evidence) -> None:
    """The output that the last timed call left behind. Raises CheckFailed."""
    evidence.add("after timing", data.judge(read_back(bound.tensors, data.outputs), BASE))
    check_inputs(bound, data)


def load(tensors: Tensors, data: CaseData, variant: str) -> None:
    """Writes the inputs of a variant in place."""
    for name in data.dynamic:
        write(tensors[name], data.variants[variant].stored[name])


def check_inputs(bound: BoundCell, data: CaseData, variant: str = BASE) -> None:
    """Raises CheckFailed where an engine wrote an input or a weight (bit for bit, NaN or not)."""
    for name, right in data.variants[variant].stored.items():
        if not torch.equal(bound.tensors[name].cpu(), right):
            raise CheckFailed(f"inputs intact: the engine wrote {name}, which is an input")


class Seal:
    """Sums of the bits of input and weight tensors, on their device: tells whether somebody wrote them, in a millisecond."""

    def __init__(self, tensors: Tensors, names: Iterable[str]) -> None:
        self._tensors = {name: tensors[name] for name in names}
        self._sums = self._now()

    def check(self) -> None:
        """Raises CheckFailed with the first tensor that has other bits than when it was sealed."""
        now = self._now()
        for name, total in self._sums.items():
            if now[name] != total:
                raise CheckFailed(f"inputs intact: a timed call wrote {name}, which is an input")

    def _now(self) -> dict[str, int]:
        return {name: int(_bits(tensor).sum(dtype=torch.int64)) for name, tensor in self._tensors.items()}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def _judged(bound: BoundCell, data: CaseData, variant: str, pattern: str, settle: Callable[[], None]) -> Acceptance:
    poison(bound.tensors, bound.specs, pattern)
    settle()
    bound.run()
    settle()
    return data.judge(read_back(bound.tensors, data.outputs), variant)
