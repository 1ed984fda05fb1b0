"""Why a run ended early, in words for its report and in words for whoever sits at the terminal."""

from collections.abc import Mapping
from dataclasses import dataclass

from mkframe.errors import UnreadableError, UsageError
from mkframe.run import messages as m


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """`reason` stands in the report and names no folder. `cure` is what somebody must do before the rest can be measured, None where
    nothing need be done."""

    reason: str
    cure: str | None = None


class UnwritableJournal(UnreadableError):
    """The journal takes no more lines. `gone`: it was removed, and what it held cannot be resumed."""

    def __init__(self, message: str, stopped: Stopped, *, gone: bool = False) -> None:
        super().__init__(message)
        self.stopped = stopped
        self.gone = gone


class Changed(UsageError):
    """What a report states once is not what it was when the run began: nothing more can be measured for it."""

    def __init__(self, stopped: Stopped) -> None:
        super().__init__(f"{stopped.reason}; a report holds one code and one set of conditions: {stopped.cure}, or start the run again")
        self.stopped = stopped


def check_sources(known: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raises Changed where a file of `now` has another SHA-256 than `known` says. Files that only one of them names do not count."""
    for file, digest in now.items():
        if known.get(file, digest) != digest:
            raise Changed(Stopped(reason=f"{file} has changed since the run began", cure="go back to it"))


def check_conditions(first: m.Hello, now: m.Hello) -> None:
    """Raises Changed where a worker sees something else than the first one of its run in what the report says of all of them."""
    if now.threads != first.threads:
        raise _changed("the number of threads that torch uses", first.threads, now.threads, f"set OMP_NUM_THREADS={first.threads}")
    for name in sorted({*first.packages, *now.packages}):
        before, after = first.packages.get(name), now.packages.get(name)
        if after != before:
            raise _changed(
                f"the version of {name}", before, after, f"remove {name}" if before is None else f"install {name} {before} again"
            )
    for field, what in _OF_DEVICE.items():
        before, after = getattr(first, field), getattr(now, field)
        if after != before:
            raise _changed(f"{what} of the device", before, after, "use that device again")


_OF_DEVICE = {
    "name": "the name",
    "multiprocessors": "the number of multiprocessors",
    "l2_bytes": "the L2 size in bytes",
    "cuda": "the CUDA version",
}


def _changed(what: str, before: object, after: object, cure: str) -> Changed:
    was, now = ("unknown" if value is None else value for value in (before, after))
    return Changed(Stopped(reason=f"{what} was {was} when the run began and is {now} now", cure=cure))
