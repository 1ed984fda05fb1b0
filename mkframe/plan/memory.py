"""What a case needs, in bytes, before anything is allocated."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mkframe.errors import ConfigError, DeviceError
from mkframe.model.device import Device
from mkframe.model.plan import TimingPlan
from mkframe.model.precision import Precision
from mkframe.model.tensors import Role, TensorSpec
from mkframe.plan.engines import Selected, answer
from mkframe.plan.shapes import shape_of, shown
from mkframe.plugin.answers import check_cost, check_scratch, check_tensors
from mkframe.plugin.workload import Workload

SAMPLES_LIMIT_BYTES = 64 * 2**20
_CLOCKS = 2
_SAMPLE_BYTES = 8
_ARRAY_HEADER_BYTES = 128
_REFERENCE_BYTES = 8  # float64 or int64
_DRAWN_BYTES = 4  # float32 or int32


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """`device_bytes`: inputs and weights once, outputs and scratch once for every engine. `host_bytes`: the drawn values,
    their float64 copies, and the float64 reference; what else a reference needs while it computes is not counted."""

    device_bytes: int
    host_bytes: int


def need(workload: Workload, case: Any, precision: Precision, runnable: Sequence[Selected]) -> Need:
    """Raises PluginError where the workload or an engine cannot say what it needs."""
    specs = answer(f"workload {workload.id}: tensors()", check_tensors, workload.tensors, case, precision)
    answer(f"workload {workload.id}: cost()", check_cost, workload.cost, case, precision)  # the report needs it, when all is measured
    given = [spec for spec in specs.values() if spec.role in (Role.INPUT, Role.WEIGHT)]
    outputs = [spec for spec in specs.values() if spec.role is Role.OUTPUT]
    scratch = sum(_scratch_bytes(item, case, precision, specs) for item in runnable)
    drawn = sum(spec.elements for spec in given)
    right = sum(spec.elements for spec in outputs)
    return Need(
        device_bytes=_bytes(given) + len(runnable) * _bytes(outputs) + scratch,
        host_bytes=drawn * (_DRAWN_BYTES + _REFERENCE_BYTES) + right * _REFERENCE_BYTES,
    )


def check(needed: Need, device: Device, workload: Workload, set_name: str, case: Any, machine_bytes: int) -> None:
    """Raises ConfigError for a case that cannot fit. On a CPU both needs are the machine's."""
    if device.kind == "cpu":
        _fits(needed.device_bytes + needed.host_bytes, device.memory_bytes, "this machine", workload, set_name, case)
    else:
        _fits(needed.device_bytes, device.memory_bytes, device.name, workload, set_name, case)
        _fits(needed.host_bytes, machine_bytes, "the machine (inputs and reference in float64)", workload, set_name, case)


def check_samples(timing: TimingPlan, cells: int) -> None:
    """The samples file is never larger than what a validator unpacks. Raises ConfigError."""
    size = cells * (samples_bytes(timing.rounds) + timing.rounds * timing.samples_per_round * _CLOCKS * _SAMPLE_BYTES)
    if size > SAMPLES_LIMIT_BYTES:
        room = SAMPLES_LIMIT_BYTES // cells - samples_bytes(timing.rounds)
        most = room // (timing.rounds * _CLOCKS * _SAMPLE_BYTES)
        advice = f"to at most {most}, or select fewer cases, engines or rounds" if most > 0 else "and select fewer cases, engines or rounds"
        raise ConfigError(
            f"timing.samples_per_round: {cells:,} cells x {timing.rounds} rounds x {timing.samples_per_round} samples are "
            f"{amount(size)}, and a report may hold {amount(SAMPLES_LIMIT_BYTES)}; reduce it {advice}"
        )


def samples_bytes(rounds: int) -> int:
    """What a cell takes in the samples file beside its samples: four array headers, and for each round its number and its
    worker's (int64)."""
    return 4 * _ARRAY_HEADER_BYTES + rounds * 16


def machine_memory_bytes() -> int:
    """Physical memory of this machine. Raises DeviceError where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError) as error:
        raise DeviceError("the size of this machine's memory is unknown (sysconf SC_PHYS_PAGES); mkframe runs on Linux") from error


def amount(size: int) -> str:
    """Bytes for people: `1.2 GiB`."""
    value, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{int(value)} bytes" if units[0] == "bytes" else f"{value:,.1f} {units[0]}"


def _fits(size: int, available: int, where: str, workload: Workload, set_name: str, case: Any) -> None:
    if size > available:
        which = f"shape.{set_name}: {shown(shape_of(workload, case))}"
        raise ConfigError(f"{which} needs {amount(size)}, and {where} has {amount(available)}; make it smaller")


def _scratch_bytes(item: Selected, case: Any, precision: Precision, taken: Mapping[str, TensorSpec]) -> int:
    def check(found: Any) -> Mapping[str, TensorSpec]:
        return check_scratch(found, taken)

    return _bytes(answer(f"engine {item.engine.id}: scratch()", check, item.engine.scratch, case, precision, item.options).values())


def _bytes(specs: Iterable[TensorSpec]) -> int:
    return sum(spec.bytes for spec in specs)
