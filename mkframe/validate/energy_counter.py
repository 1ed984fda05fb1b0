"""The reads of an energy counter, in the order in which they were made."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mkframe.validate.energy_parts import Absent, Node, Number, Path, maybe, number, rounds


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """One read: where it stands, middle of the read, counter, and how long the read took (0 where that is no number)."""

    path: Path
    time_s: Number
    energy_mj: Number
    duration_s: Number


def reads(document: Node) -> Iterator[Read]:
    """All reads in the order in which they were made. An idle window that two rounds share counts once."""
    last_idle = None
    for one in rounds(document):
        shared = last_idle is not None and maybe(one.node, "idle_before") == last_idle
        last_idle = maybe(one.node, "idle_after")
        for place in _PLACES[2:] if shared else _PLACES:
            read = maybe(one.node, *place)
            try:
                time_s, energy_mj = number(read, "time_s"), number(read, "energy_mj")
            except Absent:
                continue
            yield Read(path=(*one.path, *place), time_s=time_s, energy_mj=energy_mj, duration_s=_duration(read))


_PLACES: tuple[Path, ...] = (
    ("idle_before", "start"),
    ("idle_before", "end"),
    ("measurement_start",),
    ("measurement_end",),
    ("idle_after", "start"),
    ("idle_after", "end"),
)


def _duration(read: Any) -> Number:
    try:
        return number(read, "read_duration_s")
    except Absent:
        return 0
