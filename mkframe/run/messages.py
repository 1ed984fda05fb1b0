"""What the coordinator and a worker say to each other. Plain data only: no plugin class travels between processes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mkframe.model.device import ClockReading
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome
from mkframe.model.plan import TimingPlan
from mkframe.model.report import CheckRecord
from mkframe.stats import Samples


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSetup:
    """How a worker starts. `process` is its number in the plan; a worker restarted after a fault keeps it."""

    workload: str
    precision: str
    device_kind: str
    device_uuid: str | None
    timing: TimingPlan
    plugin_paths: tuple[str, ...]
    process: int
    unsafe_plugins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRequest:
    """One cell to open: the report key, the registry id, the form and the options."""

    id: str
    engine: str
    graph: bool
    options: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenCase:
    """Draw a case, bind its engines, check them. Answered by CellReady or CellFailed for each, then CaseReady."""

    set: str
    index: int
    seed: int
    case: Mapping[str, int]
    engines: tuple[EngineRequest, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundRequest:
    """Blocks of one round, in the order in which they are to run. Answered by a BlockDone or CellFailed for each (and
    after the first block of a graph form by its TwinDone), then RoundDone."""

    round: int
    engines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CloseCase:
    """Check what the last timed calls left behind, free everything. Answered by CellClosed or CellFailed for each, then CaseClosed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """End the worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    """What a worker sees of its device once it is ready to work, and its clocks' floors.

    `floors`: (name, clock) -> samples in ms. `packages`: name -> version.
    """

    pid: int
    name: str
    multiprocessors: int | None
    l2_bytes: int | None
    cuda: str | None
    threads: int | None
    packages: Mapping[str, str]
    floors: Mapping[tuple[str, str], Samples]
    step_ms: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What the worker does from now on, for whom: the last one before a silence names the guilty engine."""

    engine: str | None
    doing: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CellReady:
    """A cell passed its checks. Times in seconds; `nodes` are those of the captured graph, `kernels` its launches."""

    engine: str
    check: CheckRecord | None
    checks: tuple[str, ...]
    bind_s: float
    check_s: float
    capture_s: float | None
    nodes: tuple[str, ...] | None
    kernels: tuple[LaunchRecord, ...] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class CellClosed:
    """A timed cell passed its last check. The evidence of all checks, in order."""

    engine: str
    check: CheckRecord | None
    checks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellFailed:
    """A cell is over. `engine` None means every cell of the case."""

    engine: str | None
    outcome: Outcome
    reason: str
    check: CheckRecord | None = None
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseReady:
    """Every engine of the case was tried. `sources`: SHA-256 of the files that the worker has imported so far."""

    sources: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockDone:
    """The samples of one engine in one round, in ms, shape (samples,)."""

    engine: str
    round: int
    stream_ms: Samples
    host_ms: Samples
    late: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TwinDone:
    """The launch twin of one engine's graph in this process: samples in ms, shape (samples,). Without any, `reason` says why."""

    engine: str
    stream_ms: Samples
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundDone:
    """A round is over; the clocks around it."""

    round: int
    before: ClockReading
    after: ClockReading


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseClosed:
    """Everything of the case is freed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerFailed:
    """The worker cannot go on, and ends. `usage` is true where the user must act (an absent device), false for a fault."""

    reason: str
    usage: bool


Request = OpenCase | RoundRequest | CloseCase | Stop
Event = Hello | Stage | CellReady | CellClosed | CellFailed | CaseReady | BlockDone | TwinDone | RoundDone | CaseClosed | WorkerFailed
