"""Configuration nodes that come from the registry: engines, workloads, their defaults and their own shape sets.

Group     node                 content
workload  W                    id
engine    E, E-graph           options with their defaults, under engine.E
engine    W-default            W's default engines (shape and precision likewise)
shape     W-own-S, S           a set that W brings itself, under shape.S; the plain name where nothing else has it
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore

from mkframe.errors import PluginError
from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.plugin.engine import Engine
from mkframe.plugin.registry import Registry
from mkframe.plugin.workload import Workload

_PROVIDER = "mkframe"
GRID = "grid"

Node = dict[str, Any]


def register(registry: Registry, conf: Path) -> frozenset[tuple[str, str]]:
    """Stores every node, in place of an earlier registry's. Returns the (group, name) pairs that people need not see.

    `conf` is the folder of the configuration files, whose names win. Raises PluginError where two workloads give one engine
    id different options.
    """
    _forget()
    hidden: set[tuple[str, str]] = set()
    for workload_id in registry.workloads:
        workload = registry.workload(workload_id)
        _store("workload", workload_id, {"id": workload_id})
        hidden.update(_shape_sets(workload, conf))
        hidden.update(_defaults(workload))
    for engine_id, options in _engine_options(registry).items():
        _store("engine", engine_id, {"options": options}, package=f"engine.{engine_id}")
    return frozenset(hidden)


def own_set(workload_id: str, name: str) -> str:
    """The node of a shape set that a workload brings itself."""
    return f"{workload_id}-own-{name}"


def own_sets(workload: Workload) -> Mapping[str, Node]:
    """The shape sets that a workload brings, and a grid of its own axes where it brings any."""
    sets: dict[str, Node] = {name: {"seed": None, "cases": [dict(case) for case in cases]} for name, cases in workload.shapes.items()}
    if sets and GRID not in sets:
        sets[GRID] = _grid(workload, sets)
    return sets


def _grid(workload: Workload, sets: Mapping[str, Node]) -> Node:
    """Axes at the first case of the workload's first default set; axes that may be left out are null."""
    first = next((sets[name] for name in workload.defaults.shapes if name in sets), next(iter(sets.values())))
    case = first["cases"][0] if first["cases"] else {}
    required = [item.name for item in fields(workload.Case) if item.default is MISSING]
    return {"seed": None, **{item.name: case.get(item.name) if item.name in required else None for item in fields(workload.Case)}}


def _shape_sets(workload: Workload, conf: Path) -> Iterable[tuple[str, str]]:
    taken = ConfigStore.instance().repo.get("shape", {})
    for name, node in own_sets(workload).items():
        _store("shape", own_set(workload.id, name), node, package=f"shape.{name}")
        yield "shape", own_set(workload.id, name)
        if not (conf / "shape" / f"{name}.yaml").exists() and f"{name}.yaml" not in taken:
            _store("shape", name, node, package=f"shape.{name}")


def _defaults(workload: Workload) -> Iterable[tuple[str, str]]:
    sets = own_sets(workload)
    chosen = {
        "engine": list(workload.defaults.engines),
        "shape": [own_set(workload.id, name) if name in sets else name for name in workload.defaults.shapes],
        "precision": [workload.defaults.precision],
    }
    for group, names in chosen.items():
        _store(group, f"{workload.id}-default", {"defaults": names})
        yield group, f"{workload.id}-default"


def _engine_options(registry: Registry) -> dict[str, Node]:
    """Engine id, graph forms included -> options with their defaults."""
    nodes: dict[str, Node] = {}
    first: dict[str, Engine] = {}
    for loaded in registry.engines.values():
        engine = loaded.plugin
        known = first.setdefault(engine.id, engine)
        node = {item.name: _plain(default(item)) for item in fields(engine.Options)}
        if known is not engine and node != nodes[engine.id]:
            raise PluginError(
                f"engine {engine.id} has other options in workload {engine.workload} than in {known.workload}; give one of them another id"
            )
        nodes[engine.id] = node
        if "cuda" in engine.devices:
            nodes[engine.id + GRAPH_SUFFIX] = dict(node)
    return nodes


def default(item: Any) -> Any:
    """The default value of a dataclass field that has one."""
    return item.default if item.default is not MISSING else item.default_factory()


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return value


def _store(group: str, name: str, node: Node, package: str | None = None) -> None:
    ConfigStore.instance().store(group=group, name=name, node=node, package=package, provider=_PROVIDER)


def _forget() -> None:
    for group in ("workload", "engine", "shape", "precision"):
        nodes = ConfigStore.instance().repo.get(group, {})
        for name in [name for name, node in nodes.items() if getattr(node, "provider", None) == _PROVIDER]:
            del nodes[name]
