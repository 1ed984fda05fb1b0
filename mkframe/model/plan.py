"""The plan: everything a run will do, decided before anything is allocated."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mkframe.model.device import Device
from mkframe.model.precision import Precision
from mkframe.model.report import CostRecord

GRAPH_SUFFIX = "-graph"


def is_chained(protocol: object, method: object) -> bool:
    """Whether a sample of a timing protocol, with that method of making caches cold, is the slope between two chains of calls."""
    return protocol == "unrolled" or (protocol == "cold" and method == "rotate")


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingPlan:
    """A timing protocol with its numbers. `hold` puts a delay in front of every sample (CUDA only).

    `spin_up_s`: light work before the first sample, so that the clocks have risen. `cell_timeout_s`: longest silence of a
    worker before the cell that it works on counts as hung.

    Of single protocols: `replays` back to back in a sample; chains of `k1` and more calls that differ by at least `slope_us`,
    rotating over at least `sets` sets of buffers; cold by `method` "rotate", over sets of `footprint` L2 caches together,
    or "evict".
    """

    protocol: str
    rounds: int
    samples_per_round: int
    processes: int
    warmups: int
    hold: bool
    spin_up_s: float
    cell_timeout_s: float
    replays: int = 1
    k1: int = 20
    slope_us: float = 200.0
    sets: int = 1
    method: str | None = None
    footprint: float = 0.0

    @property
    def chained(self) -> bool:
        """Whether a sample is the slope between two chains of calls."""
        return is_chained(self.protocol, self.method)

    @property
    def evicts(self) -> bool:
        """Whether every sample starts with an evicted L2."""
        return self.protocol == "cold" and self.method == "evict"

    @property
    def cache_state(self) -> str:
        return "cold" if self.protocol == "cold" else "warm"

    def process_of(self, round_index: int) -> int:
        """The process that measures a round: rounds are dealt to processes in consecutive runs of equal length."""
        return round_index * self.processes // self.rounds

    def rounds_of(self, process: int) -> tuple[int, ...]:
        return tuple(r for r in range(self.rounds) if self.process_of(r) == process)


@dataclass(frozen=True, kw_only=True, slots=True)
class EnginePlan:
    """One selected engine id: `engine` is the id in the registry, `id` the report key (with `-graph` for the graph form)."""

    id: str
    engine: str
    graph: bool
    baseline: bool
    implementation: str
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellPlan:
    """engine x case. `unsupported` is the reason why it will not run."""

    engine: EnginePlan
    unsupported: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePlan:
    """One shape of one set, with its cells. `index` counts inside the set; `cost` is the least that a call must move and compute."""

    set: str
    index: int
    seed: int
    case: Any
    shape: Mapping[str, int]
    cost: CostRecord
    cells: tuple[CellPlan, ...]

    @property
    def key(self) -> tuple[str, int]:
        return self.set, self.index

    @property
    def runnable(self) -> tuple[CellPlan, ...]:
        return tuple(cell for cell in self.cells if cell.unsupported is None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """A whole run on one device. `config` is the resolved configuration without anything that names this machine.

    `notes` are what the plan decided for the user, one line each, to be told before the run. `unsafe_plugins`: import names of plugins
    that no worker may import, with the reason.
    """

    workload: str
    precision: Precision
    device: Device
    timing: TimingPlan
    energy: str
    cases: tuple[CasePlan, ...]
    seeds: Mapping[str, int]
    config: Mapping[str, Any]
    plugin_paths: tuple[str, ...] = ()
    unsafe_plugins: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    notes: tuple[str, ...] = ()

    def cells(self) -> Iterator[tuple[CasePlan, CellPlan]]:
        for case in self.cases:
            for cell in case.cells:
                yield case, cell
