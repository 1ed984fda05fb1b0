"""The configuration as plain frozen types: what every later layer reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from mkframe.model.device import DeviceCard
from mkframe.model.precision import Precision

UNTOLD, UNTOLD_OF_DEVICE = ("out", "plugin_path"), ("uuid", "wait_s")
"""Keys of the configuration, and of its device, that no report holds: they name folders, or mean nothing to numbers."""


class DeviceKind(StrEnum):
    """`auto` is the first visible CUDA device that can be used, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class Protocol(StrEnum):
    """Timing protocols."""

    PER_CALL = "per_call"
    REPLAY = "replay"
    UNROLLED = "unrolled"
    COLD = "cold"


class ColdMethod(StrEnum):
    """How the caches are made cold."""

    ROTATE = "rotate"
    EVICT = "evict"


class EnergyProtocol(StrEnum):
    """Energy protocols."""

    NONE = "none"


class Select(StrEnum):
    """Presets that depend on the workload: which of its engines they stand for."""

    ALL = "all"
    BASELINES = "baselines"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadConfig:
    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineConfig:
    """One selected engine id with its options as they were written, or a preset (`select`)."""

    options: Mapping[str, Any] = field(default_factory=dict)
    select: Select | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceConfig:
    """`index` counts visible devices from 0; `uuid` is the beginning of the driver's UUID; `card` is what it must be;
    `wait_s` is how long to wait for another run on the same GPU, in seconds."""

    kind: DeviceKind
    index: int | None = None
    uuid: str | None = None
    card: DeviceCard | None = None
    wait_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingConfig:
    """`auto` stands for what suits the device: hold on CUDA, 1 s of spin-up on CUDA and none on a CPU. `budget_s`: the run
    gets fewer rounds where it would take longer than that; None: no limit. What follows it belongs to single protocols
    (model.plan.TimingPlan) and is None in the others."""

    protocol: Protocol
    rounds: int
    samples_per_round: int
    processes: int
    warmups: int
    hold: bool | Literal["auto"]
    spin_up_s: float | Literal["auto"]
    cell_timeout_s: float
    budget_s: float | None = None
    replays: int | None = None
    k1: int | None = None
    slope_us: float | None = None
    sets: int | None = None
    method: ColdMethod | None = None
    footprint: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyConfig:
    protocol: EnergyProtocol


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetCase:
    """A median to reach on one shape, microseconds; `stretch_us` would be better still."""

    shape: Mapping[str, int]
    p50_us: float
    stretch_us: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetGroup:
    """Targets that share device (its name), workload, precision, engine, timing protocol and conditions (prose)."""

    workload: str
    device: str
    precision: str
    engine: str
    protocol: str
    conditions: str
    cases: tuple[TargetCase, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetsConfig:
    id: str
    source: str
    groups: tuple[TargetGroup, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """One run. `engine` and `shape` are in the order of selection.

    A shape set is kept as it was written (`seed`, and `cases` or the axes of a grid): only its workload knows its keys.
    `out` is the folder that the user named for the report.
    """

    workload: WorkloadConfig
    engine: Mapping[str, EngineConfig]
    shape: Mapping[str, Mapping[str, Any]]
    precision: Precision
    device: DeviceConfig
    timing: TimingConfig
    energy: EnergyConfig
    targets: TargetsConfig
    plugin_path: tuple[str, ...] = ()
    out: str | None = None
