"""Grids of shapes: axes that are an integer, a list or a geometric range, and their product."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from mkframe.errors import ConfigError
from mkframe.plugin.registry import choices

LONGEST_AXIS = 100_000
LARGEST_SIZE = 2**63 - 1
_RANGE_KEYS = ("start", "stop", "factor", "num")


def axis(value: Any, key: str) -> tuple[int, ...]:
    """The values of one axis, in order, without duplicates.

    An integer; a list of integers; {start, stop, factor}: start, start factor, start factor^2, ... up to stop; or
    {start, stop, num}: num values from start to stop in equal ratios. Values of a range are rounded to the nearest integer.
    Raises ConfigError.
    """
    if isinstance(value, Mapping):
        values = list(_range(value, key))
    elif isinstance(value, list | tuple):
        if not value:
            raise ConfigError(f"{key}: is empty; give at least one integer, or null to leave the axis out")
        values = [size(item, f"{key}[{index}]") for index, item in enumerate(value)]
    else:
        values = [size(value, key)]
    if len(values) > LONGEST_AXIS:
        raise ConfigError(f"{key}: has {len(values)} values; at most {LONGEST_AXIS} are possible")
    return tuple(dict.fromkeys(values))


def count(axes: Mapping[str, tuple[int, ...]]) -> int:
    """The size of the product, without making it."""
    return math.prod(len(values) for values in axes.values())


def expand(axes: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """The product of the axes in their order, the last one fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def size(value: Any, key: str) -> int:
    """An integer from 1 to 2^63 - 1, or a ConfigError; True is no integer, neither is 8.0."""
    if type(value) is not int:
        raise ConfigError(f"{key}: expected an integer of at least 1, not {value!r}")
    if value < 1:
        raise ConfigError(f"{key}: must be at least 1, not {value}")
    if value > LARGEST_SIZE:
        raise ConfigError(f"{key}: must be below 2^63")
    return value


def _range(spec: Mapping[Any, Any], key: str) -> Iterator[int]:
    for name in spec:
        if name not in _RANGE_KEYS:
            raise ConfigError(f"{key}.{name}: no such key; {choices(str(name), _RANGE_KEYS)}")
    if not {"start", "stop"} <= set(spec) or ("factor" in spec) == ("num" in spec):
        raise ConfigError(f"{key}: a range reads {{start: 1, stop: 64, factor: 2}} or {{start: 1, stop: 64, num: 7}}")
    start, stop = size(spec["start"], f"{key}.start"), size(spec["stop"], f"{key}.stop")
    if stop < start:
        raise ConfigError(f"{key}: stop ({stop}) is below start ({start})")
    return _by_factor(start, stop, spec["factor"], key) if "factor" in spec else _by_number(start, stop, spec["num"], key)


def _by_factor(start: int, stop: int, factor: Any, key: str) -> Iterator[int]:
    if type(factor) not in (int, float) or not math.isfinite(factor) or factor <= 1:
        raise ConfigError(f"{key}.factor: expected a number above 1, not {factor!r}")
    steps = math.log(stop / start) / math.log(factor)
    if steps > LONGEST_AXIS:
        raise ConfigError(f"{key}: has about {steps:.0f} values; at most {LONGEST_AXIS} are possible")
    exponent, value = 0, start
    while value <= stop:
        yield value
        exponent += 1
        value = start * factor**exponent if type(factor) is int else round(start * factor**exponent)


def _by_number(start: int, stop: int, number: Any, key: str) -> Iterator[int]:
    if size(number, f"{key}.num") > LONGEST_AXIS:
        raise ConfigError(f"{key}.num: at most {LONGEST_AXIS} values are possible, not {number}")
    if number == 1:
        if start != stop:
            raise ConfigError(f"{key}.num: one value cannot be both {start} and {stop}")
        yield start
        return
    for index in range(number):
        yield stop if index == number - 1 else round(start * (stop / start) ** (index / (number - 1)))
