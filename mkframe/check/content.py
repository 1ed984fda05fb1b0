"""Whether a call is faster where it can spare itself the work: a result cached by content, or an output that is still there.

Calls that find everything as the last call left it, as in the timed loop, are compared with calls whose input was drawn anew and whose
outputs and scratch hold poison.
"""

import math
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import monotonic, perf_counter

import numpy as np
import torch

from mkframe.check.buffers import PATTERNS, names_of, poison, write
from mkframe.check.case_data import BASE, CaseData, more_inputs
from mkframe.check.cell import BoundCell, Evidence, load
from mkframe.model.outcome import Rejected
from mkframe.model.tensors import Role
from mkframe.stats import Samples, event_step_ms
from mkframe.timing.collector import collector_off
from mkframe.timing.sampler import Call, Readable

NAME = "fresh input"
SLOWER_THAN = 1.10
STEPS = 3
REPEATS = 3
CONFIDENCE = 0.95
_FEWEST, _MOST = 6, 20  # calls of each kind; with fewer than six no interval of a median holds 95 %
_BUDGET_S = 0.5
_STREAK_BUDGET_S = 10.0
_KEPT_BYTES = 2**28
_WARM_UPS = 2

Stored = Mapping[str, torch.Tensor]


def check_content(
    bound: BoundCell, data: CaseData, reading: Callable[[Call, Call], Readable], step_ms: float | None, evidence: Evidence, streak: int = 0
) -> None:
    """Leaves BASE in the inputs again, and the outputs right. Ends with the first repeat in which fresh calls are not slower.

    To be called right after the timed loop, with the outputs that its last call left behind: an engine may begin to spare itself work
    only after many calls on one input, so nothing may come between those and the known calls of the first repeat. Before the known
    calls of a further repeat `streak` untimed ones make up for what the fresh ones have interrupted, as far as ten seconds go. Known
    calls come first in every other repeat, so that no drift looks like a cache. The first call of each run does not count.

    Before every call the same bytes are written for both kinds, in the same tensors, so that the caches hold the same: both contents of
    the inputs, then poison and the last outputs (and scratch). What counts comes last.

    Raises Rejected where fresh is slower by more than 10 %, in the median and at its fastest, and by more than three steps of the
    clock, with separate intervals, in all repeats.
    """
    writer = _Writer(bound, data)
    read = reading(bound.run, writer.write)
    with collector_off():
        calls = _affordable(read)
        for repeat in range(REPEATS):
            known, fresh = _compare(read, writer, calls, repeat, streak)
            if not suspicious(known, fresh, step_ms):
                break
        else:
            raise Rejected(
                f"{NAME}: a call takes {float(np.median(fresh)) * 1e3:.3g} us where input and output are new to it, and "
                f"{float(np.median(known)) * 1e3:.3g} us on the ones it knows, in {REPEATS} of {REPEATS} repeats"
            )
    load(bound.tensors, data, BASE)
    writer.put_back()
    evidence.checks.append(NAME)


def suspicious(known: Samples, fresh: Samples, step_ms: float | None) -> bool:
    """The rule of one repeat, on samples in ms of shape (calls,). `step_ms` None: the step shows in the samples, if anywhere."""
    step = step_ms if step_ms is not None else event_step_ms(np.concatenate([known, fresh])) or 0.0
    slow, fast = float(np.median(fresh)), float(np.median(known))
    if slow <= SLOWER_THAN * fast or slow - fast <= STEPS * step or median_interval(fresh)[0] <= median_interval(known)[1]:
        return False
    # A busy machine makes calls slower for a while, and hardly ever all of them; what must compute is never as fast as what need not.
    return float(np.min(fresh)) > SLOWER_THAN * float(np.min(known))


def median_interval(samples: Samples) -> tuple[float, float]:
    """The narrowest interval between two order statistics, equally far from both ends, that holds the median with CONFIDENCE, whatever
    the distribution: the number of samples below the median is binomial (n, 1/2). Fewer than six give their whole range."""
    ordered, count = np.sort(samples), samples.size
    outside, skip = 2 / 2**count, 0
    while skip + 1 < (count + 1) // 2 and outside + 2 * math.comb(count, skip + 1) / 2**count <= 1 - CONFIDENCE:
        skip += 1
        outside += 2 * math.comb(count, skip) / 2**count
    return float(ordered[skip]), float(ordered[count - 1 - skip])


class _Writer:
    """Writes inputs, outputs and scratch in place ahead of a call. Fresh contents are kept while a run and its counterpart need them,
    where they are small; large ones are drawn again."""

    def __init__(self, bound: BoundCell, data: CaseData) -> None:
        self._bound = bound
        self._targets = {name: bound.tensors[name] for name in data.dynamic}
        self._base: Stored = data.variants[BASE].stored
        self._left = {name: bound.tensors[name].clone() for name in names_of(bound.specs, Role.OUTPUT, Role.SCRATCH)}
        seed = secrets.randbelow(2**31)  # the system's: an engine must not know what comes, nor meet it again in another process
        size = sum(data.specs[name].bytes for name in data.dynamic)
        self._kept = max(_KEPT_BYTES // max(size, 1), 1)
        self._fresh = lru_cache(maxsize=self._kept)(lambda index: more_inputs(data, seed + index))
        self.is_fresh = False
        self.next = 0

    def write(self) -> None:
        other = self._fresh(self.next)
        self.next += 1
        for content in (self._base, other) if self.is_fresh else (other, self._base):
            for name, target in self._targets.items():
                write(target, content[name])
        for step in (self.put_back, self._poison) if self.is_fresh else (self._poison, self.put_back):
            step()

    def draw(self, indices: range) -> None:
        """Ahead of time, where all of them are kept: drawing between two calls lets the threads of an engine fall asleep, and both kinds
        of calls must find them alike. Where they are not kept, both kinds wait for them."""
        if len(indices) <= self._kept:
            for index in indices:
                self._fresh(index)

    def put_back(self) -> None:
        """Outputs and scratch as the last timed call left them."""
        for name, content in self._left.items():
            write(self._bound.tensors[name], content)

    def _poison(self) -> None:
        poison(self._bound.tensors, self._bound.specs, PATTERNS[0])


def _affordable(read: Readable) -> int:
    """How many calls of each kind the budget pays for, what goes before them included."""
    begin = perf_counter()
    read.warm_up(_WARM_UPS)
    read.read()
    pair_s = 2 * (perf_counter() - begin) / (_WARM_UPS + 1)
    return min(max(int(_BUDGET_S / pair_s), _FEWEST), _MOST)


def _compare(read: Readable, writer: _Writer, calls: int, repeat: int, streak: int) -> tuple[Samples, Samples]:
    """One repeat: stream times in ms of `calls` calls on what is known, and of as many on what is fresh."""
    first = _WARM_UPS + 1 + repeat * (calls + 1)
    writer.draw(range(first, first + calls + 1))
    found: dict[bool, list[float]] = {}
    for is_fresh in (False, True) if repeat % 2 == 0 else (True, False):
        writer.is_fresh = is_fresh
        if repeat > 0 and not is_fresh:
            _again(read, writer, streak, first)
        writer.next = first
        found[is_fresh] = [read.read().stream_ms for _ in range(calls + 1)][1:]
    return np.array(found[False]), np.array(found[True])


def _again(read: Readable, writer: _Writer, streak: int, index: int) -> None:
    """Known calls in a row, as the timed loop made them."""
    latest = monotonic() + _STREAK_BUDGET_S
    for _ in range(streak):
        if monotonic() > latest:
            return
        writer.next = index
        read.read()
