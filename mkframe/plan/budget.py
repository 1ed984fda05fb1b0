"""`timing.budget_s`: one number of rounds for the whole report, so that the run is expected to end in time."""

from dataclasses import dataclass
from math import floor

from mkframe.errors import ConfigError
from mkframe.plan.estimate import Estimate

_SLACK = 1e-9
_COUNTLESS_S = 1e9
"""Longer times than this are no longer told in hours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """`rounds` is a multiple of the number of processes; `note` says what was chosen and why, on one line."""

    rounds: int
    note: str


def rounds_within(budget_s: float, expected: Estimate) -> Choice:
    """The most rounds that fit: a multiple of the processes, at least one per process, never more than `expected.rounds`.

    Raises ConfigError where not even one round per process fits.
    """
    processes, wanted = expected.processes, expected.rounds
    most = wanted // processes * processes
    room = min((budget_s - expected.fixed_s) / max(expected.round_s, _SLACK), most)  # first: a quotient may be infinite
    fitting = floor(room + _SLACK) // processes * processes
    if fitting < processes:
        least_s = expected.fixed_s + processes * expected.round_s
        raise ConfigError(
            f"timing.budget_s: the smallest run ({_rounds(processes)}, one per process) is expected to take {seconds(least_s)}, "
            f"and the budget is {seconds(budget_s)}; raise it, or select fewer shapes, engines, samples or processes"
        )
    rounds = min(most, fitting)
    total = seconds(expected.fixed_s + rounds * expected.round_s)
    shared = f" over {processes} processes" if processes > 1 else ""
    if rounds == wanted:
        note = f"timing.budget_s: all {_rounds(rounds)}{shared} fit, {total} expected of {seconds(budget_s)}"
    elif rounds == most:
        note = f"timing.budget_s: {_rounds(rounds)} instead of {wanted}, equally many for each of {processes} processes, {total} expected"
    else:
        note = (
            f"timing.budget_s: {_rounds(rounds)} instead of {wanted}{shared}, the most that fit into {seconds(budget_s)}, {total} expected"
        )
    return Choice(rounds=rounds, note=note)


def seconds(value: float) -> str:
    """Seconds for people: `0.8 s`, `41 s`, `12 min 30 s`, `3 h 20 min`."""
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    if value < _COUNTLESS_S:
        return f"{whole // 3600:,} h {whole % 3600 // 60} min"
    return f"{value:.3g} s"


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"
