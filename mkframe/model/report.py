"""The comparison report, as types. schemas/comparison.schema.json is its public twin; a test keeps the two in step.

The top level mirrors the recorded reports of other systems; everything that only our runner knows stands in one optional
block, `mkframe`. Times are milliseconds (`_ms`) or seconds (`_s`), sizes bytes, clocks megahertz.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from mkframe.model.device import ClockReading
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome, Verdict
from mkframe.model.peaks import PeaksRecord, RatesRecord
from mkframe.model.precision import Precision

FORMAT = "comparison/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Statistics of all samples of one cell and one clock. Quantiles: docs/report.md."""

    count: int
    p50_ms: float
    p95_ms: float
    min_ms: float
    max_ms: float
    mean_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineResult:
    """One cell in the recorded form. Summaries exist only where `passed`."""

    passed: bool
    replay_changed_input: bool
    stream_summary: Summary | None = None
    host_summary: Summary | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseResult:
    """One shape with every engine that could run on it."""

    shape: Mapping[str, int]
    engines: Mapping[str, EngineResult]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceRecord:
    """The device that ran, with what the worker saw of it."""

    kind: str
    name: str
    uuid: str | None
    compute_capability: str | None
    multiprocessors: int | None
    memory_bytes: int
    l2_bytes: int | None
    driver: str | None
    cuda: str | None
    threads: int | None
    card: str | None
    peaks: PeaksRecord | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentRecord:
    """What else the numbers depend on. `source_dirty`: uncommitted changes in the checkout; None where unknown."""

    python: str
    platform: str
    source_dirty: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FloorRecord:
    """The clock's reading with nothing, or next to nothing, inside: measured once per process."""

    name: str
    clock: str
    process: int
    summary: Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class TimingRecord:
    """The timing protocol as it ran. `round_process[r]` is the process that measured round r.

    `timer_step_ms` is the step of the stream clock, None where it could not be found.
    """

    protocol: str
    rounds: int
    samples_per_round: int
    processes: int
    warmups: int
    hold: bool
    cache_state: str
    round_process: tuple[int, ...]
    timer_step_ms: float | None
    floors: tuple[FloorRecord, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyRecord:
    """Energy. With the protocol `none` nothing was measured and every derived field is null."""

    protocol: str = "none"
    status: str = "not_measured"
    verdict: str | None = None
    net_mj: float | None = None
    u_mj: float | None = None
    sham_mj: float | None = None
    reference: str | None = None
    rounds: tuple[Mapping[str, float], ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplesRecord:
    """The side file with every raw sample: a bare name in the report's folder, and its SHA-256."""

    file: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRecord:
    """Worst comparison with the reference over every check of the cell."""

    max_abs_error: float
    mean_abs_error: float
    violations: int
    elements: int
    rtol: float
    atol: float
    rounding_rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CostRecord:
    """The least a call must move and compute."""

    bytes: int
    flops: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """95 % interval of the median stream time: Student's t over the processes; with one process, a bootstrap over its samples."""

    low_ms: float
    high_ms: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TwinRecord:
    """The launch twin of a cell: its graph with every kernel replaced by an empty one of the same launch configuration, timed by
    the same protocol right after the first block of each process. `stream_summary` is over the samples of all processes; null
    where no twin could be timed, and `reason` says why. `card_ms` is what the device's card says of it: the sum over the kernels of
    the nearest launch floor that was measured; null without a card, or where it has no floor of that kind."""

    stream_summary: Summary | None
    reason: str | None = None
    card_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CellRecord:
    """One cell of the plan, whatever became of it. `set` and `case` say where it stands in the plan (case counts from 0
    inside its set). `checks` lists the comparisons that it went through. `nodes` are the nodes of the
    captured graph, by name, `kernels` its launches in full; `late_samples` counts samples whose launch the GPU reached before the
    host had finished enqueuing it (hold only)."""

    set: str
    case: int
    shape: Mapping[str, int]
    engine: str
    form: str
    implementation: str
    baseline: bool
    options: Mapping[str, Any]
    outcome: Outcome
    reason: str | None = None
    check: CheckRecord | None = None
    checks: tuple[str, ...] = ()
    cost: CostRecord | None = None
    rates: RatesRecord | None = None
    bind_s: float | None = None
    check_s: float | None = None
    capture_s: float | None = None
    nodes: tuple[str, ...] | None = None
    late_samples: int | None = None
    interval: Interval | None = None
    kernels: tuple[LaunchRecord, ...] | None = None
    twin: TwinRecord | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundRecord:
    """Clocks around one round of one case in one process."""

    set: str
    case: int
    process: int
    round: int
    before: ClockReading
    after: ClockReading


@dataclass(frozen=True, kw_only=True, slots=True)
class VerdictRecord:
    """One engine against the fastest baseline of the same form in its case. `ratio` = engine / baseline, of medians; below 1 is faster."""

    set: str
    case: int
    engine: str
    baseline: str
    verdict: Verdict
    ratio: float
    ratio_low: float
    ratio_high: float
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameworkBlock:
    """What only our own runner knows: the optional top-level key `mkframe`."""

    version: str
    workload: str
    precision: Precision
    device: DeviceRecord
    environment: EnvironmentRecord
    config: Mapping[str, Any]
    config_sha256: str
    seeds: Mapping[str, int]
    timing: TimingRecord
    energy: EnergyRecord
    samples: SamplesRecord
    cells: tuple[CellRecord, ...]
    rounds: tuple[RoundRecord, ...]
    verdicts: tuple[VerdictRecord, ...]
    incomplete: bool
    format: str = FORMAT


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonReport:
    """A comparison report. `sets` holds one list of cases per shape set and is flattened into the top level."""

    recorded_on: str
    device: str
    precision: str
    packages: Mapping[str, str]
    timing: str
    rounds: int
    samples_per_round: int
    source_sha256: Mapping[str, str]
    source_commit: str | None
    sets: Mapping[str, tuple[CaseResult, ...]]
    limitations: tuple[str, ...]
    sanitizers: str
    source_replay_checks: str
    mkframe: FrameworkBlock

    def document(self) -> dict[str, Any]:
        """The report as plain JSON types, keys in the order of the recorded reports."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        sets = plain.pop("sets")
        head = {key: plain.pop(key) for key in _HEAD}
        return {**head, **sets, **plain}


_HEAD = ("recorded_on", "device", "precision", "packages", "timing", "rounds", "samples_per_round", "source_sha256")


def _plain(value: Any) -> Any:
    if isinstance(value, EngineResult):  # a summary that does not exist is absent, not null
        return {key: item for key, item in asdict(value).items() if item is not None}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Outcome | Verdict) else value
