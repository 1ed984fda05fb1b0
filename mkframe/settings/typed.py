"""Plain containers to frozen dataclasses, strictly: every refusal names its key, what was expected and what was found.

omegaconf's own structured nodes convert in silence (True becomes 1, 2.0 becomes 2) and cannot hold a literal beside a number.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mkframe.errors import ConfigError
from mkframe.text import choices

T = TypeVar("T")


def typed(kind: type[T], value: Any, key: str = "") -> T:
    """`value` (what YAML can hold) as `kind`: a dataclass, or a type that a field of one may have.

    `key` is where the value stands, for messages. Raises ConfigError.
    """
    result: T = _convert(kind, value, key)
    return result


def join(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _convert(kind: Any, value: Any, key: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _record(kind, value, key)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union(kind, value, key)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _mismatch(kind, value, key)
        return tuple(_convert(get_args(kind)[0], item, f"{key}[{index}]") for index, item in enumerate(value))
    if _is_mapping(origin):
        return _mapping(kind, value, key)
    return _scalar(kind, value, key)


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _record(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise _mismatch(kind, value, key)
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind)]
    for name in value:
        if name not in known:
            raise ConfigError(f"{join(key, name)}: no such key; {choices(str(name), known)}")
    for item in fields(kind):
        if item.name not in value and item.default is MISSING and item.default_factory is MISSING:
            raise ConfigError(f"{join(key, item.name)}: missing; the keys here are {', '.join(known)}")
    return kind(**{name: _convert(hints[name], item, join(key, name)) for name, item in value.items()})


def _mapping(kind: Any, value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _mismatch(kind, value, key)
    _, item_kind = get_args(kind)
    return {str(name): _convert(item_kind, item, join(key, name)) for name, item in value.items()}


def _union(kind: Any, value: Any, key: str) -> Any:
    members = [member for member in get_args(kind) if member is not NoneType]
    if value is None and len(members) < len(get_args(kind)):
        return None
    if len(members) == 1:
        return _convert(members[0], value, key)
    for member in members:
        try:
            return _convert(member, value, key)
        except ConfigError:
            continue
    raise _mismatch(kind, value, key)


def _scalar(kind: Any, value: Any, key: str) -> Any:
    if get_origin(kind) is Literal:
        if value in get_args(kind) and not isinstance(value, bool):
            return value
    elif issubclass(kind, Enum):
        for member in kind:
            if value == member or str(value) in (member.name, member.value):
                return member
    elif kind is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    elif kind is str:
        if isinstance(value, str) or type(value) in (int, float):  # a bare number on the command line
            return str(value)
    elif type(value) is kind:
        return value
    raise _mismatch(kind, value, key)


def _mismatch(kind: Any, value: Any, key: str) -> ConfigError:
    shown = "nothing (null)" if value is None else repr(value) if not isinstance(value, Mapping | list | tuple) else _outline(value)
    return ConfigError(f"{key or 'the configuration'}: expected {expected(kind)}, not {shown}")


def _outline(value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]) -> str:
    return "a group of keys" if isinstance(value, Mapping) else "a list"


def expected(kind: Any) -> str:
    """What a type wants, for people."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return " or ".join("null" if member is NoneType else expected(member) for member in get_args(kind))
    if origin is Literal:
        return " or ".join(repr(item) if not isinstance(item, str) else item for item in get_args(kind))
    if origin is tuple:
        return "a list"
    if is_dataclass(kind) or _is_mapping(origin):
        return "a group of keys"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value if isinstance(member.value, str) else member.name) for member in kind)
    return {int: "an integer", float: "a number", bool: "true or false", str: "a text"}.get(kind, str(kind))
