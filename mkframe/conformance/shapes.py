"""Cases that nobody wrote down: odd widths, ones, primes, and large ones for the questions that cost nothing."""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from mkframe.plugin.workload import Workload

SEED = 20_261
_SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 33, 48, 64, 67)
_LARGE = (127, 1000, 1021, 4096, 65_537, 1_000_003, 2**31 - 1)
_COPIES = (1, 2, 3)
_TRIES = 20


def small_cases(workload: Workload, count: int, seed: int = SEED) -> tuple[Any, ...]:
    """Up to `count` different small cases that the workload allows: every size 1, one size 1, primes, then random ones."""
    return _distinct(_small(workload, seed, count * _TRIES), count)


def wide_cases(workload: Workload, count: int, seed: int = SEED) -> tuple[Any, ...]:
    """`small_cases`, and large ones: every field large alone, all of them large, random mixtures."""
    return _distinct(_wide(workload, seed, count * _TRIES), count)


def _small(workload: Workload, seed: int, tries: int) -> Iterator[Any]:
    names = _names(workload)
    first, rest = names[:1], names[1:]
    yield _case(workload, dict.fromkeys(names, 1))
    yield _case(workload, dict.fromkeys(first, 1) | dict(zip(rest, (7, 13, 5, 3), strict=False)))
    yield _case(workload, dict(zip(names, (33, 31, 17, 13, 5), strict=False)))
    yield _case(workload, dict(zip(names, (5, 16, 32, 8, 8), strict=False)))
    generator = np.random.Generator(np.random.PCG64(seed))
    for _ in range(tries):
        values = {name: int(generator.choice(_SIZES)) for name in names}
        extra = {name: int(generator.choice(_COPIES)) for name in _optional(workload)} if generator.random() < 0.25 else {}
        yield _case(workload, values | extra)


def _wide(workload: Workload, seed: int, tries: int) -> Iterator[Any]:
    names = _names(workload)
    yield from small_cases(workload, 16, seed)
    for large in _LARGE:
        yield _case(workload, dict.fromkeys(names, large))
        for name in (*names, *_optional(workload)):
            yield _case(workload, dict.fromkeys(names, 1) | {name: large})
    generator = np.random.Generator(np.random.PCG64(seed + 1))
    for _ in range(tries):
        yield _case(workload, {name: int(generator.choice(_SIZES + _LARGE)) for name in names})


def _names(workload: Workload) -> list[str]:
    return [item.name for item in fields(workload.Case) if item.default is MISSING and item.default_factory is MISSING]


def _optional(workload: Workload) -> list[str]:
    return [item.name for item in fields(workload.Case) if item.default is not MISSING]


def _case(workload: Workload, values: dict[str, int]) -> Any:
    """The case, or None where the workload does not allow it."""
    try:
        return workload.Case(**values)
    except (ValueError, AssertionError):
        return None


def _distinct(found: Iterator[Any], count: int) -> tuple[Any, ...]:
    seen: dict[Any, None] = {}
    for case in found:
        if case is not None:
            seen.setdefault(case, None)
        if len(seen) == count:
            break
    return tuple(seen)
