"""The registry: which engine computes which workload, where it comes from, and what could not be loaded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, NoReturn, TypeVar

from mkframe.errors import PluginError, SelectionError
from mkframe.plugin.engine import Engine
from mkframe.plugin.workload import Workload
from mkframe.text import choices as choices

Plugin = TypeVar("Plugin", Engine, Workload)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded(Generic[Plugin]):
    """A plugin and where it comes from: "built-in", "entry point NAME" or "folder NAME/FILE". `module` is its import name."""

    plugin: Plugin
    origin: str
    module: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadFailure:
    """A plugin that is not there: `id` is what a user would ask for (file stem, entry-point name, or the id it declares)."""

    id: str
    origin: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Registry:
    """Everything that was found. Engines are keyed by (workload id, engine id); graph forms are no entries of their own.

    `ignored`: files and entry points that bring nothing, with the reason. They are no failures: a folder may hold helpers.
    `unsafe`: import names of plugins that no process may import, with the reason; they are among the failures.
    """

    workloads: Mapping[str, Loaded[Workload]]
    engines: Mapping[tuple[str, str], Loaded[Engine]]
    failures: tuple[LoadFailure, ...]
    ignored: tuple[LoadFailure, ...] = ()
    unsafe: Mapping[str, str] = field(default_factory=dict)

    def workload(self, workload_id: str) -> Workload:
        """Raises SelectionError for an unknown id, PluginError where its plugin failed to load."""
        if workload_id in self.workloads:
            return self.workloads[workload_id].plugin
        self._refuse("workload", workload_id, self.workloads)

    def engine(self, workload_id: str, engine_id: str) -> Engine:
        """The engine `engine_id` (no graph suffix) of a workload. Raises SelectionError or PluginError, as `workload` does."""
        if (workload_id, engine_id) in self.engines:
            return self.engines[workload_id, engine_id].plugin
        self._refuse(f"engine of workload {workload_id}", engine_id, self.engine_ids(workload_id))

    def engine_ids(self, workload_id: str) -> tuple[str, ...]:
        """Ids of the engines of one workload, without graph forms, in load order."""
        return tuple(engine for workload, engine in self.engines if workload == workload_id)

    def _refuse(self, what: str, wanted: str, existing: Iterable[str]) -> NoReturn:
        for failure in (*self.failures, *self.ignored):
            if failure.id == wanted:
                raise PluginError(f"{wanted} ({failure.origin}) could not be loaded: {failure.error}")
        raise SelectionError(f"no {what} is called {wanted!r}; {choices(wanted, existing)}")


def freeze(
    workloads: dict[str, Loaded[Workload]],
    engines: dict[tuple[str, str], Loaded[Engine]],
    failures: list[LoadFailure],
    ignored: Iterable[LoadFailure] = (),
    unsafe: Mapping[str, str] = MappingProxyType({}),
) -> Registry:
    return Registry(
        workloads=MappingProxyType(workloads),
        engines=MappingProxyType(engines),
        failures=tuple(failures),
        ignored=tuple(ignored),
        unsafe=dict(unsafe),
    )
