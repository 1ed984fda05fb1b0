"""What a plugin must satisfy before it is let in."""

import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, get_type_hints

from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.model.precision import PRECISIONS
from mkframe.plugin.engine import Engine
from mkframe.plugin.workload import Defaults, Workload

DEVICES = ("cpu", "cuda")
RESERVED = ("all", "baselines", "default")
_ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_OPTION_TYPES = (int, float, str, bool)


class ContractBreach(Exception):
    """One clause: what the plugin does not satisfy."""


def check_engine(engine: object) -> Engine:
    """Returns the engine, or raises ContractBreach with what is wrong."""
    if not isinstance(engine, Engine):
        raise ContractBreach(f"ENGINES must hold instances of mkframe.plugin.Engine, not {_name(engine)}")
    _check_id(engine, "engine")
    if engine.id.endswith(GRAPH_SUFFIX):
        raise ContractBreach(f"engine id {engine.id!r} ends in {GRAPH_SUFFIX}, which names the graph form of an engine")
    if not isinstance(getattr(engine, "workload", None), str):
        raise ContractBreach(f"engine {engine.id} names no workload; set `workload` to the id of one")
    _check_subset(engine.id, "devices", engine.devices, DEVICES)
    _check_subset(engine.id, "precisions", engine.precisions, tuple(PRECISIONS))
    _check_call(engine.id, engine.bind, 4)
    _check_call(engine.id, engine.unsupported, 3)
    _check_call(engine.id, engine.scratch, 3)
    check_options(engine.id, engine.Options)
    return engine


def check_workload(workload: object) -> Workload:
    """Returns the workload, or raises ContractBreach with what is wrong."""
    if not isinstance(workload, Workload):
        raise ContractBreach(f"WORKLOADS must hold instances of mkframe.plugin.Workload, not {_name(workload)}")
    _check_id(workload, "workload")
    case = getattr(workload, "Case", None)
    if not (isinstance(case, type) and is_dataclass(case) and _frozen(case)):
        raise ContractBreach(f"workload {workload.id}: Case must be a frozen dataclass of integers")
    hints = get_type_hints(case)
    odd = [f.name for f in fields(case) if hints[f.name] is not int]
    if odd or not fields(case):
        raise ContractBreach(f"workload {workload.id}: every field of Case must be an int{'; not so: ' + ', '.join(odd) if odd else ''}")
    _check_subset(workload.id, "precisions", getattr(workload, "precisions", ()), tuple(PRECISIONS))
    defaults = getattr(workload, "defaults", None)
    if not isinstance(defaults, Defaults) or not defaults.engines or not defaults.shapes:
        raise ContractBreach(f"workload {workload.id}: defaults must be a Defaults with at least one engine and one shape set")
    if defaults.precision not in workload.precisions:
        raise ContractBreach(f"workload {workload.id}: its default precision {defaults.precision!r} is not among its precisions")
    return workload


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


def _check_id(plugin: Engine | Workload, what: str) -> None:
    name = getattr(plugin, "id", None)
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise ContractBreach(f"{what} {_name(plugin)}: its id must be lower-case letters and digits joined by - or _, not {name!r}")
    if name in RESERVED:
        raise ContractBreach(f"{what} id {name!r} is reserved")


def _check_subset(plugin_id: str, what: str, given: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(given, tuple) or not given or any(item not in allowed for item in given):
        raise ContractBreach(f"{plugin_id}: {what} must be a tuple out of {', '.join(allowed)}, not {given!r}")


def _check_call(engine_id: str, method: Any, count: int) -> None:
    try:
        inspect.signature(method).bind(*range(count))
    except (TypeError, ValueError) as error:
        raise ContractBreach(f"engine {engine_id}: {method.__name__} must take {count} arguments ({error})") from error


def _frozen(case: Any) -> bool:
    return bool(case.__dataclass_params__.frozen)


def _name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
