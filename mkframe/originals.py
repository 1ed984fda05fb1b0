"""The functions that numbers rest on, remembered before a plugin is imported: whoever replaces one is found, and it is put back."""

import importlib
import inspect
import json
import pkgutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from mkframe import canonical, decision, stats

Names = tuple[Any, tuple[str, ...]]
"""A module or class, and the names in it that are watched."""

_ABSENT = object()
_SET_BY_PYTHON = frozenset({"__annotations_cache__", "__protocol_attrs__", "__non_callable_proto_members__"})
"""What typing adds to a class when somebody asks it a question."""


@dataclass(frozen=True, slots=True)
class _Place:
    """`value` stands under `name` in `owner`; absent where the owner inherits it. `body`: what a Python function runs."""

    owner: Any
    name: str
    value: Any
    function: FunctionType | None
    body: tuple[Any, ...]

    @property
    def label(self) -> str:
        owner = self.owner
        prefix = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
        return f"{prefix}.{self.name}"

    def put_back(self) -> None:
        if self.value is _ABSENT:
            delattr(self.owner, self.name)
            return
        if vars(self.owner).get(self.name, _ABSENT) is not self.value:
            setattr(self.owner, self.name, self.value)
        if self.function is not None:
            self.function.__code__, self.function.__defaults__, self.function.__kwdefaults__ = self.body


@dataclass(frozen=True, slots=True)
class _Owner:
    """A module or class and the places in it. Where it is `closed`, a new name is as bad as a replaced one: it may stand in front of a
    builtin, or of a method that a class inherits."""

    owner: Any
    places: tuple[_Place, ...]
    names: frozenset[str]
    closed: bool

    def changed(self) -> Iterator[_Place]:
        space = vars(self.owner)
        for place in self.places:
            function = place.function
            if space.get(place.name, _ABSENT) is not place.value or (
                function is not None
                and not (
                    function.__code__ is place.body[0]
                    and function.__defaults__ is place.body[1]
                    and function.__kwdefaults__ is place.body[2]
                )
            ):
                yield place
        if self.closed:
            for name in space.keys() - self.names:
                if not self._may_be_new(name, space[name]):
                    yield _Place(self.owner, name, _ABSENT, None, ())

    def _may_be_new(self, name: str, value: Any) -> bool:
        """A module keeps its submodules, and what the interpreter writes there; a class what typing does."""
        if inspect.isclass(self.owner):
            return name in _SET_BY_PYTHON
        return _is_dunder(name) or sys.modules.get(f"{self.owner.__name__}.{name}", _ABSENT) is value


@dataclass(frozen=True, slots=True)
class _Reducers:
    """A table from which pickle takes how a type is packed: nobody may say it for a type that figures travel in."""

    label: str
    table: MutableMapping[Any, Any]
    was: Mapping[Any, Any]

    def restore(self) -> list[str]:
        changed = [kind for kind in {**self.table, **self.was} if self.table.get(kind) is not self.was.get(kind) and _carries_figures(kind)]
        for kind in changed:
            if kind in self.was:
                self.table[kind] = self.was[kind]
            else:
                del self.table[kind]
        return [f"{self.label}[{kind.__qualname__}]" for kind in changed]


class Originals:
    """What stands under watched names when it is made. `named`: single names; `modules`: everything that a module binds, and the
    attributes of the classes that it defines; nothing may be added to these; `reducers`: tables of pickle, by name."""

    def __init__(
        self,
        named: Iterable[Names] = (),
        modules: Iterable[ModuleType] = (),
        reducers: Mapping[str, MutableMapping[Any, Any]] = MappingProxyType({}),
    ) -> None:
        self._owners = [_opened(owner, names) for owner, names in named]
        self._reducers = tuple(_Reducers(label, table, dict(table)) for label, table in reducers.items())
        self.watch(modules)

    def watch(self, modules: Iterable[ModuleType]) -> None:
        """From now on these modules as well."""
        self._owners += [_closed(owner) for module in modules for owner in (module, *_own_classes(module))]

    def restore(self) -> tuple[str, ...]:
        """Puts back what was replaced, and names it: `torch.cuda.Event.elapsed_time`. Raises AttributeError or TypeError where
        something cannot be put back."""
        changed = [place for owner in self._owners for place in owner.changed()]
        for place in changed:
            place.put_back()
        return tuple(place.label for place in changed) + tuple(label for table in self._reducers for label in table.restore())


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


def callables_of(owner: Any) -> tuple[str, ...]:
    """The names of whatever a module or class lets others call, inherited or its own; with the operators of a class."""
    names = (
        (name for name in dir(owner) if name != "__class__") if inspect.isclass(owner) else (n for n in vars(owner) if not _is_dunder(n))
    )
    return tuple(name for name in names if callable(inspect.getattr_static(owner, name)))


def of_host() -> Originals:
    """Clocks and statistics that every process of a run uses, and what writes its figures."""
    return Originals(
        named=(
            (time, ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "thread_time_ns", "time_ns")),
            (np, ("median", "quantile", "percentile", "sort", "array", "asarray", "concatenate", "stack")),
            (json, ("dumps", "loads")),
        ),
        modules=(*modules_of(stats), canonical, decision),
    )


def _opened(owner: Any, names: Iterable[str]) -> _Owner:
    places = tuple(_place(owner, name) for name in names)
    return _Owner(owner, places, frozenset(), closed=False)


def _closed(owner: Any) -> _Owner:
    """Everything but what the interpreter keeps in a module for itself."""
    names = frozenset(vars(owner))
    watched = sorted(names - _SET_BY_PYTHON if inspect.isclass(owner) else (name for name in names if not _is_dunder(name)))
    return _Owner(owner, tuple(_place(owner, name) for name in watched), names, closed=True)


def _place(owner: Any, name: str) -> _Place:
    value = vars(owner).get(name, _ABSENT)
    assert value is not _ABSENT or hasattr(owner, name), f"{owner} has no {name}"
    function = _function(value)
    body = () if function is None else (function.__code__, function.__defaults__, function.__kwdefaults__)
    return _Place(owner, name, value, function, body)


def _own_classes(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]


def _carries_figures(kind: Any) -> bool:
    """Types of mkframe and numpy: pickle asks no table for plain numbers, and libraries say for their own types how they are packed."""
    return str(getattr(kind, "__module__", "")).partition(".")[0] in ("mkframe", "numpy")


def _is_dunder(name: str) -> bool:
    return name.startswith("__")


def _function(value: Any) -> FunctionType | None:
    bare = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    return bare if isinstance(bare, FunctionType) else None
