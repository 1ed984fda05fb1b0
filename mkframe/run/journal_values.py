"""JSON values as the types of journalled events, strictly: nothing is converted, left out or left over."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from mkframe.stats import Samples
from mkframe.validate.finding import shown

T = TypeVar("T")
LONGEST_SAMPLE_MS = 24 * 3600e3
"""A worker that is silent for longer is ended, whatever the configuration says."""
_FINEST_SAMPLE_MS = 1e-12
"""Below this a time is zero: no clock tells less, and no rate of it could be written."""
_LEAST: Mapping[str, float] = {
    **dict.fromkeys(("multiprocessors", "threads", "elements", "grid", "block", "cluster"), 1),
    **dict.fromkeys(("sm_clock_mhz", "memory_clock_mhz", "power_w", "throttle_reasons", "other_processes"), 0),
    **dict.fromkeys(("max_abs_error", "mean_abs_error", "violations", "rtol", "atol", "rounding_rows"), 0),
    **dict.fromkeys(("shared_bytes", "registers", "local_bytes", "l2_bytes", "bind_s", "check_s", "capture_s"), 0),
    **dict.fromkeys(("worker", "process", "case", "round", "late", "pid"), 0),
    "step_ms": _FINEST_SAMPLE_MS,
    "temperature_c": -273.15,
}
"""The smallest number that a field of this name may hold; the report's schema has the same ones."""
_AXES = 3
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Misfit(ValueError):
    """One clause: the field, what it must hold, and what it holds."""


def value_as(kind: type[T], value: Any, name: str) -> T:
    """`value` (what `json.loads` gives) as `kind`: a dataclass, or a type that a field of one may have. Raises Misfit, naming `name`."""
    made: T = _made(kind, value, name)
    return made


def record_as(kind: type[T], value: Any, name: str) -> T:
    """An object with exactly the fields of the dataclass `kind`. Raises Misfit."""
    if not isinstance(value, dict):
        raise Misfit(f"{name} must be an object, not {shown(value)}")
    types = _types(kind)  # type: ignore[arg-type]  # mypy: no type[T] is Hashable
    missing = [key for key in types if key not in value]
    if missing:
        raise Misfit(f"{name} lacks {missing[0]}")
    more = [key for key in value if key not in types]
    if more:
        raise Misfit(f"{name} holds {shown(more[0])}, which does not belong there")
    return kind(**{key: _made(item, value[key], key) for key, item in types.items()})


def samples_as(value: Any, name: str) -> Samples:
    """Times in ms, float64, shape (samples,), from a list of floats. Raises Misfit for any that no clock can have told."""
    if not isinstance(value, list) or any(type(item) is not float for item in value):
        raise Misfit(f"{name} must be a list of times in ms, not {shown(value)}")
    times = np.array(value, dtype=np.float64)
    possible = (times == 0) | ((times >= _FINEST_SAMPLE_MS) & (times <= LONGEST_SAMPLE_MS))
    if not possible.all():
        raise Misfit(f"{name} holds {times[~possible][0]:g}, and no time is such a number of ms")
    return times


def check_digests(files: Mapping[str, str], name: str) -> None:
    """Raises Misfit where a value is no SHA-256."""
    for file, digest in files.items():
        if not _SHA256.fullmatch(digest):
            raise Misfit(f"{name}[{shown(file)}] must be a SHA-256 (64 lower-case hex digits), not {shown(digest)}")


@cache
def _types(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}


def _made(kind: Any, value: Any, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        (kind,) = (one for one in inner if one is not NoneType)
        return _made(kind, value, name)
    if kind is Any:
        return value
    if kind == Samples:
        return samples_as(value, name)
    if isinstance(kind, type) and is_dataclass(kind):
        return record_as(kind, value, name)
    if origin is tuple:
        return _tuple(inner[0], value, name)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(inner[0], inner[1], value, name)
    return _scalar(kind, value, name)


def _tuple(kind: Any, value: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Misfit(f"{name} must be a list, not {shown(value)}")
    if kind is int and len(value) != _AXES:
        raise Misfit(f"{name} must hold {_AXES} axes, not {len(value)}")
    return tuple(_made(kind, item, name) for item in value)


def _mapping(key_kind: Any, kind: Any, value: Any, name: str) -> dict[Any, Any]:
    if get_origin(key_kind) is tuple:  # keys of several texts: a list of [text, ..., value]
        return _pairs(len(get_args(key_kind)), kind, value, name)
    if not isinstance(value, dict):
        raise Misfit(f"{name} must be an object, not {shown(value)}")
    return {key: _made(kind, item, f"{name}[{shown(key)}]") for key, item in value.items()}


def _pairs(texts: int, kind: Any, value: Any, name: str) -> dict[Any, Any]:
    if not isinstance(value, list) or any(not isinstance(item, list) or len(item) != texts + 1 for item in value):
        raise Misfit(f"{name} must be a list of lists of {texts + 1}, not {shown(value)}")
    found = {tuple(_scalar(str, key, name) for key in keys): _made(kind, item, name) for *keys, item in value}
    if len(found) < len(value):
        raise Misfit(f"{name} names one thing twice")
    return found


def _scalar(kind: Any, value: Any, name: str) -> Any:
    if issubclass(kind, Enum):
        if isinstance(value, str) and value in list(kind):
            return kind(value)
        raise Misfit(f"{name} must be one of {', '.join(kind)}, not {shown(value)}")
    wanted = {str: "a text", bool: "true or false", int: "an integer", float: "a number"}[kind]
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise Misfit(f"{name} must be {wanted}, not {shown(value)}")
    if kind is str and not value:
        raise Misfit(f"{name} must not be empty")
    if kind in (int, float):
        least = _LEAST.get(name)
        if not _is_finite(value) or (least is not None and value < least):
            raise Misfit(f"{name} must be {wanted}{'' if least is None else f' from {least:g} on'}, not {shown(value)}")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False
