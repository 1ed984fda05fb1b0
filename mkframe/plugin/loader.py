"""Finds plugins: built-in, entry points of installed packages, folders named by the user, in this order."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TypeVar

from mkframe.errors import PluginError
from mkframe.originals import Originals, of_host, told_of
from mkframe.plugin.asking import importing
from mkframe.plugin.contract import ContractBreach, check_engine, type_name
from mkframe.plugin.engine import Engine
from mkframe.plugin.folders import FOLDER_PREFIX as FOLDER_PREFIX
from mkframe.plugin.folders import KERNELS, Found, Refused, open_folders
from mkframe.plugin.probe import unsafe_modules
from mkframe.plugin.registry import Loaded, LoadFailure, Registry, choices, freeze
from mkframe.plugin.workload import Workload
from mkframe.plugin.workload_contract import check_workload
from mkframe.text import printable, told

BUILT_IN = "mkframe_plugins"
ENTRY_POINT_GROUPS = ("mkframe.engines", "mkframe.workloads")
CONSTANTS = ("WORKLOADS", "ENGINES", "ENGINE_FACTORIES")

T = TypeVar("T")
Plugin = TypeVar("Plugin", Engine, Workload)


@dataclass(frozen=True, slots=True)
class _Source:
    """A plugin that imported: the object that it names (a module, or what an entry point points to)."""

    name: str
    origin: str
    module: str
    content: object


@dataclass(slots=True)
class _Collector:
    originals: Originals
    workloads: dict[str, Loaded[Workload]] = field(default_factory=dict)
    engines: dict[tuple[str, str], Loaded[Engine]] = field(default_factory=dict)
    failures: list[LoadFailure] = field(default_factory=list)
    ignored: list[LoadFailure] = field(default_factory=list)
    unsafe: Mapping[str, str] = field(default_factory=dict)

    def fail(self, name: str, origin: str, error: BaseException) -> None:
        failure = LoadFailure(id=printable(name), origin=printable(origin), error=told(error, kind=not isinstance(error, ContractBreach)))
        if failure not in self.failures:  # a factory fails for every workload in the same way
            self.failures.append(failure)

    def ignore(self, name: str, origin: str, reason: str) -> None:
        self.ignored.append(LoadFailure(id=printable(name), origin=printable(origin), error=reason))

    def attempt(self, name: str, origin: str, action: Callable[[], T]) -> T | None:
        """What the plugin's code gives, or None and a failure. An exit is a failure too: no plugin may end the program."""
        try:
            return action()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.fail(name, origin, error)
            return None

    def demand_safe(self, module: str) -> None:
        """Raises ContractBreach for a module that a process does not survive."""
        if module in self.unsafe:
            raise ContractBreach(self.unsafe[module])

    def demand_originals(self, origin: str) -> None:
        """Puts back what was replaced, and raises PluginError: whatever else such a plugin did, nothing can be measured beside it."""
        changed = self.originals.restore()
        if changed:
            raise PluginError(f"{told_of(changed)}: {origin} replaces what times and statistics rest on when it is loaded; remove it")


def load_registry(
    plugin_paths: Sequence[str] = (), originals: Originals | None = None, unsafe: Mapping[str, str] | None = None
) -> Registry:
    """Loads every plugin. What fails to import or breaks its contract is kept in `failures` and hurts nobody else; what brings
    nothing is kept in `ignored`. Nothing that a plugin prints reaches stdout. `originals`: what no plugin may replace; by itself, what
    every process of a run uses. `unsafe`: import names of plugins that a process does not survive, and why, where that is known; by
    itself, third-party plugins are tried in another process first.

    Raises PluginError where two plugins claim one id or where one replaces a function of `originals`, UsageError where a plugin
    folder does not exist.
    """
    with importing():
        return _load(plugin_paths, of_host() if originals is None else originals, unsafe)


def _load(plugin_paths: Sequence[str], originals: Originals, unsafe: Mapping[str, str] | None) -> Registry:
    found = _Collector(originals)
    points, items = list(_points()), list(open_folders(plugin_paths))
    if unsafe is None:
        unsafe = unsafe_modules(plugin_paths, [*map(_module, points), *(item.module for item in items if isinstance(item, Found))])
    found.unsafe = unsafe
    sources = [*_built_in(found), *_entry_points(points, found), *_folders(items, found)]
    for source in sources:
        for candidate in _listed(found, source, "WORKLOADS", Workload):
            if (workload := _checked(found, source, candidate, check_workload)) is not None:
                _add(found.workloads, workload.id, f"workload {workload.id}", workload, source)
    for source in sources:
        for candidate in _listed(found, source, "ENGINES", Engine):
            _add_engine(found, source, candidate)
    for source in sources:
        for factory in _listed(found, source, "ENGINE_FACTORIES", None):
            for loaded in list(found.workloads.values()):
                for candidate in _made(found, source, factory, loaded.plugin):
                    _add_engine(found, source, candidate)
    found.demand_originals("a plugin")
    return freeze(found.workloads, found.engines, found.failures, found.ignored, unsafe)


def _add_engine(found: _Collector, source: _Source, candidate: object) -> None:
    engine = _checked(found, source, candidate, lambda given: _placed(check_engine(given), found.workloads))
    if engine is not None:
        _add(found.engines, (engine.workload, engine.id), f"engine {engine.id} of {engine.workload}", engine, source)


