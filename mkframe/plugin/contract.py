"""What a plugin must satisfy before it is let in. All its attributes are read here, so that none of them can fail later."""

import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, get_type_hints

from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.model.precision import PRECISIONS
from mkframe.plugin.engine import Engine
from mkframe.text import told

DEVICES = ("cpu", "cuda")
RESERVED = ("all", "baselines", "default")
_ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_OPTION_TYPES = (int, float, str, bool)
_METHODS = {"bind": 4, "unsupported": 3, "scratch": 3, "kernels": 4, "implementation": 1, "sources": 0}


class ContractBreach(Exception):
    """One clause: what the plugin does not satisfy."""


def check_engine(engine: object) -> Engine:
    """Returns the engine, or raises ContractBreach with what is wrong."""
    if not isinstance(engine, Engine):
        raise ContractBreach(f"ENGINES must hold instances of mkframe.plugin.Engine, not {type_name(engine)}")
    name = check_id(engine, "engine")
    if name.endswith(GRAPH_SUFFIX):
        raise ContractBreach(f"engine id {name!r} ends in {GRAPH_SUFFIX}, which names the graph form of an engine")
    if not isinstance(attribute(engine, "workload"), str):
        raise ContractBreach(f"engine {name} names no workload; set `workload` to the id of one")
    check_subset(name, "devices", attribute(engine, "devices"), DEVICES)
    check_subset(name, "precisions", attribute(engine, "precisions"), tuple(PRECISIONS))
    for flag in ("baseline", "overlaps"):
        if not isinstance(attribute(engine, flag), bool):
            raise ContractBreach(f"engine {name}: {flag} must be True or False, not {attribute(engine, flag)!r}")
    if not isinstance(attribute(engine, "limits"), str):
        raise ContractBreach(f"engine {name}: limits must be a text, not {attribute(engine, 'limits')!r}")
    for method, count in _METHODS.items():
        check_call(f"engine {name}", engine, method, count)
    check_options(name, attribute(engine, "Options"))
    return engine


def check_options(engine_id: str, options: Any) -> None:
    """Options: a dataclass whose fields are int, float, str, bool or an Enum, each with a default (it becomes configuration)."""
    if not (isinstance(options, type) and is_dataclass(options)):
        raise ContractBreach(f"engine {engine_id}: Options must be a dataclass")
    hints = get_type_hints(options)
    for item in fields(options):
        kind = hints[item.name]
        if kind not in _OPTION_TYPES and not (isinstance(kind, type) and issubclass(kind, Enum)):
            raise ContractBreach(f"engine {engine_id}: option {item.name} must be int, float, str, bool or an Enum")
        if item.default is MISSING and item.default_factory is MISSING:
            raise ContractBreach(f"engine {engine_id}: option {item.name} needs a default")
        if item.default_factory is not MISSING:
            try:
                item.default_factory()
            except Exception as error:
                raise ContractBreach(f"engine {engine_id}: option {item.name} has no default: {told(error)}") from error


def check_id(plugin: object, what: str) -> str:
    name = attribute(plugin, "id")
    if not is_id(name):
        raise ContractBreach(f"{what} {type_name(plugin)}: its id must be lower-case letters and digits joined by - or _, not {name!r}")
    if name in RESERVED:
        raise ContractBreach(f"{what} id {name!r} is reserved")
    return str(name)


def is_id(name: object) -> bool:
    """Whether `name` can be the id of a plugin or the name of a shape set."""
    return isinstance(name, str) and _ID.fullmatch(name) is not None


def attribute(plugin: object, name: str) -> Any:
    """An attribute, None where it is not there. Raises ContractBreach where it cannot be read."""
    try:
        return getattr(plugin, name, None)
    except Exception as error:
        raise ContractBreach(f"{name} of {type_name(plugin)} cannot be read: {told(error)}") from error


def check_subset(plugin_id: str, what: str, given: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(given, tuple) or not given or any(item not in allowed for item in given):
        raise ContractBreach(f"{plugin_id}: {what} must be a tuple out of {', '.join(allowed)}, not {given!r}")


def check_call(whose: str, plugin: object, name: str, count: int) -> None:
    """That a method can be called with `count` arguments."""
    try:
        inspect.signature(attribute(plugin, name)).bind(*range(count))
    except (TypeError, ValueError) as error:
        raise ContractBreach(f"{whose}: {name} must take {count} arguments ({told(error, kind=False)})") from error


def type_name(value: object) -> str:
    """The name of a value's class, or of the class that it is."""
    return value.__name__ if isinstance(value, type) else type(value).__name__
