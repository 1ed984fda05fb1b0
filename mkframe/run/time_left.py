"""How long a run will still take, from what was expected of each part and what its parts have taken so far.

A part that was measured (the same case and engine, in an earlier round or process) is expected to take its mean again. One that was
not is expected to take its estimate times the factor by which the parts of its kind and engine have missed theirs. Pure: the caller
brings the clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from mkframe.plan.estimate import Estimate, Part

CaseKey = tuple[str, int]


class Step(StrEnum):
    """What a worker does, as far as the time left is concerned."""

    START = "start"
    DRAW = "draw"
    BIND = "bind"
    BLOCK = "block"
    CLOSE = "close"


_STEP_OF = {
    "drawing the case": Step.DRAW,
    "binding and checking": Step.BIND,
    "timing round": Step.BLOCK,
    "checking after timing": Step.CLOSE,
}
_CLOSE_SHARE = 1 / 6  # one comparison of the six that a cell goes through
_PRIOR = 0.25  # the weight of an estimate against measurements, in parts
_TINY_S = 1e-9


def step_of(doing: str) -> Step | None:
    """The step that the words of a stage stand for, None for one that takes no time of its own."""
    return next((step for words, step in _STEP_OF.items() if doing.startswith(words)), None)


@dataclass(slots=True)
class _Group:
    """Parts of one kind: one case and engine, once for every process or round."""

    expected_s: float
    left: int
    kind: "_Kind"
    measured_s: float = 0.0
    measured: int = 0

    @property
    def mean_s(self) -> float | None:
        return self.measured_s / self.measured if self.measured else None


@dataclass(slots=True)
class _Kind:
    """All groups of one step and engine, as sums. `known_s` and `unknown_s` are what is left of groups with and without measurements."""

    step: "_Totals"
    typical_s: float = 0.0
    groups: int = 0
    known_s: float = 0.0
    unknown_s: float = 0.0
    measured_s: float = 0.0
    measured_expected_s: float = 0.0

    @property
    def factor(self) -> float:
        """Measured over expected, drawn towards that of the step."""
        prior = _PRIOR * self.typical_s + _TINY_S
        return (self.measured_s + prior * self.step.factor) / (self.measured_expected_s + prior)


@dataclass(slots=True)
class _Totals:
    """The same over all engines of a step."""

    measured_s: float = 0.0
    measured_expected_s: float = 0.0
    kinds: list[_Kind] = field(default_factory=list)

    @property
    def factor(self) -> float:
        prior = _PRIOR * max((kind.typical_s for kind in self.kinds), default=0.0) + _TINY_S
        return (self.measured_s + prior) / (self.measured_expected_s + prior)


Key = tuple[Step, CaseKey | None, str | None]
_START: Key = (Step.START, None, None)


class TimeLeft:
    """Told of every step as it begins. `now` is a monotonic clock in seconds."""

    def __init__(self, expected: Estimate, now: float) -> None:
        self._processes = expected.processes
        self._process = 0
        self._tail_s = expected.parts[Part.STATISTICS]
        self._totals = {step: _Totals() for step in Step}
        self._kinds: dict[tuple[Step, str | None], _Kind] = {}
        self._groups: dict[Key, _Group] = {}
        self._engines: dict[CaseKey, list[str]] = {}
        for key, seconds, count in _parts(expected):
            self._add(key, seconds, count)
        self._current: Key | None = _START
        self._since = now

    def starting(self, process: int, now: float) -> None:
        """A worker is being started for a process of the plan: the first one, the next one, or the same again after a fault."""
        if self._current == _START:  # the clock began with the run, or the worker before this one never got ready
            self._current = None
        self._end(now)
        self._process = process
        self._begin(_START, self._processes - process, now)

    def enter(self, step: Step | None, case: CaseKey, engine: str | None, now: float) -> None:
        """A step begins, and whatever went on before has ended."""
        self._end(now)
        if step is None:
            self._current = None
            return
        key = (step, case, engine if step is not Step.DRAW else None)
        if key not in self._groups:
            return
        left = self._groups[key].left if step is Step.BLOCK else self._processes - self._process
        if step is Step.DRAW and self._groups[key].left < left:  # the case is opened once more after a fault
            for name in self._engines[case]:
                self._set_left((Step.BIND, case, name), left)
        self._begin(key, left, now)

    def drop(self, case: CaseKey, engine: str | None) -> None:
        """A cell is over (without an engine: the whole case). What it was doing is no measure for others."""
        names = list(self._engines.get(case, ())) if engine is None else [engine]
        keys: list[Key] = [(step, case, name) for name in names for step in (Step.BIND, Step.BLOCK, Step.CLOSE)]
        self._engines[case] = [name for name in self._engines.get(case, ()) if name not in names]
        if not self._engines[case]:
            keys.append((Step.DRAW, case, None))
        for key in keys:
            if key == self._current:
                self._current = None
            self._set_left(key, 0)

    def left_s(self, now: float) -> float:
        """Expected seconds until the run has ended."""
        total = sum(kind.known_s + kind.factor * kind.unknown_s for kind in self._kinds.values())
        if self._current is not None:
            group = self._groups[self._current]
            mean_s = group.mean_s
            likely_s = group.kind.factor * group.expected_s if mean_s is None else mean_s
            total -= min(now - self._since, likely_s) if group.left else 0.0
        return max(total, 0.0) + self._tail_s

    def _add(self, key: Key, seconds: float, count: int) -> None:
        step, case, engine = key
        totals = self._totals[step]
        kind = self._kinds.get((step, engine))
        if kind is None:
            kind = self._kinds[step, engine] = _Kind(step=totals)
            totals.kinds.append(kind)
        kind.typical_s = (kind.typical_s * kind.groups + seconds) / (kind.groups + 1)
        kind.groups += 1
        self._groups[key] = _Group(expected_s=seconds, left=0, kind=kind)
        self._set_left(key, count)
        if step is Step.BIND and case is not None and engine is not None:
            self._engines.setdefault(case, []).append(engine)

    def _begin(self, key: Key, left: int, now: float) -> None:
        self._set_left(key, left)
        self._current, self._since = key, now

    def _end(self, now: float) -> None:
        if self._current is None:
            return
        group, seconds = self._groups[self._current], now - self._since
        binding = self._current[0] is Step.BIND
        self._current = None
        left = group.left
        self._change(group, 0)
        if binding:  # the second compilation finds the caches that the first one filled: the latest counts
            group.measured_s, group.measured = 0.0, 0
        group.measured_s += seconds
        group.measured += 1
        for sums in (group.kind, group.kind.step):
            sums.measured_s += seconds
            sums.measured_expected_s += group.expected_s
        self._change(group, max(left - 1, 0))

    def _set_left(self, key: Key, left: int) -> None:
        if key in self._groups:
            self._change(self._groups[key], left)

    def _change(self, group: _Group, left: int) -> None:
        delta, mean_s = left - group.left, group.mean_s
        if mean_s is None:
            group.kind.unknown_s += delta * group.expected_s
        else:
            group.kind.known_s += delta * mean_s
        group.left = left


def _parts(expected: Estimate) -> Iterator[tuple[Key, float, int]]:
    """(what, seconds each, how often)."""
    processes, rounds = expected.processes, expected.rounds
    yield _START, expected.start_s, processes
    for cost in expected.cases:
        case = cost.case.key
        yield (Step.DRAW, case, None), cost.draw_s, processes
        for cell in cost.cells:
            yield (Step.BIND, case, cell.engine), cell.bind_s + cell.check_s, processes
            yield (Step.BLOCK, case, cell.engine), cell.warm_up_s + cell.timing_s, rounds
            yield (Step.CLOSE, case, cell.engine), cell.check_s * _CLOSE_SHARE, processes
