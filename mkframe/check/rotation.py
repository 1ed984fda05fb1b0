"""Several sets of buffers for one engine, so that calls in a row work on distinct data: what protocols with chains time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

import torch

from mkframe.check.buffers import PATTERNS, Tensors, allocate, poison, read_back
from mkframe.check.case_data import ROTATION, CaseData
from mkframe.check.cell import BoundCell, Evidence, check_inputs
from mkframe.graph.capture import CapturedGraph, capture
from mkframe.graph.edges import FULL, edges_between_calls
from mkframe.graph.twin import LaunchTwin
from mkframe.model.outcome import Rejected
from mkframe.model.tensors import Role

MOST_SETS = 256


class Overlapping(Rejected):
    """One clause: an engine whose calls may overlap, and that does not say so."""


class OutOfReach(Exception):
    """One clause: why a protocol cannot time this cell."""


@dataclass(slots=True)
class Rotation:
    """Set i holds the variant ROTATION[i % 4] of the input. `edges` between calls is read back from the first captured chain;
    `captured` keeps every chain by its number of calls."""

    sets: tuple[BoundCell, ...]
    data: CaseData
    stream: torch.cuda.Stream
    may_overlap: bool
    edges: str | None = None
    captured: dict[int, CapturedGraph] = field(default_factory=dict)

    def chain(self, calls: int) -> Callable[[], None]:
        """Captures `calls` calls in a row, set after set, and returns the replay.

        Raises Overlapping where a call may overlap the next one and the engine is not one that says so.
        """

        def run() -> None:
            for index in range(calls):
                self.sets[index % len(self.sets)].call()

        captured = capture(run, self.stream, read=False)
        if self.edges is None:
            self.edges = edges_between_calls(captured.graph.raw_cuda_graph(), calls)
            if self.edges != FULL and not self.may_overlap:
                raise Overlapping(
                    "edges: the first launch of a call may start before the previous call has ended; only an engine with `overlaps` may"
                )
        self.captured[calls] = captured
        return captured.replay

    def twin(self, calls: int) -> LaunchTwin:
        """The launch twin of a chain that was captured. Raises RuntimeError, RunError as LaunchTwin does."""
        return self.captured[calls].twin()

    def check(self, evidence: Evidence, settle: Callable[[], None]) -> None:
        """Every output of the rotation, as the last timed replay left it, and after one more replay on poisoned outputs."""
        settle()
        self._judge(evidence, "after timing")
        for bound in self.sets:
            poison(bound.tensors, bound.specs, PATTERNS[0])
        settle()
        self.captured[max(self.captured)].replay()
        settle()
        self._judge(evidence, "chain on poison")

    def _judge(self, evidence: Evidence, name: str) -> None:
        used = min(len(self.sets), max(self.captured))
        for index, bound in enumerate(self.sets[:used]):
            variant = ROTATION[index % len(ROTATION)]
            evidence.add(name, self.data.judge(read_back(bound.tensors, self.data.outputs), variant))
            check_inputs(bound, self.data, variant)
        evidence.checks = list(dict.fromkeys(evidence.checks))


def sets_for(data: CaseData, least: int, footprint_bytes: float) -> int:
    """How many sets: at least `least`, and so many that they hold `footprint_bytes` together, weights counted in each.

    Raises OutOfReach above MOST_SETS.
    """
    set_bytes = sum(spec.bytes for spec in data.specs.values())
    count = max(least, ceil(footprint_bytes / set_bytes))
    if count > MOST_SETS:
        raise OutOfReach(
            f"{count} sets of {set_bytes} bytes would be needed to leave L2, and {MOST_SETS} are allowed; use timing.method=evict"
        )
    return count


def inputs_of_set(index: int, data: CaseData, shared: Tensors, own_weights: bool) -> Tensors:
    """Inputs of one set, filled with its variant; weights are the shared ones, or copies."""
    device = next(iter(shared.values())).device
    stored = data.variants[ROTATION[index % len(ROTATION)]].stored
    mine = {name: data.specs[name] for name in stored if own_weights or data.specs[name].role is Role.INPUT}
    tensors = allocate(mine, device)
    for name, tensor in tensors.items():
        tensor.copy_(stored[name])
    return {name: tensors.get(name, shared[name]) for name in shared}
