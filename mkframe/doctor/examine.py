"""All examinations at once, each with its own time limit; the whole takes at most as long as the slowest may."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from mkframe.doctor import machine, tools
from mkframe.doctor.line import KINDS, Line, warn

CHILD_LIMIT_S = 8.0
LIMIT_S = 9.0
FILES_LIMIT_S = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """`look` gives the lines of one topic; after `limit_s` nobody waits for it any longer."""

    topic: str
    look: Callable[[], Iterable[Line]]
    limit_s: float


def examinations(output: Path, plugin_paths: Sequence[str], environ: Mapping[str, str]) -> tuple[Examination, ...]:
    """What the doctor looks at, in the order in which it is shown. `output`: where runs are written."""

    def files(topic: str, look: Callable[[], Iterable[Line]]) -> Examination:
        return Examination(topic=topic, look=look, limit_s=FILES_LIMIT_S)

    def child(topic: str, look: Callable[..., Iterable[Line]], *arguments: object) -> Examination:
        return Examination(topic=topic, look=partial(look, *arguments, CHILD_LIMIT_S), limit_s=LIMIT_S)

    return (
        files("python", machine.python_lines),
        files("torch", machine.installed_torch_lines),
        child("driver", tools.gpu_lines, environ),
        files("cpu", partial(machine.cpu_card_lines, environ)),
        files("cores", machine.own_core_lines),
        files("cpu frequency", machine.governor_lines),
        files("clock source", machine.clock_source_lines),
        files("cpu energy (RAPL)", machine.rapl_lines),
        files("output folder", partial(machine.disk_lines, output)),
        files("cache folder", partial(machine.cache_lines, environ)),
        child("C++ compiler", tools.compiler_lines),
        child("nvcc", tools.nvcc_lines),
        child("NVRTC", tools.nvrtc_lines),
        child("CuTe DSL", tools.cute_lines),
        child("plugins", tools.plugin_lines, plugin_paths),
    )


def examine(wanted: Sequence[Examination]) -> tuple[Line, ...]:
    """Every line, in order. An examination that fails or is too slow becomes a line that says so."""
    found: dict[int, tuple[Line, ...]] = {}

    def look(index: int, one: Examination) -> None:
        try:
            found[index] = tuple(one.look())
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            found[index] = (warn(one.topic, f"the look at it failed: {type(error).__name__}: {text}", "unknown", "please report this"),)

    # daemons: a thread that hangs in a file system or driver must not keep the command from ending
    threads = [threading.Thread(target=look, args=(index, one), daemon=True) for index, one in enumerate(wanted)]
    begin = monotonic()
    for thread in threads:
        thread.start()
    lines: list[Line] = []
    for index, (thread, one) in enumerate(zip(threads, wanted, strict=True)):
        thread.join(max(0.0, begin + one.limit_s - monotonic()))
        late = (warn(one.topic, f"no answer within {one.limit_s:g} s", "unknown", "try again; the machine may be busy"),)
        lines.extend(found.get(index, late))
    return tuple(lines)


def measurable(lines: Iterable[Line]) -> tuple[str, ...]:
    """The kinds of devices that nothing stops."""
    stopped = {kind for line in lines for kind in line.stops}
    return tuple(kind for kind in KINDS if kind not in stopped)
