"""Every figure of a round, rebuilt from the reads of the counter in one order of evaluation. The formulas: docs/energy-report.md.

Each figure is rebuilt from what stands one step below it, so that one wrong figure is one finding.
"""

import struct
from collections.abc import Callable, Iterator

from mkframe.validate.energy_parts import (
    IDLES,
    MEASUREMENT,
    RELATIVE,
    Absent,
    Number,
    Path,
    Round,
    finite,
    held_against,
    idle_window,
    items,
    number,
)
from mkframe.validate.energy_view import EnergyReport, view_rule
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.two_clocks import DRIFT

"""Crystals of host and device may differ by this much."""
_CLOCK_SLACK_S = 1e-6


def _gross(one: Round) -> Number:
    if one.on_edges:
        return one.number("average_power_w") * one.number("wall_ms")
    return one.energy_mj(*MEASUREMENT) / one.repeats


def _wall(one: Round) -> Number:
    return one.run_s * 1000 / one.repeats


def _power(one: Round, start: Path, end: Path) -> Number:
    return one.energy_mj(start, end) / 1000 / one.seconds(start, end)


def _average_power(one: Round) -> Number:
    return _power(one, *MEASUREMENT)


def _adjusted(one: Round) -> Number:
    before, after = (one.number(name, "power_w") for name in IDLES)
    idle_w = 0.5 * (before + after)
    if one.on_edges:
        return (one.number("average_power_w") - idle_w) * one.number("wall_ms")
    return (one.energy_mj(*MEASUREMENT) - idle_w * one.seconds(*MEASUREMENT) * 1000) / one.repeats


def _cuda(one: Round) -> Number:
    total: float = struct.unpack("<f", struct.pack("<f", float(one.number("cuda_ms") * one.repeats)))[0]
    return total / one.repeats


def _nothing(one: Round) -> float:
    return 0.0


def _rounding(one: Round) -> float:
    """Net energy is a small difference of large totals, so the rounding of the totals is what it may be off by."""
    return RELATIVE * abs(finite(_gross, one) or 0.0)


def _figure(
    rule: str,
    name: str,
    formula: Callable[[Round], Number],
    words: str,
    on_edges: str | None = None,
    slack: Callable[[Round], float] = _nothing,
) -> Callable[[EnergyReport], Iterator[Finding]]:
    """A check of one figure of every round. `words`: the formula; `on_edges`: where it is another one for windows of edges."""

    def check(report: EnergyReport) -> Iterator[Finding]:
        for one in report.rounds:
            try:
                stated, rebuilt, absolute = one.number(name), finite(formula, one), slack(one)
            except Absent:
                continue
            said = on_edges if one.on_edges and on_edges else words
            yield from held_against(rule, name, stated, rebuilt, said, (*one.path, name), absolute)

    return check


def idle_power(report: EnergyReport) -> Iterator[Finding]:
    """Power of each idle window."""
    words = "(E_end - E_start) / 1000 / (t_end - t_start) of the window"
    for one in report.rounds:
        for name in IDLES:
            try:
                stated, rebuilt = one.number(name, "power_w"), finite(_power, one, *idle_window(name))
            except Absent:
                continue
            yield from held_against("idle-power", "power_w", stated, rebuilt, words, (*one.path, name, "power_w"))


def idle_copies(report: EnergyReport) -> Iterator[Finding]:
    """The round's idle powers are those of its windows."""
    for one in report.rounds:
        for name in IDLES:
            try:
                stated, window = one.number(f"{name}_w"), one.number(name, "power_w")
            except Absent:
                continue
            yield from held_against("idle-copies", f"{name}_w", stated, window, f"{name}.power_w", (*one.path, f"{name}_w"))


def two_clocks(report: EnergyReport) -> Iterator[Finding]:
    """The calls lie inside the run, so the host's clock cannot see less than the device's."""
    for one in report.rounds:
        try:
            host, device = float(one.number("wall_ms")), float(one.number("cuda_ms"))
        except Absent:
            continue
        if host >= device:
            continue
        say = error if host < device * (1 - DRIFT) else warning
        why = f"wall_ms is {shown(host)}, below cuda_ms {shown(device)}; two clocks may differ by 200 ppm"
        yield say("two-clocks", why, (*one.path, "wall_ms"))


def run_lengths(report: EnergyReport) -> Iterator[Finding]:
    """Where windows hold edges, each round has the run's own wall time, and the edges lie inside the run."""
    place: Path = ("mkframe", "energy", "rounds")
    measured = report.rounds
    if not measured or not measured[0].on_edges:
        return
    for one in measured:
        try:
            length, window = number(one.added, "run_s"), one.seconds(*MEASUREMENT)
        except Absent:
            if not isinstance(one.added, dict) or "run_s" not in one.added:
                yield error("run-lengths", "this round has no run_s in mkframe.energy.rounds, so its times cannot be rebuilt", one.path)
            continue
        if window > length + _CLOCK_SLACK_S:
            why = f"run_s is {shown(length)}, and the edges inside the run are {shown(window)} s apart"
            yield error("run-lengths", why, (*place, one.path[-1], "run_s"))
    try:
        listed, count = len(items(report.document, *place)), len(items(report.document, "rounds"))
    except Absent:
        return
    if listed > count:
        yield error("run-lengths", f"mkframe.energy.rounds has {listed} items, and the report {count} rounds", place)


_POWER = "(E_end - E_start) / 1000 / (t_end - t_start)"

ROUND_RULES = (
    view_rule(
        "gross",
        _figure("gross", "gross_mj", _gross, "(E_end - E_start) / repeats", "average_power_w x wall_ms"),
        "gross_mj is what the counter moved by in the run, per repeat",
    ),
    view_rule(
        "wall",
        _figure("wall", "wall_ms", _wall, "(t_end - t_start) x 1000 / repeats", "run_s x 1000 / repeats"),
        "wall_ms is the length of the run, per repeat",
    ),
    view_rule(
        "average-power",
        _figure("average-power", "average_power_w", _average_power, _POWER),
        "average_power_w is what the counter moved by in the run, over its length",
    ),
    view_rule("idle-power", idle_power, "power_w of an idle window is what the counter moved by in it, over its length"),
    view_rule("idle-copies", idle_copies, "idle_before_w and idle_after_w are the power_w of their windows"),
    view_rule(
        "adjusted",
        _figure(
            "adjusted",
            "adjusted_mj",
            _adjusted,
            "((E_end - E_start) - 0.5 (Pb + Pa) (t_end - t_start) 1000) / repeats",
            "(average_power_w - 0.5 (Pb + Pa)) x wall_ms",
            _rounding,
        ),
        "adjusted_mj is the run's energy less the mean idle power over its length, per repeat, sign kept",
    ),
    view_rule(
        "cuda-time",
        _figure("cuda-time", "cuda_ms", _cuda, "a float32 number of event milliseconds over repeats"),
        "cuda_ms is a float32 event time, divided by repeats",
    ),
    view_rule("two-clocks", two_clocks, "wall_ms >= cuda_ms; up to 200 ppm less is a warning", Severity.ERROR, Severity.WARNING),
    view_rule("run-lengths", run_lengths, "where windows hold counter edges, each round has run_s, and its edges lie inside of it"),
)
