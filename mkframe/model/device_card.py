"""The card that `mkframe device probe` measures of one device, as types. schemas/device-card.schema.json is its public twin; a test
keeps the two in step. Not to be mixed up with model.device.DeviceCard, which says what a datasheet promises.

Times are microseconds (`_us`) or seconds (`_s`), rates bytes per second, clocks megahertz. What a CPU does not have is None.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

FORMAT = "device-card/1"


class Body(StrEnum):
    """What the kernel of a launch floor does."""

    EMPTY = "empty"
    PARAMETERS = "parameters"
    STORE = "store"
    LOAD = "load"
    ROUND_TRIP = "round_trip"


class Scope(StrEnum):
    """Whose threads a barrier joins."""

    BLOCK = "block"
    CLUSTER = "cluster"
    GRID = "grid"


class Operation(StrEnum):
    """What a bandwidth case does with memory. A copy moves every byte twice."""

    READ = "read"
    WRITE = "write"
    COPY = "copy"


class Pattern(StrEnum):
    """Whether the SMs read slices of their own from L2, or all the same data in step."""

    DISTINCT = "distinct"
    SAME = "same"


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """One figure per round: the median over the rounds, and the extremes."""

    rounds: int
    median_us: float
    min_us: float
    max_us: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """Bytes moved over time, one figure per round."""

    rounds: int
    median_bytes_per_s: float
    min_bytes_per_s: float
    max_bytes_per_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Clocks:
    """Clock readings of one kind."""

    readings: int
    median_mhz: float
    min_mhz: float
    max_mhz: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """One cache of a CPU. `shared_by` is the number of logical cores that share it."""

    level: int
    type: str
    bytes: int
    shared_by: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CardDevice:
    """The device. `shared_bytes_per_block` is the most shared memory that one block may ask for."""

    kind: str
    name: str
    uuid: str | None
    driver: str | None
    compute_capability: str | None
    multiprocessors: int | None
    memory_bytes: int
    l2_bytes: int | None
    shared_bytes_per_block: int | None
    cores: int | None
    threads: int | None
    caches: tuple[Cache, ...] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CardSoftware:
    """What measured."""

    mkframe: str
    source_commit: str | None
    python: str
    platform: str
    torch: str
    cuda: str | None
    nvrtc: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CardProtocol:
    """How it was measured. A launch floor is the slope between chains of `short_chain` and `long_chain` kernel nodes."""

    rounds: int
    short_chain: int | None
    long_chain: int | None
    replays: int | None
    spin_up_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockBehaviour:
    """The SM clock without work, under light elementwise work, and around every round. `measured` compares clock64 with
    globaltimer inside a kernel. `rise_s`: from idle until the measured clock stays within 2 % of where it ends.
    `throttle_reasons`: NVML's bits, of all readings together."""

    idle_nvml_mhz: float | None
    light_nvml_mhz: float | None
    light_measured: Clocks
    round_measured: Clocks
    round_nvml: Clocks | None
    memory_mhz: float | None
    rise_s: float
    throttle_reasons: int | None
    max_power_w: float | None
    max_temperature_c: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFloor:
    """What an event pair reads around `around`. `held`: enqueued behind a delay kernel, so that the host's pace is out."""

    around: str
    held: bool
    time: Times


@dataclass(frozen=True, kw_only=True, slots=True)
class EventClock:
    """`step_us` is the step of the event clock, None where readings show none."""

    step_us: float | None
    floors: tuple[EventFloor, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchFloor:
    """One kernel node in a chain, by slope. `cluster` counts blocks. `resident_blocks` is how many fit on the device at once;
    `time` is None where the launch does not fit, and `reason` says why."""

    body: Body
    grid: int
    block: int
    shared_bytes: int
    cluster: int
    cooperative: bool
    programmatic: bool
    resident_blocks: int
    time: Times | None
    reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BarrierFloor:
    """A barrier. `bare`: repeated with nothing between. `step`: store, barrier, load through L2, and one addition."""

    scope: Scope
    grid: int
    block: int
    cluster: int
    bare: Times
    step: Times


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRate:
    """One pass over `bytes` of memory. `moved_bytes` is twice that for a copy. Passes rotate over `sets` sets."""

    operation: Operation
    method: str
    bytes: int
    moved_bytes: int
    sets: int
    time: Times
    rate: Rates


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryModel:
    """time = latency_us + moved bytes / bytes_per_s, fitted over the sizes of one operation and method.
    `worst_residual` is the largest relative distance of a measured time from the line."""

    operation: Operation
    method: str
    latency_us: float
    bytes_per_s: float
    worst_residual: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheRate:
    """L2 to the SMs. `bytes` is the footprint in L2, `moved_bytes` what all SMs together take in one pass."""

    pattern: Pattern
    method: str
    bytes: int
    moved_bytes: int
    time: Times
    rate: Rates


@dataclass(frozen=True, kw_only=True, slots=True)
class HostFloors:
    """A CPU's clock: its smallest step between two readings, and what a clock pair reads around an empty call."""

    clock_step_us: float
    empty_call: Times


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredCard:
    """One measured device. `checks` lists what was compared, `notes` what was not measured and why."""

    measured_at_utc: str
    took_s: float
    device: CardDevice
    software: CardSoftware
    protocol: CardProtocol
    clock: ClockBehaviour | None
    events: EventClock | None
    launches: tuple[LaunchFloor, ...] | None
    barriers: tuple[BarrierFloor, ...] | None
    memory: tuple[MemoryRate, ...]
    memory_models: tuple[MemoryModel, ...]
    l2: tuple[CacheRate, ...] | None
    host: HostFloors | None
    checks: tuple[str, ...]
    notes: tuple[str, ...]
    format: str = FORMAT

    def document(self) -> dict[str, Any]:
        """The card as plain JSON types, `format` first."""
        plain: dict[str, Any] = _plain(self)
        return {"format": plain.pop("format"), **plain}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "MeasuredCard":
        """The card of a document that holds to the schema. Raises KeyError, TypeError or ValueError for any other."""
        card: MeasuredCard = _typed(cls, document)
        return card


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, StrEnum) else value


def _typed(kind: Any, value: Any) -> Any:
    """`value`, read from JSON, as an instance of `kind`: a dataclass of this module, a tuple of one type, or a scalar."""
    if typing.get_origin(kind) is types.UnionType:
        if value is None:
            return None
        (kind,) = (item for item in typing.get_args(kind) if item is not type(None))
    if typing.get_origin(kind) is tuple:
        return tuple(_typed(typing.get_args(kind)[0], item) for item in value)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{item.name: _typed(hints[item.name], value[item.name]) for item in fields(kind)})
    return kind(value) if isinstance(kind, type) and issubclass(kind, StrEnum) else value
