"""The whole probe of a GPU: clocks, events, launches, barriers, DRAM, L2; checked first, then measured; one card in the end."""

import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic

import numpy as np

from mkframe import __version__
from mkframe.errors import RunError
from mkframe.model.device import ClockReading
from mkframe.model.device_card import (
    CardDevice,
    CardProtocol,
    CardSoftware,
    ClockBehaviour,
    EventClock,
    EventFloor,
    LaunchFloor,
    MeasuredCard,
)
from mkframe.probe import barrier_cases, fit, l2_cases, launch_cases, memory_cases
from mkframe.probe.gpu import Gpu, GpuFacts, ProbeFault
from mkframe.probe.rounds import RoundClocks, measure
from mkframe.stamp import source_commit
from mkframe.stats import event_step_ms

ROUNDS = 7
SPIN_UP_S = 1.5
_IDLE_S = 2.0
_STEP_S = 0.05
_EVENTS = 100

Say = Callable[[str], None]


def probe_gpu(gpu: Gpu, rounds: int = ROUNDS, say: Say = lambda text: None, now: Callable[[], float] = monotonic) -> MeasuredCard:
    """Measures a GPU. `say` gets one line per part. Raises RunError where a kernel's data are wrong: no card is better than that one."""
    begin, started = now(), datetime.now(UTC)
    try:
        return _probe(gpu, rounds, say, now, begin, started)
    except ProbeFault as fault:
        raise RunError(f"device probe: {fault}; nothing was written") from fault


def _probe(gpu: Gpu, rounds: int, say: Say, now: Callable[[], float], begin: float, started: datetime) -> MeasuredCard:
    say("clock: idle, then light work")
    idle_clock, light_series = _clock_series(gpu, now)
    light_clock = gpu.reading().sm_clock_mhz
    clocks = RoundClocks()
    say("launches and barriers")
    gpu.reserve(launch_cases.buffer_bytes(gpu) | barrier_cases.buffer_bytes(gpu))
    launches, barriers = launch_cases.launch_cases(gpu), barrier_cases.barrier_cases(gpu)
    launch_cases.check_launches(gpu, launches)
    barrier_cases.check_barriers(gpu, barriers)
    slopes = [case.slope() for case in launches if case.reason is None] + [slope for case in barriers for slope in case.slopes()]
    found = measure(gpu, slopes, rounds, clocks)
    events = _events(gpu, rounds)
    say("DRAM")
    gpu.reserve(memory_cases.buffer_bytes(gpu))
    in_memory = memory_cases.memory_cases(gpu)
    memory_cases.check_memory(gpu, in_memory)
    found |= measure(gpu, [case.slope(gpu.facts) for case in in_memory], rounds, clocks)
    say("L2 to the multiprocessors")
    in_l2 = l2_cases.l2_cases(gpu)
    l2_cases.check_l2(gpu, in_l2)
    found |= measure(gpu, [case.slope(gpu.facts) for case in in_l2], rounds, clocks)
    memory = memory_cases.memory_rates(in_memory, found)
    floors = launch_cases.launch_floors(launches, found)
    return MeasuredCard(
        measured_at_utc=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        took_s=now() - begin,
        device=_device(gpu.facts),
        software=_software(gpu.facts),
        protocol=CardProtocol(
            rounds=rounds,
            short_chain=launch_cases.SHORT,
            long_chain=launch_cases.LONG,
            replays=launch_cases.REPLAYS,
            spin_up_s=SPIN_UP_S,
        ),
        clock=_behaviour(idle_clock, light_clock, light_series, clocks),
        events=events,
        launches=floors,
        barriers=barrier_cases.barrier_floors(barriers, found),
        memory=memory,
        memory_models=memory_cases.memory_models(memory),
        l2=l2_cases.l2_rates(in_l2, found),
        host=None,
        checks=_checks(len(barriers), len(in_memory), len(in_l2)),
        notes=_notes(gpu.facts, floors, bool(in_l2)),
    )


def _clock_series(gpu: Gpu, now: Callable[[], float]) -> tuple[float | None, list[tuple[float, float]]]:
    """NVML's clock without work, and (seconds of light work, measured MHz) from there on."""
    gpu.idle(_IDLE_S)
    idle = gpu.reading().sm_clock_mhz
    begin = now()
    series: list[tuple[float, float]] = []
    while not series or series[-1][0] < SPIN_UP_S:
        gpu.light_work(_STEP_S)
        series.append((now() - begin, gpu.measured_mhz()))
    return idle, series


