"""The reads of the counter over the whole file: time and counter only go forward, and reads are made one after another."""

from collections.abc import Iterator

from mkframe.validate.energy_view import EnergyReport, view_rule
from mkframe.validate.finding import Finding, error, shown

_CLOCK_SLACK_S = 1e-6


def forward(report: EnergyReport) -> Iterator[Finding]:
    """Neither the clock nor the counter goes back."""
    time_s = energy_mj = None
    for read in report.reads:
        if time_s is not None and read.time_s < time_s:
            yield error("reads", f"time_s is {shown(read.time_s)}, before the read before it at {shown(time_s)}", (*read.path, "time_s"))
        if energy_mj is not None and read.energy_mj < energy_mj:
            why = f"energy_mj is {shown(read.energy_mj)}, less than the {shown(energy_mj)} before it; the counter only counts up"
            yield error("reads", why, (*read.path, "energy_mj"))
        time_s, energy_mj = read.time_s, read.energy_mj


def midpoints(report: EnergyReport) -> Iterator[Finding]:
    """time_s is the middle of a read: half a read on either side of it, no two reads overlap."""
    before = None
    for read in report.reads:
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
    view_rule("reads", forward, "over the whole file, time goes forward and the counter never goes back"),
    view_rule("midpoints", midpoints, "time_s is the middle of a read, so reads of read_duration_s around it do not overlap"),
)
