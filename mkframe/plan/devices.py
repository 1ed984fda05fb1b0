"""Which device a run gets. NVML tells what is there: no torch, no CUDA context in the coordinator."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkframe.config.device_cards import shipped_card
from mkframe.errors import DeviceError
from mkframe.model.device import Device, DeviceCard
from mkframe.plan.cuda_devices import Board, CudaUnavailable, nvml, visible_boards
from mkframe.plan.memory import machine_memory_bytes
from mkframe.settings.contracts import check_device
from mkframe.settings.nodes import DeviceConfig, DeviceKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """The device, and one line for people where `auto` had to choose."""

    device: Device
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchBuild:
    """The installed torch, read from its version file: `cuda` is None for a CPU build."""

    version: str
    cuda: str | None


def resolve(
    config: DeviceConfig, *, environ: Mapping[str, str] = os.environ, driver: Any = None, torch: TorchBuild | None = None
) -> Resolved:
    """The device that the configuration names.

    CUDA_VISIBLE_DEVICES is honoured. `driver` stands for the pynvml module and `torch` for the installed build, in tests.
    Raises DeviceError (absent, or not what its card says), ConfigError (keys that contradict each other).
    """
    check_device(config)
    if config.kind is DeviceKind.CPU:
        return Resolved(device=_checked(cpu(), config.card))
    try:
        boards = _usable_boards(environ, driver, torch)
    except CudaUnavailable as reason:
        if config.kind is DeviceKind.CUDA:
            raise DeviceError(f"device: no CUDA device can be used: {reason}; use device=cpu") from None
        device = cpu()
        return Resolved(device=device, note=f"device: {device.name} (CPU), because {reason}")
    device = _checked(_picked(boards, config).device(), config.card)
    return Resolved(device=device, note=f"device: {device.name}" if config.kind is DeviceKind.AUTO else None)


def cpu() -> Device:
    """This machine's processor. `threads` is what this process may use of it."""
    return Device(kind="cpu", name=_cpu_name(), memory_bytes=machine_memory_bytes(), threads=len(os.sched_getaffinity(0)))


def installed_torch() -> TorchBuild | None:
    """Reads torch/version.py without importing torch, which takes seconds. None where torch is not installed."""
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        text = (Path(next(iter(spec.submodule_search_locations))) / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    return TorchBuild(version=_assigned(text, "__version__") or "unknown", cuda=_assigned(text, "cuda"))


def _assigned(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found[1] if found else None


def _usable_boards(environ: Mapping[str, str], driver: Any, torch: TorchBuild | None) -> tuple[Board, ...]:
    build = torch if torch is not None else installed_torch()
    if build is None:
        raise CudaUnavailable("torch is not installed")
    if build.cuda is None:
        raise CudaUnavailable(f"the installed torch ({build.version}) is built for CPUs")
    with nvml(driver) as module:
        boards = visible_boards(module, environ)
    if not boards:
        hidden = " (CUDA_VISIBLE_DEVICES hides all)" if "CUDA_VISIBLE_DEVICES" in environ else ""
        raise CudaUnavailable(f"no CUDA device is visible{hidden}")
    return boards


def _picked(boards: tuple[Board, ...], config: DeviceConfig) -> Board:
    there = ", ".join(f"{index}: {board.name} ({board.uuid})" for index, board in enumerate(boards))
    if config.uuid is not None:
        matching = [board for board in boards if board.answers_to(config.uuid)]
        if len(matching) != 1:
            what = "no visible device has" if not matching else "several visible devices have"
            raise DeviceError(f"device.uuid: {what} the UUID {config.uuid}; there are {there}")
        return matching[0]
    index = config.index or 0
    if not 0 <= index < len(boards):
        raise DeviceError(f"device.index: there is no device {index}; there are {there}")
    return boards[index]


def _checked(device: Device, card: DeviceCard | None) -> Device:
    """The device with its card, or a DeviceError where it is another one. Where none was asked for, the one that ships for a device of
    this name, if any. The number of SMs shows in the worker only."""
    if card is None:
        return device if device.kind == "cpu" else replace(device, card=shipped_card(device.name, device.compute_capability))
    found = (device.name, device.compute_capability)
    if found != (card.name, card.compute_capability):
        capability = f" (compute capability {device.compute_capability})" if device.compute_capability else ""
        raise DeviceError(
            f"device={card.id}: expects {card.name} (compute capability {card.compute_capability}), and this is {device.name}{capability}; "
            "use device=auto, or the card of this device"
        )
    return replace(device, card=card)


def _cpu_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return " ".join((found[1] if found else platform.processor() or platform.machine() or "unknown CPU").split())
