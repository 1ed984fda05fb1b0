"""The reads of the counter over the whole file: time and counter only go forward, and reads are made one after another."""

from collections.abc import Iterator
from dataclasses import dataclass

from mkframe.validate.energy_parts import Absent, Node, Number, Path, energy_rule, maybe, number, rounds
from mkframe.validate.finding import Finding, error, shown

_CLOCK_SLACK_S = 1e-6


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
            try:
                time_s, energy_mj = one.number(*place, "time_s"), one.number(*place, "energy_mj")
            except Absent:
                continue
            yield Read(path=(*one.path, *place), time_s=time_s, energy_mj=energy_mj, duration_s=_duration(one.node, place))


_PLACES: tuple[Path, ...] = (
    ("idle_before", "start"),
    ("idle_before", "end"),
    ("measurement_start",),
    ("measurement_end",),
    ("idle_after", "start"),
    ("idle_after", "end"),
)


def _duration(node: Node, place: Path) -> Number:
    try:
        return number(node, *place, "read_duration_s")
    except Absent:
        return 0


def forward(document: Node) -> Iterator[Finding]:
    """Neither the clock nor the counter goes back."""
    time_s = energy_mj = None
    for read in reads(document):
        if time_s is not None and read.time_s < time_s:
            yield error("reads", f"time_s is {shown(read.time_s)}, before the read before it at {shown(time_s)}", (*read.path, "time_s"))
        if energy_mj is not None and read.energy_mj < energy_mj:
            why = f"energy_mj is {shown(read.energy_mj)}, less than the {shown(energy_mj)} before it; the counter only counts up"
            yield error("reads", why, (*read.path, "energy_mj"))
        time_s, energy_mj = read.time_s, read.energy_mj


def midpoints(document: Node) -> Iterator[Finding]:
    """time_s is the middle of a read: half a read on either side of it, no two reads overlap."""
    before = None
    for read in reads(document):
        if before is not None and read.time_s >= before.time_s:
            needed = (float(before.duration_s) + float(read.duration_s)) / 2
            apart = read.time_s - before.time_s
            if apart < needed - _CLOCK_SLACK_S:
                why = (
                    f"time_s is {shown(apart)} s after the read before it, and half of both reads takes {shown(needed)} s: "
                    "they overlap, so time_s is not the middle of a read"
                )
                yield error("midpoints", why, (*read.path, "time_s"))
        before = read


READ_RULES = (
    energy_rule("reads", forward, "over the whole file, time goes forward and the counter never goes back"),
    energy_rule("midpoints", midpoints, "time_s is the middle of a read, so reads of read_duration_s around it do not overlap"),
)
