"""The functions that numbers rest on, remembered before a plugin is imported: whoever replaces one is found, and it is put back."""

import importlib
import inspect
import json
import pkgutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from mkframe import canonical, stats

Names = tuple[Any, tuple[str, ...]]
"""A module or class, and the names in it that are watched."""

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Place:
    """`value` stands under `name` in `owner`; absent where the owner inherits it. `body`: what a Python function runs."""

    owner: Any
    name: str
    label: str
    value: Any
    body: tuple[Any, ...]

    def holds(self) -> bool:
        value = vars(self.owner).get(self.name, _ABSENT)
        return value is self.value and all(one is other for one, other in zip(_body(value), self.body, strict=True))

    def put_back(self) -> None:
        if self.value is _ABSENT:
            delattr(self.owner, self.name)
            return
        if vars(self.owner).get(self.name, _ABSENT) is not self.value:
            setattr(self.owner, self.name, self.value)
        function = _function(self.value)
        if function is not None:
            function.__code__, function.__defaults__, function.__kwdefaults__ = self.body


class Originals:
    """What stands under watched names when it is made. `named`: single names; `modules`: everything that a module binds, and the
    attributes of the classes that it defines."""

    def __init__(self, named: Iterable[Names] = (), modules: Iterable[ModuleType] = ()) -> None:
        found = [_place(owner, name) for owner, names in named for name in names]
        found += [_place(owner, name) for module in modules for owner, name in _everything(module)]
        self._places = tuple(found)

    def restore(self) -> tuple[str, ...]:
        """Puts back what was replaced, and names it: `torch.cuda.Event.elapsed_time`. Raises AttributeError or TypeError where
        something cannot be put back."""
        changed = [place for place in self._places if not place.holds()]
        for place in changed:
            place.put_back()
        return tuple(place.label for place in changed)


def told_of(changed: tuple[str, ...]) -> str:
    """A clause for people about what `restore` found."""
    more = f" (nor are {len(changed) - 1} more)" if len(changed) > 1 else ""
    return f"{changed[0]} is not the function that the framework started with{more}"


def modules_of(*packages: ModuleType) -> Iterator[ModuleType]:
    """The packages and every module in them, imported."""
    for package in packages:
        yield package
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def of_host() -> Originals:
    """Clocks and statistics that every process of a run uses, and what writes its figures."""
    return Originals(
        named=(
            (time, ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "thread_time_ns", "time_ns")),
            (np, ("median", "quantile", "percentile", "sort", "array", "asarray", "concatenate", "stack")),
            (json, ("dumps", "loads")),
        ),
        modules=(*modules_of(stats), canonical),
    )


def _place(owner: Any, name: str) -> _Place:
    value = vars(owner).get(name, _ABSENT)
    assert value is not _ABSENT or hasattr(owner, name), f"{owner} has no {name}"
    prefix = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    return _Place(owner, name, f"{prefix}.{name}", value, _body(value))


def _everything(module: ModuleType) -> Iterator[tuple[Any, str]]:
    for name, value in list(vars(module).items()):
        if name.startswith("__"):
            continue
        yield module, name
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield from ((value, attribute) for attribute, one in vars(value).items() if _function(one) or isinstance(one, property))


def _function(value: Any) -> FunctionType | None:
    bare = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return bare if isinstance(bare, FunctionType) else None


def _body(value: Any) -> tuple[Any, ...]:
    function = _function(value)
    return () if function is None else (function.__code__, function.__defaults__, function.__kwdefaults__)