def _placed(engine: Engine, workloads: Mapping[str, object]) -> Engine:
    if engine.workload not in workloads:
        raise ContractBreach(
            f"engine {engine.id} is for workload {engine.workload!r}, which is not here; {choices(engine.workload, workloads)}"
        )
    return engine


def _add(known: dict[T, Loaded[Plugin]], key: T, what: str, plugin: Plugin, source: _Source) -> None:
    if key in known:
        raise PluginError(f"{what} is claimed twice: by {known[key].origin} and by {source.origin}; rename or remove one of them")
    known[key] = Loaded(plugin=plugin, origin=source.origin, module=source.module)


def _checked(found: _Collector, source: _Source, candidate: object, check: Callable[[object], Plugin]) -> Plugin | None:
    """A candidate that keeps the contract; else None, and a failure under the id that it declares, where it does."""
    return found.attempt(_declared_id(candidate) or source.name, source.origin, lambda: check(candidate))


def _declared_id(candidate: object) -> str | None:
    try:
        declared = getattr(candidate, "id", None)
    except Exception:
        return None
    return declared if isinstance(declared, str) else None


def _made(found: _Collector, source: _Source, factory: object, workload: Workload) -> tuple[object, ...]:
    def make() -> tuple[object, ...]:
        if not callable(factory):
            raise ContractBreach(f"ENGINE_FACTORIES must hold functions from a workload to engines, not {type_name(factory)}")
        return tuple(factory(workload))

    return found.attempt(source.name, source.origin, make) or ()


def _listed(found: _Collector, source: _Source, constant: str, kind: type | None) -> tuple[object, ...]:
    """What a plugin lists in one of its constants; an entry point may also point straight at one plugin or its class."""
    return found.attempt(source.name, source.origin, lambda: _contents(source.content, constant, kind)) or ()


def _contents(content: object, constant: str, kind: type | None) -> tuple[object, ...]:
    if isinstance(content, ModuleType):
        given = getattr(content, constant, ())
        if not isinstance(given, tuple | list):
            raise ContractBreach(f"{constant} must be a tuple, not {type_name(given)}")
        return tuple(given)
    if kind is not None and isinstance(content, type) and issubclass(content, kind):
        return (content(),)
    return (content,) if kind is not None and isinstance(content, kind) else ()


def _built_in(found: _Collector) -> Iterator[_Source]:
    package = importlib.import_module(BUILT_IN)
    for module in _modules(package.__path__, f"{BUILT_IN}."):
        yield from _imported(found, module.rpartition(".")[2], "built-in", module)
    found.originals.watch(module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == BUILT_IN)


def _modules(paths: Iterable[str], prefix: str) -> Iterator[str]:
    """Modules of a package and of the packages in it, by import name. Packages called `kernels` are left out: their modules import the
    compiler of kernels, in a process of its own."""
    for module in pkgutil.iter_modules(paths, prefix):
        if module.ispkg and module.name.endswith(f".{KERNELS}"):
            continue
        yield module.name
        if module.ispkg:
            yield from _modules(getattr(sys.modules.get(module.name), "__path__", ()), f"{module.name}.")


def _points() -> Iterator[EntryPoint]:
    seen: set[str] = set()
    for group in ENTRY_POINT_GROUPS:
        for point in entry_points(group=group):
            if point.value not in seen:  # one module may stand in both groups
                seen.add(point.value)
                yield point


def _module(point: EntryPoint) -> str:
    return point.value.partition(":")[0].strip()


def _entry_points(points: Iterable[EntryPoint], found: _Collector) -> Iterator[_Source]:
    for point in points:
        origin = f"entry point {point.name}"

        def load(point: EntryPoint = point, origin: str = origin) -> _Source:
            found.demand_safe(_module(point))
            return _Source(point.name, origin, point.module, _pointed_at(point.load(), point.value))

        loaded = found.attempt(point.name, origin, load)
        found.demand_originals(origin)
        yield from _worth(found, loaded)


def _pointed_at(content: object, value: str) -> object:
    if not isinstance(content, ModuleType | Engine | Workload) and not (
        isinstance(content, type) and issubclass(content, Engine | Workload)
    ):
        raise ContractBreach(f"{value} is no module, Engine or Workload, but {type_name(content)}")
    return content


def _folders(items: Iterable[Found | Refused], found: _Collector) -> Iterator[_Source]:
    for item in items:
        if isinstance(item, Refused):
            found.fail(item.name, item.origin, ContractBreach(item.reason))
        else:
            for source in _imported(found, item.name, item.origin, item.module):
                yield from _worth(found, source)


def _worth(found: _Collector, source: _Source | None) -> Iterator[_Source]:
    """The source again, unless it is a module that brings nothing: that is told, because a constant may be misspelt."""
    if source is None:
        return
    if isinstance(source.content, ModuleType) and not any(name in vars(source.content) for name in CONSTANTS):
        found.ignore(source.name, source.origin, f"brings nothing: it has none of {', '.join(CONSTANTS)}")
        return
    yield source


def _imported(found: _Collector, name: str, origin: str, module: str) -> Iterator[_Source]:
    def load() -> ModuleType:
        found.demand_safe(module)
        return importlib.import_module(module)

    content = found.attempt(name, origin, load)
    found.demand_originals(origin)
    if content is not None:
        yield _Source(name, origin, module, content)
