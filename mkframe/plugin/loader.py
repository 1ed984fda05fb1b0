"""Finds plugins: built-in, entry points of installed packages, folders named by the user, in this order."""

import hashlib
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from mkframe.errors import PluginError, UsageError
from mkframe.plugin.contract import ContractBreach, check_engine, check_workload
from mkframe.plugin.engine import Engine
from mkframe.plugin.registry import Loaded, LoadFailure, Registry, choices, freeze
from mkframe.plugin.workload import Workload

BUILT_IN = "mkframe_plugins"
ENTRY_POINT_GROUPS = ("mkframe.engines", "mkframe.workloads")
FOLDER_PREFIX = "mkframe_folder_"


@dataclass(frozen=True, slots=True)
class _Source:
    """A plugin that imported: the object that it names (a module, or what an entry point points to)."""

    name: str
    origin: str
    module: str
    content: object


@dataclass(slots=True)
class _Collector:
    workloads: dict[str, Loaded[Workload]] = field(default_factory=dict)
    engines: dict[tuple[str, str], Loaded[Engine]] = field(default_factory=dict)
    failures: list[LoadFailure] = field(default_factory=list)

    def fail(self, name: str, origin: str, error: BaseException) -> None:
        kind = "" if isinstance(error, ContractBreach) else f"{type(error).__name__}: "
        message = " ".join(str(error).split()) or "no message"
        self.failures.append(LoadFailure(id=name, origin=origin, error=kind + message))

    def add_workload(self, candidate: object, source: _Source) -> None:
        workload = check_workload(candidate)
        if workload.id in self.workloads:
            raise PluginError(_twice(f"workload {workload.id}", self.workloads[workload.id].origin, source.origin))
        self.workloads[workload.id] = Loaded(plugin=workload, origin=source.origin, module=source.module)

    def add_engine(self, candidate: object, source: _Source) -> None:
        engine = check_engine(candidate)
        if engine.workload not in self.workloads:
            raise ContractBreach(
                f"engine {engine.id} is for workload {engine.workload!r}, which is not here; {choices(engine.workload, self.workloads)}"
            )
        key = (engine.workload, engine.id)
        if key in self.engines:
            raise PluginError(_twice(f"engine {engine.id} of {engine.workload}", self.engines[key].origin, source.origin))
        self.engines[key] = Loaded(plugin=engine, origin=source.origin, module=source.module)


def load_registry(plugin_paths: Sequence[str] = ()) -> Registry:
    """Loads every plugin. What fails to import or breaks its contract is kept in `failures` and hurts nobody else.

    Raises PluginError where two plugins claim one id, UsageError where a plugin folder does not exist.
    """
    found = _Collector()
    sources = [*_built_in(found), *_entry_points(found), *_folders(plugin_paths, found)]
    for source in sources:
        for workload in _listed(source, "WORKLOADS", Workload):
            _guard(found, source, workload, found.add_workload)
    for source in sources:
        for engine in _listed(source, "ENGINES", Engine):
            _guard(found, source, engine, found.add_engine)
    for source in sources:
        for factory in _listed(source, "ENGINE_FACTORIES", None):
            for loaded in list(found.workloads.values()):
                for engine in _made(found, source, factory, loaded.plugin):
                    _guard(found, source, engine, found.add_engine)
    return freeze(found.workloads, found.engines, found.failures)


def _guard(found: _Collector, source: _Source, candidate: object, add: object) -> None:
    """Adds one plugin; a broken contract becomes a failure under the id that the plugin declares, where it does."""
    try:
        add(candidate, source)  # type: ignore[operator]
    except ContractBreach as breach:
        declared = getattr(candidate, "id", None)
        found.fail(declared if isinstance(declared, str) else source.name, source.origin, breach)


def _made(found: _Collector, source: _Source, factory: object, workload: Workload) -> Sequence[object]:
    try:
        return tuple(factory(workload))  # type: ignore[operator]
    except Exception as error:
        found.fail(source.name, source.origin, error)
        return ()


def _listed(source: _Source, constant: str, kind: type | None) -> Iterator[object]:
    """What a plugin lists in one of its constants; an entry point may also point straight at one plugin or its class."""
    content = source.content
    if isinstance(content, ModuleType):
        yield from getattr(content, constant, ())
    elif kind is not None and isinstance(content, type) and issubclass(content, kind):
        yield content()
    elif kind is not None and isinstance(content, kind):
        yield content


def _built_in(found: _Collector) -> Iterator[_Source]:
    package = importlib.import_module(BUILT_IN)
    for module in pkgutil.walk_packages(package.__path__, f"{BUILT_IN}."):
        yield from _imported(found, module.name.rpartition(".")[2], "built-in", module.name)


def _entry_points(found: _Collector) -> Iterator[_Source]:
    seen: set[str] = set()
    for group in ENTRY_POINT_GROUPS:
        for point in entry_points(group=group):
            if point.value in seen:  # one module may stand in both groups
                continue
            seen.add(point.value)
            origin = f"entry point {point.name}"
            try:
                content = point.load()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit too: an import must not end the program
                found.fail(point.name, origin, error)
                continue
            yield _Source(point.name, origin, point.module, content)


def _folders(plugin_paths: Iterable[str], found: _Collector) -> Iterator[_Source]:
    for path in dict.fromkeys(str(Path(path).resolve()) for path in plugin_paths):
        folder = Path(path)
        if not folder.is_dir():
            raise UsageError(f"plugin_path: {path} is not a folder; name a folder that holds plugin files")
        package = _synthetic_package(folder)
        for module in sorted(pkgutil.iter_modules([path]), key=lambda info: info.name):
            if not module.name.startswith("_"):
                yield from _imported(found, module.name, f"folder {folder.name}/{module.name}.py", f"{package}.{module.name}")


def _synthetic_package(folder: Path) -> str:
    """Makes a folder importable as a package of its own, so that its modules pickle, and may import one another relatively."""
    name = FOLDER_PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    if name not in sys.modules:
        module = ModuleType(name, "Plugins of one folder.")
        module.__path__ = [str(folder)]
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = [str(folder)]
        sys.modules[name] = module
    return name


def _imported(found: _Collector, name: str, origin: str, module: str) -> Iterator[_Source]:
    try:
        content = importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: an import must not end the program
        found.fail(name, origin, error)
        return
    yield _Source(name, origin, module, content)


def _twice(what: str, first: str, second: str) -> str:
    return f"{what} is claimed twice: by {first} and by {second}; rename or remove one of them"
