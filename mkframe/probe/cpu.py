"""The probe of a CPU: the clock's step, an empty call, and the memory bandwidth of torch's threads."""

import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic, perf_counter_ns

import numpy as np
import torch

from mkframe.errors import RunError
from mkframe.model.device import Device
from mkframe.model.device_card import CardDevice, CardProtocol, HostFloors, MeasuredCard, MemoryRate, Operation
from mkframe.probe import fit, machine
from mkframe.probe.memory_cases import memory_models
from mkframe.probe.session import ROUNDS, Say, software
from mkframe.timing.cpu import CpuPerCall

_SAMPLES = 1000
_CALLS = 3
_SPIN_UP_S = 0.3
_SMALLEST_BYTES = 64 * 2**20
_CACHE_FACTOR = 4
_MEMORY_SHARE = 16
_CHECK_TOLERANCE = 1e-4
_METHODS = {Operation.READ: "torch sum of float32", Operation.WRITE: "torch fill of float32", Operation.COPY: "torch copy of float32"}


def probe_cpu(
    device: Device,
    rounds: int = ROUNDS,
    sizes: Sequence[int] | None = None,
    say: Say = lambda text: None,
    now: Callable[[], float] = monotonic,
) -> MeasuredCard:
    """Measures this machine's processor. `sizes`: footprints in bytes, multiples of 4; by default 1, 2 and 4 times what its caches
    cannot hold. Raises RunError where the data are wrong afterwards."""
    begin, started = now(), datetime.now(UTC)
    found_caches = machine.caches()
    say("clock")
    host = _host(rounds)
    say("memory")
    chosen = default_sizes(machine.largest_cache_bytes(found_caches), device.memory_bytes) if sizes is None else tuple(sizes)
    memory = _memory(chosen, rounds)
    return MeasuredCard(
        measured_at_utc=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        took_s=now() - begin,
        device=CardDevice(
            kind="cpu",
            name=device.name,
            uuid=None,
            driver=None,
            compute_capability=None,
            multiprocessors=None,
            memory_bytes=device.memory_bytes,
            l2_bytes=None,
            shared_bytes_per_block=None,
            cores=machine.cores(),
            threads=device.threads,
            caches=found_caches,
        ),
        software=software(torch=str(torch.__version__), cuda=None, nvrtc=None),
        protocol=CardProtocol(rounds=rounds, short_chain=None, long_chain=None, replays=None, spin_up_s=_SPIN_UP_S),
        clock=None,
        events=None,
        launches=None,
        barriers=None,
        memory=memory,
        memory_models=memory_models(memory),
        l2=None,
        host=host,
        checks=("Every word copied or written, and the sum of all that was read, within 0.01 % in float32.",),
        notes=("A CPU has no launches, events, barriers of a grid or L2 to multiprocessors; these fields are null.",),
    )


def default_sizes(cache_bytes: int, memory_bytes: int) -> tuple[int, ...]:
    """Footprints that caches cannot hold, and that with their copy take a small part of the memory."""
    largest = memory_bytes // _MEMORY_SHARE
    smallest = min(max(_SMALLEST_BYTES, _CACHE_FACTOR * cache_bytes), largest // 4)
    return tuple(smallest // 4096 * 4096 * factor for factor in (1, 2, 4))


def _host(rounds: int) -> HostFloors:
    sampler = CpuPerCall()
    medians = [float(np.median(sampler.floors(_SAMPLES)["empty-call", "stream"])) * 1e3 for _ in range(rounds)]
    readings = np.array([perf_counter_ns() for _ in range(10 * _SAMPLES)])
    steps = np.diff(readings)
    return HostFloors(clock_step_us=float(steps[steps > 0].min()) / 1e3, empty_call=fit.times(medians))


def _memory(sizes: Sequence[int], rounds: int) -> tuple[MemoryRate, ...]:
    """Each size and operation once per round; the median of a few calls counts."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(0, 4, (max(sizes) // 4,), generator=generator, dtype=torch.int32).to(torch.float32)
    target = torch.zeros_like(source)
    cases = [(size, operation) for size in sizes for operation in Operation]
    for size, operation in cases:
        _check(operation, source[: size // 4], target[: size // 4])
    end = monotonic() + _SPIN_UP_S
    while monotonic() < end:
        target.fill_(0.0)
    found: dict[tuple[int, Operation], list[float]] = {case: [] for case in cases}
    for round in range(-1, rounds):
        first = max(round, 0) * len(cases) // rounds
        for index in range(len(cases)):
            size, operation = cases[(first + index) % len(cases)]
            value = _timed_us(_call(operation, source[: size // 4], target[: size // 4]))
            if round >= 0:
                found[size, operation].append(value)
    return tuple(_rate(size, operation, values) for (size, operation), values in found.items())


def _rate(size: int, operation: Operation, values: list[float]) -> MemoryRate:
    moved = size * (2 if operation is Operation.COPY else 1)
    return MemoryRate(
        operation=operation,
        method=_METHODS[operation],
        bytes=size,
        moved_bytes=moved,
        sets=1,
        time=fit.times(values),
        rate=fit.rates(moved, values),
    )


def _call(operation: Operation, source: torch.Tensor, target: torch.Tensor) -> Callable[[], torch.Tensor]:
    if operation is Operation.READ:
        return source.sum
    return (lambda: target.fill_(3.0)) if operation is Operation.WRITE else (lambda: target.copy_(source))


def _timed_us(call: Callable[[], torch.Tensor]) -> float:
    collecting = gc.isenabled()
    gc.disable()
    try:
        found = []
        for _ in range(_CALLS):
            begin = perf_counter_ns()
            call()
            found.append((perf_counter_ns() - begin) / 1e3)
        return float(np.median(found))
    finally:
        if collecting:
            gc.enable()


def _check(operation: Operation, source: torch.Tensor, target: torch.Tensor) -> None:
    target.fill_(-1.0)
    result = float(_call(operation, source, target)().sum())
    values = source.numpy()
    expected = {
        Operation.READ: float(values.sum(dtype=np.float64)),
        Operation.WRITE: 3.0 * values.size,
        Operation.COPY: float(values.sum(dtype=np.float64)),
    }[operation]
    left = {
        Operation.READ: target.numpy() == -1.0,
        Operation.WRITE: target.numpy() == 3.0,
        Operation.COPY: target.numpy() == values,
    }[operation]
    if abs(result - expected) > _CHECK_TOLERANCE * expected or not left.all():
        raise RunError(f"device probe: {_METHODS[operation]} over {4 * values.size} bytes left wrong data; nothing was written")