def _events(gpu: Gpu, rounds: int) -> EventClock:
    kinds = [(around, held) for around in ("nothing", "kernel", "graph") for held in (False, True)]
    medians: dict[tuple[str, bool], list[float]] = {kind: [] for kind in kinds}
    readings: list[float] = []
    for round in range(-1, rounds):
        for around, held in kinds:
            values = gpu.events_us(around, held, _EVENTS)
            if round >= 0:
                medians[around, held].append(fit.times(values).median_us)
                readings += values
    step_ms = event_step_ms(np.array(readings) / 1e3)
    return EventClock(
        step_us=None if step_ms is None else step_ms * 1e3,
        floors=tuple(EventFloor(around=around, held=held, time=fit.times(values)) for (around, held), values in medians.items()),
    )


def _behaviour(idle: float | None, light: float | None, series: Sequence[tuple[float, float]], around: RoundClocks) -> ClockBehaviour:
    nvml = _known(around.nvml, "sm_clock_mhz")
    memory, power, heat = (_known(around.nvml, name) for name in ("memory_clock_mhz", "power_w", "temperature_c"))
    reasons = [reading.throttle_reasons for reading in around.nvml if reading.throttle_reasons is not None]
    joined = 0
    for bits in reasons:
        joined |= bits
    return ClockBehaviour(
        idle_nvml_mhz=idle,
        light_nvml_mhz=light,
        light_measured=fit.clocks([value for _, value in series[-max(1, len(series) // 4) :]]),
        round_measured=fit.clocks(around.measured_mhz),
        round_nvml=fit.clocks(nvml) if nvml else None,
        memory_mhz=max(memory, default=None),
        rise_s=fit.rise_s(series),
        throttle_reasons=joined if reasons else None,
        max_power_w=max(power, default=None),
        max_temperature_c=max(heat, default=None),
    )


def _known(readings: Sequence[ClockReading], name: str) -> list[float]:
    return [value for reading in readings if (value := getattr(reading, name)) is not None]


def _device(facts: GpuFacts) -> CardDevice:
    return CardDevice(
        kind="cuda",
        name=facts.name,
        uuid=facts.uuid,
        driver=facts.driver,
        compute_capability=facts.compute_capability,
        multiprocessors=facts.multiprocessors,
        memory_bytes=facts.memory_bytes,
        l2_bytes=facts.l2_bytes,
        shared_bytes_per_block=facts.shared_bytes_per_block,
        cores=None,
        threads=None,
        caches=None,
    )


def _software(facts: GpuFacts) -> CardSoftware:
    return software(torch=facts.torch, cuda=facts.cuda, nvrtc=facts.nvrtc)


def software(torch: str, cuda: str | None, nvrtc: str | None) -> CardSoftware:
    return CardSoftware(
        mkframe=__version__,
        source_commit=source_commit(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        torch=torch,
        cuda=cuda,
        nvrtc=nvrtc,
    )


def _checks(barriers: int, memory: int, l2: int) -> tuple[str, ...]:
    return (
        "Kernels that touch memory: every word they leave, after the chain that is timed.",
        f"{barriers} barriers: every value of a chain of exchanges through L2 was handed on, over 1 and 11 steps.",
        f"{memory} DRAM cases: the sum of all words read, every word copied, the first, middle and last MiB written.",
        f"{l2} L2 cases: the sum of all words that all multiprocessors read in two passes.",
    )


def _notes(facts: GpuFacts, floors: Sequence[LaunchFloor], l2: bool) -> tuple[str, ...]:
    notes = []
    if not facts.clusters:
        notes.append(f"Clusters, programmatic edges and bulk copies need compute capability 9.0; this is {facts.compute_capability}.")
    if missing := sum(floor.time is None for floor in floors):
        notes.append(f"{missing} launch shapes do not fit on the device; their entries say why.")
    if not l2:
        notes.append("L2 is too small for a footprint of one tile per multiprocessor; L2 to the multiprocessors was not measured.")
    return tuple(notes)
