"""Whether a call is faster on an input that the engine has seen: a result cached by content.

Calls on the input of the timed loop are compared with calls on inputs that were never seen, drawn anew for every call.
"""

import math
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import perf_counter

import numpy as np
import torch

from mkframe.check.case_data import BASE, CaseData, more_inputs
from mkframe.check.cell import BoundCell, Evidence, load
from mkframe.model.outcome import Rejected
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
_KEPT_BYTES = 2**28
_WARM_UPS = 2

Stored = Mapping[str, torch.Tensor]


def check_content(
    bound: BoundCell, data: CaseData, reading: Callable[[Call, Call], Readable], step_ms: float | None, evidence: Evidence
) -> None:
    """Leaves BASE in the inputs again. Ends with the first repeat in which fresh inputs are not slower.

    Each repeat has four runs of calls, known and fresh in turn and in the other order every second time, so that neither drift nor a
    cache of one entry hides in the order. The first call of each run does not count. Before every call both contents are written in
    place, the one that counts last, so that the caches hold the same for both kinds.

    Raises Rejected where fresh is slower by more than 10 % and by more than three steps of the clock, with separate intervals, in all
    repeats.
    """
    if not data.dynamic:
        return
    writer = _Writer(bound, data)
    read = reading(bound.run, writer.write)
    with collector_off():
        calls = _affordable(read)
        for repeat in range(REPEATS):
            known, fresh = _compare(read, writer, calls, repeat)
            if not suspicious(known, fresh, step_ms):
                break
        else:
            raise Rejected(
                f"{NAME}: a call takes {float(np.median(fresh)) * 1e3:.3g} us on an input that it has not seen, and "
                f"{float(np.median(known)) * 1e3:.3g} us on the one that it knows, in {REPEATS} of {REPEATS} repeats"
            )
    load(bound.tensors, data, BASE)
    evidence.checks.append(NAME)


def suspicious(known: Samples, fresh: Samples, step_ms: float | None) -> bool:
    """The rule of one repeat, on samples in ms of shape (calls,). `step_ms` None: the step shows in the samples, if anywhere."""
    step = step_ms if step_ms is not None else event_step_ms(np.concatenate([known, fresh])) or 0.0
    slow, fast = float(np.median(fresh)), float(np.median(known))
    return slow > SLOWER_THAN * fast and slow - fast > STEPS * step and median_interval(fresh)[0] > median_interval(known)[1]


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
    """Writes the inputs in place ahead of a call. Fresh contents are kept while a run and its counterpart need them, where they
    are small; large ones are drawn again."""

    def __init__(self, bound: BoundCell, data: CaseData) -> None:
        self._targets = {name: bound.tensors[name] for name in data.dynamic}
        self._base: Stored = data.variants[BASE].stored
        seed = secrets.randbelow(2**31)  # the system's: an engine must not know what comes, nor meet it again in another process
        size = sum(data.specs[name].bytes for name in data.dynamic)
        self._fresh = lru_cache(maxsize=max(_KEPT_BYTES // size, 1))(lambda index: more_inputs(data, seed + index))
        self.is_fresh = False
        self.next = 0

    def write(self) -> None:
        other = self._fresh(self.next)
        self.next += 1
        for content in (self._base, other) if self.is_fresh else (other, self._base):
            for name, target in self._targets.items():
                target.copy_(content[name])


def _affordable(read: Readable) -> int:
    """How many calls of each kind the budget pays for, what goes before them included; an even number."""
    begin = perf_counter()
    read.warm_up(_WARM_UPS)
    read.read()
    pair_s = 2 * (perf_counter() - begin) / (_WARM_UPS + 1)
    return min(max(int(_BUDGET_S / pair_s), _FEWEST), _MOST) // 2 * 2


def _compare(read: Readable, writer: _Writer, calls: int, repeat: int) -> tuple[Samples, Samples]:
    """One repeat: stream times in ms of `calls` calls on the known input, and of as many on fresh ones."""
    run = calls // 2 + 1
    found: dict[bool, list[float]] = {False: [], True: []}
    for half in range(2):
        for is_fresh in (False, True) if repeat % 2 == 0 else (True, False):
            writer.is_fresh = is_fresh
            writer.next = _WARM_UPS + 1 + (2 * repeat + half) * run
            found[is_fresh] += [read.read().stream_ms for _ in range(run)][1:]
    return np.array(found[False]), np.array(found[True])
