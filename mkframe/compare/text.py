"""Words of a report for people: nothing that a file holds may steer a terminal."""

from collections.abc import Mapping
from typing import Any

from mkframe.validate.finding import shown

NOT_STATED = "not stated"


def shape_label(shape: Mapping[str, int]) -> str:
    """`33x32x64`, with further axes by name where there are more than three."""
    items = list(shape.items())
    return "x".join(str(size) for _, size in items[:3]) + "".join(f" {name}={size}" for name, size in items[3:])


def both(base: Any, new: Any) -> str:
    """Two different values side by side; of two objects the keys that differ."""
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        names = [name for name in {**base, **new} if base.get(name, NOT_STATED) != new.get(name, NOT_STATED)]
        return ", ".join(f"{name} {both(base.get(name, NOT_STATED), new.get(name, NOT_STATED))}" for name in names)
    return f"{_value(base)} in BASE, {_value(new)} in NEW"


def _value(value: Any) -> str:
    return NOT_STATED if value == NOT_STATED else shown(value)
