"""The update period of an energy counter, from the reads of a report alone.

A period and a phase fit where no update falls into a gap over which the counter stood still, and into each idle window as many as make
the energy per update the same in all of them. Periods that differ by a whole update per window (2 % for windows of 5 s) look alike in that;
of such families the one nearest to the nominal 100 ms is taken.

The first update after a run still holds energy of the run. Where that may be a good part of an update, only the idle windows before runs
count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from mkframe.validate.energy_counter import reads
from mkframe.validate.energy_parts import IDLES, Absent, Node, Round, idle_window, rounds

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
Counts = tuple[int, ...]


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
    """An idle window: start from the first read on, length, and energy."""

    start_s: float
    length_s: float
    energy_mj: float


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
                idles.append(_Window(start_s=float(one.number(*start, "time_s") - first), length_s=length, energy_mj=energy))
    return _Evidence(windows=tuple(idles), gaps=tuple(gaps), room_s=min(float(read.duration_s) for read in made) / 2)


def _is_light(measured: Sequence[Round]) -> bool:
    """Whether no run takes so much more than idle that what it leaves to the next update would change a count."""
    return all(one.number("average_power_w") < (1 + _LIGHT) * min(one.number(name, "power_w") for name in IDLES) for one in measured)


@lru_cache(maxsize=4)  # several rules ask for the same report
def _fitting(evidence: _Evidence) -> Mapping[Counts, Sequence[int]]:
    """The periods that fit, in us and in order, by the updates that they give to each window. Empty where it takes too long."""
    families: dict[Counts, list[int]] = {}
    choices: dict[Counts, Sequence[Counts]] = {}
    left = _MOST_WORK
    for us in range(_FIRST_US, _LAST_US + 1, _STEP_US):
        period_s = us / 1e6
        least = tuple(int(window.length_s / period_s) for window in evidence.windows)
        if least not in choices:
            choices[least] = _alike(least, evidence.windows)
            left -= 16 * len(least)
        for counts in choices[least]:
            fits, work = _fits(period_s, least, counts, evidence)
            left -= work
            if fits:
                families.setdefault(counts, []).append(us)
        if left < 0:
            return {}
    return families


def _alike(least: Counts, windows: Sequence[_Window]) -> Sequence[Counts]:
    """Updates of each window, the least that its length allows or one more, so that the energies per update lie within half an update
    of a window. Nothing where the idle power moved too much for that."""
    quanta = sorted(
        (window.energy_mj / count, index, count)
        for index, (window, few) in enumerate(zip(windows, least, strict=True))
        for count in (few, few + 1)
        if count > 0
    )
    most = 1 + _SPREAD / (max(least) + 1)
    found: dict[Counts, None] = {}
    covered: dict[int, int] = {}  # of each window the count whose quantum lies between the two ends: never both of them
    left = 0
    for quantum, index, count in quanta:
        while quanta[left][0] * most < quantum:
            covered.pop(quanta[left][1], None)
            left += 1
        covered[index] = count
        if len(covered) == len(windows):
            found[tuple(covered[index] for index in range(len(windows)))] = None
    return tuple(found)


def _fits(period_s: float, least: Counts, counts: Counts, evidence: _Evidence) -> tuple[bool, int]:
    """Whether some phase, with room around it, agrees with all of the evidence, and how many arcs were compared to know."""
    free: list[Arc] = [(0.0, period_s)]
    work = 0
    for allowed in _conditions(period_s, least, counts, evidence):
        work += len(free) * len(allowed) + 1
        free = _both(free, allowed)
        if not free:
            return False, work
    return any(end - start >= evidence.room_s for start, end in _joined(free, period_s)), work


def _conditions(period_s: float, least: Counts, counts: Counts, evidence: _Evidence) -> Iterator[list[Arc]]:
    """The phases that each window and each gap allows."""
    for window, few, count in zip(evidence.windows, least, counts, strict=True):
        more = _arcs(window.start_s % period_s, window.length_s - few * period_s, period_s)
        yield more if count > few else _outside(more, period_s)
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
