"""What a plugin may answer when it is asked about a case. Every check raises ContractBreach with one clause: what is wrong."""

from collections.abc import Iterable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

from mkframe.model.kernel import Kernel
from mkframe.model.tensors import ITEM_BYTES, Role, TensorSpec
from mkframe.plugin.contract import ContractBreach
from mkframe.plugin.workload import Acceptance, Cost, Tolerance
from mkframe.text import one_line

Specs = Mapping[str, TensorSpec]


def check_tensors(found: Any) -> Specs:
    """Of `tensors`: inputs, weights and at least one output."""
    specs = _check_specs(found, (Role.INPUT, Role.WEIGHT, Role.OUTPUT))
    if not any(spec.role is Role.OUTPUT for spec in specs.values()):
        raise ContractBreach("names no output")
    return specs


def check_scratch(found: Any, taken: Iterable[str] = ()) -> Specs:
    """Of `scratch`: tensors under names of their own, not among those `taken` by the workload."""
    specs = _check_specs(found, (Role.SCRATCH,))
    for name in taken:
        if name in specs:
            raise ContractBreach(f"gives {name}, which is one of the workload's tensors; name it otherwise")
    return specs


def check_text(found: Any) -> str:
    """Of `implementation`: a text, returned as one line."""
    if not isinstance(found, str) or not found.strip():
        raise ContractBreach(f"must return a text, not {shown(found)}")
    return one_line(found)


def check_reason(found: Any) -> str | None:
    """Of `unsupported`: a text, returned as one line, or None."""
    if found is not None and not (isinstance(found, str) and found.strip()):
        raise ContractBreach(f"must return a reason or None, not {shown(found)}")
    return None if found is None else one_line(found)


def check_kernels(found: Any) -> tuple[Kernel, ...]:
    """Of `kernels`: a tuple of Kernels; a Kernel checks itself."""
    if not isinstance(found, tuple | list):
        raise ContractBreach(f"must return a tuple of Kernels, not {shown(found)}")
    for item in found:
        if not isinstance(item, Kernel):
            raise ContractBreach(f"gives {shown(item)}; every item is a Kernel")
    return tuple(found)


def check_cost(found: Any) -> Cost:
    """Of `cost`: two integers from 0 to 2^63 - 1."""
    if not isinstance(found, Cost):
        raise ContractBreach(f"must return a Cost, not {shown(found)}")
    for name in ("bytes", "flops"):
        _check_count(name, getattr(found, name))
        if getattr(found, name) >= 2**63:
            raise ContractBreach(f"gives {name} {shown(getattr(found, name))}; it must be below 2^63")
    return found


def check_shape(found: Any) -> dict[str, int]:
    """Of `shape_of`: names and integers, as a report holds them."""
    if not isinstance(found, Mapping) or not found:
        raise ContractBreach(f"must return names and sizes, not {shown(found)}")
    for name, size in found.items():
        if not isinstance(name, str) or type(size) is not int:
            raise ContractBreach(f"gives {name} the size {shown(size)}; sizes are integers")
    return dict(found)


def check_tolerance(found: Any) -> Tolerance:
    """Of `tolerance`; a Tolerance checks its numbers itself."""
    if not isinstance(found, Tolerance):
        raise ContractBreach(f"must return a Tolerance, not {shown(found)}")
    return found


def check_acceptance(found: Any) -> Acceptance:
    """Of `accepts`: finite numbers and counts that a report can hold."""
    if not isinstance(found, Acceptance):
        raise ContractBreach(f"must return an Acceptance, not {shown(found)}")
    value: Any
    for name in ("violations", "elements", "rounding_rows"):
        _check_count(name, getattr(found, name))
    for name in ("max_abs_error", "mean_abs_error", "rtol", "atol"):
        value = getattr(found, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and value >= 0):
            raise ContractBreach(f"gives {name} {shown(value)}; it must be a finite number of at least 0")
    return found


def shown(value: Any) -> str:
    """A value of a plugin in a message: short, on one line, with its type where that says more."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    try:
        text = one_line(repr(value))
    except Exception:
        text = "?"
    if value is None or isinstance(value, bool | int | float | str):
        plain = type(value) in (type(None), bool, int, float, str)
        return text[:80] if plain else f"{text[:80]} ({type(value).__name__})"
    return type(value).__name__


def _check_specs(found: Any, roles: tuple[Role, ...]) -> Specs:
    if not isinstance(found, Mapping):
        raise ContractBreach(f"must return names and TensorSpecs, not {shown(found)}")
    name: Any
    spec: Any
    for name, spec in found.items():
        if not isinstance(name, str) or not name or not isinstance(spec, TensorSpec):
            raise ContractBreach(f"gives {shown(name)} -> {shown(spec)}; every name stands for a TensorSpec")
        if spec.dtype not in tuple(ITEM_BYTES):
            raise ContractBreach(f"gives {one_line(name)} the dtype {shown(spec.dtype)}; there are: {', '.join(ITEM_BYTES)}")
        shape: Any = spec.shape
        if not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
            raise ContractBreach(f"gives {one_line(name)} the shape {one_line(repr(shape))}; a shape is a tuple of integers from 0")
        role: Any = spec.role
        if not isinstance(role, Role) or role not in roles:
            raise ContractBreach(f"gives {one_line(name)} the role {shown(role)}; here: {', '.join(f'Role.{role.name}' for role in roles)}")
    return found


def _check_count(name: str, value: Any) -> None:
    if type(value) is not int or value < 0:
        raise ContractBreach(f"gives {name} {shown(value)}; it must be an integer of at least 0")
