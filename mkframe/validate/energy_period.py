"""The update period of an energy counter, from the reads of a report alone.

A period and a phase fit where no update falls into a gap over which the counter stood still, and as many into each idle window as its
energy asks for. How many those are: one of the two whole numbers around its length in nominal periods of 100 ms, and of these the one whose
energy per update agrees best with that of the other windows. Periods that differ by a whole update per window (2 % for windows of 5 s) look
alike in the energy; the nominal period tells them apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mkframe.validate.energy_parts import IDLES, Absent, Node, idle_window, rounds
from mkframe.validate.energy_reads import reads

NOMINAL_S = 0.1
_FIRST_US, _LAST_US, _STEP_US = 95_000, 105_000, 5
_ROUNDS_USED = 64
_READS_OF_A_ROUND = 6
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
    """`updates`: how many the counter made in it. Times in s."""

    start_s: float
    length_s: float
    updates: int


def update_periods(document: Node) -> Periods | None:
    """The periods from 95 to 105 ms, in steps of 0.005 ms, for which some phase fits with room to spare: half the shortest read, because
    the time of a read is not known better. None where no period fits, where there is no idle window to tell, or where it takes too long."""
    try:
        windows, gaps, room_s = _evidence(document)
    except (Absent, ArithmeticError, ValueError):
        return None
    if not windows:
        return None
    fitting, left = [], _MOST_WORK
    for us in range(_FIRST_US, _LAST_US + 1, _STEP_US):
        fits, work = _fits(us / 1e6, windows, gaps, room_s)
        fitting += [us] if fits else []
        left -= work
        if left < 0:
            return None
    return Periods(ranges_ms=tuple(_ranges(fitting))) if fitting else None


def _evidence(document: Node) -> tuple[list[_Window], list[Arc], float]:
    """Idle windows, gaps (start, length) over which the counter stood still, half the shortest read. Times from the first read on."""
    made = []
    for read in reads(document):
        made.append(read)
        if len(made) == _ROUNDS_USED * _READS_OF_A_ROUND:
            break
    if not made:
        return [], [], 0.0
    first = made[0].time_s
    gaps = [
        (float(one.time_s - first), float(other.time_s - one.time_s))
        for one, other in pairwise(made)
        if one.energy_mj == other.energy_mj and 0 < other.time_s - one.time_s < NOMINAL_S
    ]
    windows = []
    for index, one in enumerate(rounds(document)):
        if index == _ROUNDS_USED:
            break
        for name in IDLES:
            start, end = idle_window(name)
            length, energy = float(one.seconds(start, end)), float(one.energy_mj(start, end))
            if length >= NOMINAL_S and energy > 0:
                windows.append((float(one.number(*start, "time_s") - first), length, energy))
    counts = _counts([(length, energy) for _, length, energy in windows])
    found = [_Window(start_s=start, length_s=length, updates=count) for (start, length, _), count in zip(windows, counts, strict=True)]
    return found, gaps, min(float(read.duration_s) for read in made) / 2


def _counts(windows: Sequence[tuple[float, float]]) -> list[int]:
    """Updates of each (length, energy) window: the choices whose energies per update lie closest together."""
    choices = sorted(
        (energy / count, index, count)
        for index, (length, energy) in enumerate(windows)
        for count in (int(length / NOMINAL_S), int(length / NOMINAL_S) + 1)
    )
    best: tuple[float, int, int] | None = None
    seen: dict[int, int] = {}
    left = 0
    for right, (quantum, index, _) in enumerate(choices):
        seen[index] = seen.get(index, 0) + 1
        while len(seen) == len(windows):
            low, oldest, _ = choices[left]
            if best is None or quantum / low < best[0]:
                best = (quantum / low, left, right)
            seen[oldest] -= 1
            if not seen[oldest]:
                del seen[oldest]
            left += 1
    if best is None:
        return []
    counts = [0] * len(windows)
    for _, index, count in choices[best[1] : best[2] + 1]:
        counts[index] = count
    return counts


def _fits(period_s: float, windows: Sequence[_Window], gaps: Sequence[Arc], room_s: float) -> tuple[bool, int]:
    """Whether some phase, with room around it, agrees with all of the evidence, and how many arcs were compared to know."""
    free: list[Arc] = [(0.0, period_s)]
    work = 0
    for allowed in _conditions(period_s, windows, gaps):
        work += len(free) * len(allowed) + 1
        free = _both(free, allowed)
        if not free:
            return False, work
    return any(end - start >= room_s for start, end in _joined(free, period_s)), work


def _conditions(period_s: float, windows: Sequence[_Window], gaps: Sequence[Arc]) -> Iterator[list[Arc]]:
    """The phases that each window and each gap allows."""
    for window in windows:
        least = int(window.length_s / period_s)
        more = _arcs(window.start_s % period_s, window.length_s - least * period_s, period_s)
        if window.updates == least + 1:
            yield more
        else:
            yield _outside(more, period_s) if window.updates == least else []
    for start_s, length_s in gaps:
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
    first = last = None
    for us in fitting_us:
        if last is not None and first is not None and us != last + _STEP_US:
            yield first / 1000, last / 1000
            first = us
        first = us if first is None else first
        last = us
    if first is not None and last is not None:
        yield first / 1000, last / 1000
