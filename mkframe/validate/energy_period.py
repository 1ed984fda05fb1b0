"""The update period of an energy counter, from the reads of a report alone.

A period and a phase fit where no update falls into a gap over which the counter stood still, and as many into each idle window as its
energy asks for at the mean idle power. Periods that differ by a whole update per window (2 % for windows of 5 s) look alike in that; of
such families the one nearest to the nominal 100 ms is taken.

The first update after a run still holds energy of the run. Where that may be a good part of an update, only the idle windows before runs
count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from mkframe.validate.energy_parts import IDLES, Absent, Node, Round, idle_window, rounds
from mkframe.validate.energy_reads import reads

NOMINAL_MS = 100.0
_FIRST_US, _LAST_US, _STEP_US = 95_000, 105_000, 5
LONGEST_S = _LAST_US / 1e6
_ROUNDS_USED = 64
_READS_OF_A_ROUND = 6
_LIGHT = 0.25
_SPREAD = 0.5
_MOST_WORK = 1_000_000
"""Comparisons of arcs, about half a second. Honest reads take a hundredth of that: most periods break a condition early."""

Arc = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Periods:
    """Ranges of update periods that fit, first and last of each in ms, in order; at least one."""

    ranges_ms: tuple[tuple[float, float], ...]

    @property
    def middle_s(self) -> float:
        """What to count with: the middle of all that fits, in s."""
        return (self.ranges_ms[0][0] + self.ranges_ms[-1][1]) / 2 / 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Window:
    """An idle window: start from the first read on and length in s, and how long its energy lasts at the mean idle power."""

    start_s: float
    length_s: float
    worth_s: float

    def updates(self, period_s: float) -> int:
        """How many its energy asks for."""
        return round(self.worth_s / period_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Evidence:
    """`gaps`: start and length in s over which the counter stood still. `room_s`: half the shortest read."""

    windows: tuple[_Window, ...]
    gaps: tuple[Arc, ...]
    room_s: float


def update_periods(document: Node) -> Periods | None:
    """The periods from 95 to 105 ms, in steps of 0.005 ms, for which some phase fits with room to spare: half the shortest read, because
    the time of a read is not known better. None where no period fits, where there is no idle window to tell, or where it takes too long."""
    try:
        evidence = _evidence(document)
        families = _fitting(evidence) if evidence.windows else {}
    except (Absent, ArithmeticError, ValueError):
        return None
    if not families:
        return None
    nearest = min(families.values(), key=lambda us: abs((us[0] + us[-1]) / 2000 - NOMINAL_MS))
    return Periods(ranges_ms=tuple(_ranges(nearest)))


def _evidence(document: Node) -> _Evidence:
    made = list(islice(reads(document), _ROUNDS_USED * _READS_OF_A_ROUND))
    measured = list(islice(rounds(document), _ROUNDS_USED))
    if not made:
        raise Absent
    first = made[0].time_s
    gaps = [
        (float(one.time_s - first), float(other.time_s - one.time_s))
        for one, other in pairwise(made)
        if one.energy_mj == other.energy_mj and 0 < other.time_s - one.time_s < NOMINAL_MS / 1000
    ]
    idles = []
    for one in measured:
        for name in IDLES if _is_light(measured) else IDLES[:1]:
            start, end = idle_window(name)
            length, energy = float(one.seconds(start, end)), float(one.energy_mj(start, end))
            if length >= NOMINAL_MS / 1000 and energy > 0:
                idles.append((float(one.number(*start, "time_s") - first), length, energy))
    total_s, total_mj = sum(length for _, length, _ in idles), sum(energy for _, _, energy in idles)
    windows = tuple(_Window(start_s=start, length_s=length, worth_s=energy / total_mj * total_s) for start, length, energy in idles)
    return _Evidence(windows=windows, gaps=tuple(gaps), room_s=min(float(read.duration_s) for read in made) / 2)


def _is_light(measured: Sequence[Round]) -> bool:
    """Whether no run takes so much more than idle that what it leaves to the next update would change a count."""
    return all(one.number("average_power_w") < (1 + _LIGHT) * min(one.number(name, "power_w") for name in IDLES) for one in measured)


@lru_cache(maxsize=4)  # several rules ask for the same report
def _fitting(evidence: _Evidence) -> Mapping[tuple[int, ...], Sequence[int]]:
    """The periods that fit, in us and in order, by the updates that they give to each window. Empty where it takes too long."""
    families: dict[tuple[int, ...], list[int]] = {}
    left = _MOST_WORK
    for us in range(_FIRST_US, _LAST_US + 1, _STEP_US):
        fits, work = _fits(us / 1e6, evidence)
        left -= work
        if left < 0:
            return {}
        if fits:
            families.setdefault(tuple(window.updates(us / 1e6) for window in evidence.windows), []).append(us)
    return {counts: periods for counts, periods in families.items() if _is_steady(counts, evidence.windows)}


def _is_steady(counts: Sequence[int], windows: Sequence[_Window]) -> bool:
    """Whether the energies per update lie within half an update of a window: else the idle power moved too much to tell."""
    each = [window.worth_s / count for window, count in zip(windows, counts, strict=True)]
    return max(each) <= min(each) * (1 + _SPREAD / max(counts))


def _fits(period_s: float, evidence: _Evidence) -> tuple[bool, int]:
    """Whether some phase, with room around it, agrees with all of the evidence, and how many arcs were compared to know."""
    free: list[Arc] = [(0.0, period_s)]
    work = 0
    for allowed in _conditions(period_s, evidence):
        work += len(free) * len(allowed) + 1
        free = _both(free, allowed)
        if not free:
            return False, work
    return any(end - start >= evidence.room_s for start, end in _joined(free, period_s)), work


def _conditions(period_s: float, evidence: _Evidence) -> Iterator[list[Arc]]:
    """The phases that each window and each gap allows."""
    for window in evidence.windows:
        least, asked = int(window.length_s / period_s), window.updates(period_s)
        more = _arcs(window.start_s % period_s, window.length_s - least * period_s, period_s)
        if asked == least + 1:
            yield more
        else:
            yield _outside(more, period_s) if asked == least > 0 else []
    for start_s, length_s in evidence.gaps:
        yield _outside(_arcs(start_s % period_s, length_s, period_s), period_s)


def _arcs(start: float, length: float, period: float) -> list[Arc]:
    """The phases from `start` on over `length`, cut where the period begins anew."""
    end = start + length
    return [(start, end)] if end <= period else [(0.0, end - period), (start, period)]


def _outside(arcs: Sequence[Arc], period: float) -> list[Arc]:
    edges = [0.0, *(edge for arc in arcs for edge in arc), period]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def _both(some: Sequence[Arc], others: Sequence[Arc]) -> list[Arc]:
    cuts = ((max(start, begin), min(end, stop)) for start, end in some for begin, stop in others)
    return [(start, end) for start, end in cuts if start < end]


def _joined(arcs: Sequence[Arc], period: float) -> Iterator[Arc]:
    """The last arc goes on with the first one where the period begins anew."""
    if len(arcs) > 1 and arcs[0][0] == 0.0 and arcs[-1][1] == period:
        yield arcs[-1][0], period + arcs[0][1]
        yield from arcs[1:-1]
    else:
        yield from arcs


def _ranges(fitting_us: Iterable[int]) -> Iterator[tuple[float, float]]:
    """Neighbours in one range, in ms."""
    found: list[list[int]] = []
    for us in fitting_us:
        if found and us == found[-1][1] + _STEP_US:
            found[-1][1] = us
        else:
            found.append([us, us])
    return ((first / 1000, last / 1000) for first, last in found)
