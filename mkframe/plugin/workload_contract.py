"""What a workload must satisfy before it is let in."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from mkframe.model.precision import PRECISIONS
from mkframe.plugin.answers import check_tolerance, shown
from mkframe.plugin.contract import ContractBreach, attribute, check_call, check_id, check_subset, is_id, type_name
from mkframe.plugin.workload import Defaults, Workload
from mkframe.text import told

_METHODS = {"tensors": 2, "draw": 2, "reference": 3, "tolerance": 1, "cost": 2, "expression": 3, "accepts": 5, "shape_of": 1}


def check_workload(workload: object) -> Workload:
    """Returns the workload, or raises ContractBreach with what is wrong."""
    if not isinstance(workload, Workload):
        raise ContractBreach(f"WORKLOADS must hold instances of mkframe.plugin.Workload, not {type_name(workload)}")
    name = check_id(workload, "workload")
    case = _check_case(name, attribute(workload, "Case"))
    precisions = attribute(workload, "precisions")
    check_subset(name, "precisions", precisions, tuple(PRECISIONS))
    _check_defaults(name, attribute(workload, "defaults"), precisions)
    if not isinstance(attribute(workload, "eager_id"), str):
        raise ContractBreach(f"workload {name}: eager_id must be the id of an engine, not {shown(workload.eager_id)}")
    for method, count in _METHODS.items():
        check_call(f"workload {name}", workload, method, count)
    _check_shapes(name, attribute(workload, "shapes"), case)
    for precision in precisions:
        _check_tolerance(workload, precision)
    return workload


def _check_case(name: str, case: Any) -> Any:
    if not (isinstance(case, type) and is_dataclass(case) and case.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise ContractBreach(f"workload {name}: Case must be a frozen dataclass of integers")
    hints = get_type_hints(case)
    odd = [f.name for f in fields(case) if hints[f.name] is not int]
    if odd or not fields(case):
        raise ContractBreach(f"workload {name}: every field of Case must be an int{'; not so: ' + ', '.join(odd) if odd else ''}")
    return case


def _check_defaults(name: str, defaults: Any, precisions: tuple[str, ...]) -> None:
    if not isinstance(defaults, Defaults) or not defaults.engines or not defaults.shapes:
        raise ContractBreach(f"workload {name}: defaults must be a Defaults with at least one engine and one shape set")
    for what in ("engines", "shapes"):
        given = getattr(defaults, what)
        if not isinstance(given, tuple | list) or not all(is_id(item) for item in given):
            raise ContractBreach(f"workload {name}: defaults.{what} must be a tuple of names, not {given!r}")
    if defaults.precision not in precisions:
        raise ContractBreach(f"workload {name}: its default precision {defaults.precision!r} is not among its precisions")


def _check_shapes(name: str, shapes: Any, case: Any) -> None:
    """Every case of every set is one that Case takes."""
    if not isinstance(shapes, Mapping):
        raise ContractBreach(f"workload {name}: shapes must map names to lists of cases, not {shown(shapes)}")
    axes = {item.name for item in fields(case)}
    required = {item.name for item in fields(case) if item.default is MISSING and item.default_factory is MISSING}
    for set_name, cases in shapes.items():
        where = f"workload {name}: shapes[{set_name!r}]"
        if not is_id(set_name):
            raise ContractBreach(f"{where}: a set's name is lower-case letters and digits joined by - or _")
        if not isinstance(cases, Sequence) or isinstance(cases, str) or not cases:
            raise ContractBreach(f"{where} must be a list of cases, not {shown(cases)}")
        for index, values in enumerate(cases):
            _check_values(f"{where}[{index}]", values, axes, required)
            try:
                case(**values)
            except Exception as error:
                raise ContractBreach(f"{where}[{index}] is refused by Case: {told(error)}") from error


def _check_values(where: str, values: Any, axes: set[str], required: set[str]) -> None:
    if not isinstance(values, Mapping) or not required <= set(values) <= axes:
        raise ContractBreach(f"{where} must be a dictionary of {', '.join(sorted(axes))}")
    for axis, size in values.items():
        if type(size) is not int:
            raise ContractBreach(f"{where}: {axis} must be an int, not {shown(size)}")


def _check_tolerance(workload: Workload, precision: str) -> None:
    try:
        check_tolerance(workload.tolerance(PRECISIONS[precision]))
    except ContractBreach as breach:
        raise ContractBreach(f"workload {workload.id}: tolerance({precision}) {breach}") from breach
    except Exception as error:
        raise ContractBreach(f"workload {workload.id}: tolerance({precision}) failed: {told(error)}") from error
