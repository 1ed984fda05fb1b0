"""The doctor's lines on the machine: Python, torch, cores, clock, disk, energy of the CPU. Files are read, nothing else."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mkframe.doctor.gpus import card_line
from mkframe.doctor.line import KINDS, Line, no, ok, warn
from mkframe.plan.devices import TorchBuild, cpu, installed_torch
from mkframe.probe.cards import cards_folder, identity

_GIB = 2**30
_LITTLE_DISK_BYTES = _GIB
_NO_DISK_BYTES = 64 * 2**20
_LITTLE_CACHE_BYTES = 2**20
_BUSY = 0.5
_GOOD_CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock")
_CPU = Path("/sys/devices/system/cpu")
_CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_POWERCAP = Path("/sys/class/powercap")


def python_lines(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Iterator[Line]:
    found = "Python " + ".".join(str(part) for part in version)
    if (3, 11) <= version[:2] < (3, 14):
        yield ok("python", found, "supported")
    else:
        yield warn("python", found, "not supported: 3.11 to 3.13 are tested", "use one of them")


def torch_lines(build: TorchBuild | None) -> Iterator[Line]:
    """From the version file: torch itself is not imported."""
    if build is None:
        yield no("torch", "not installed", "nothing can be measured: torch owns memory and streams", "install torch", *KINDS)
    elif build.cuda is None:
        yield no("torch", f"torch {build.version}, built for CPUs", "GPUs cannot be measured", "install a CUDA build of torch", "cuda")
    else:
        yield ok("torch", f"torch {build.version} for CUDA {build.cuda}", "GPUs and the CPU can be measured")


def installed_torch_lines() -> Iterator[Line]:
    yield from torch_lines(installed_torch())


def core_lines(cores: int, load: float) -> Iterator[Line]:
    """`cores`: what this process may use. `load`: runnable tasks over the last minute."""
    found = f"{cores} core(s), load {load:.2f}"
    if load > _BUSY * cores:
        yield warn("cores", found, "other work shares the CPU: host times and CPU engines are noisy", "wait until the machine is idle")
    elif cores == 1:
        yield warn("cores", found, "the coordinator and the worker share a core", "use a machine with two cores or more")
    else:
        yield ok("cores", found, "the CPU is free")


def own_core_lines() -> Iterator[Line]:
    yield from core_lines(len(os.sched_getaffinity(0)), os.getloadavg()[0])


def governor_lines(folder: Path = _CPU) -> Iterator[Line]:
    found = sorted({text for path in folder.glob("cpu[0-9]*/cpufreq/scaling_governor") if (text := _read(path))})
    if not found:
        yield ok("cpu frequency", "the kernel tells no governor (usual in a virtual machine)", "CPU clocks cannot be judged")
    elif found == ["performance"]:
        yield ok("cpu frequency", "governor performance", "CPU clocks stay up")
    else:
        means = "CPU clocks follow the load: CPU engines and host times vary"
        yield warn("cpu frequency", f"governor {', '.join(found)}", means, "ask the administrator for the performance governor")


def clock_source_lines(path: Path = _CLOCK) -> Iterator[Line]:
    found = _read(path)
    if not found:
        yield warn("clock source", "the kernel tells none", "the cost of reading the clock is unknown", None)
    elif found in _GOOD_CLOCKS:
        yield ok("clock source", found, "reading the clock costs tens of nanoseconds")
    else:
        means = "each reading costs a microsecond or so, and takes part in CPU and host times"
        yield warn("clock source", found, means, "find out why the kernel gave up the TSC (see its log)")


def rapl_lines(folder: Path = _POWERCAP) -> Iterator[Line]:
    zones = sorted(folder.glob("*rapl*:*/energy_uj"))
    readable = [path for path in zones if _read(path)]
    if readable:
        yield ok("cpu energy (RAPL)", f"{len(readable)} of {len(zones)} zones readable", "energy of the CPU can be measured")
    elif zones:
        yield no(
            "cpu energy (RAPL)", "only root may read it", "energy of the CPU cannot be measured", "ask for read access, or use energy=none"
        )
    else:
        yield no("cpu energy (RAPL)", "the kernel shows none (usual in a virtual machine)", "energy of the CPU cannot be measured", None)


def disk_lines(folder: Path) -> Iterator[Line]:
    """`folder`: where runs are written. It need not exist; the nearest parent that does counts. Nothing is written."""
    there = _nearest(folder)
    if there is None:
        yield no(
            "output folder", f"{folder.name} cannot be written here", "no report can be written", "change folder, or give out=DIR", *KINDS
        )
        return
    free = shutil.disk_usage(there).free
    found = f"{free / _GIB:.1f} GiB free"
    if free < _NO_DISK_BYTES:
        yield no("output folder", found, "a run would end in a full disk", "free some space, or give out=DIR", *KINDS)
    elif free < _LITTLE_DISK_BYTES:
        yield warn("output folder", found, "large grids may not fit", "free some space, or give out=DIR")
    else:
        yield ok("output folder", found, "reports and samples fit")


def cache_lines(environ: Mapping[str, str]) -> Iterator[Line]:
    """The folder of device cards and of what earlier runs took. It need not exist. Nothing is written."""
    folder = cards_folder(environ)
    there = _nearest(folder)
    means = "device cards and the times of earlier runs cannot be kept"
    if there is None:
        yield warn("cache folder", "cannot be written", means, "make it writable, or set XDG_CACHE_HOME")
    elif (free := shutil.disk_usage(there).free) < _LITTLE_CACHE_BYTES:
        yield warn("cache folder", f"{free // 1024} KiB free", means, "free some space, or set XDG_CACHE_HOME")
    else:
        yield ok("cache folder", "can be written", "device cards and the times of earlier runs are kept")


def _nearest(folder: Path) -> Path | None:
    """The folder, or the nearest parent that exists; None where that is no folder that can be written."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    return there if there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK) else None


def cpu_card_lines(environ: Mapping[str, str]) -> Iterator[Line]:
    device = cpu()
    yield ok("cpu", device.name, "device=cpu picks it")
    yield card_line("cpu", *identity(device), environ)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
