"""`python -m mkframe engines`: what can be measured here, what cannot, and why."""

import json
import os
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from mkframe.cli.parser import Parser
from mkframe.config.nodes import DeviceConfig, DeviceKind
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.model.device import Device
from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.model.precision import PRECISIONS
from mkframe.plan.devices import resolve
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry

_COLUMNS = ("engine", "workload", "devices", "precisions", "limits", "origin", "here")
_SMALL = 16


def main(argv: list[str]) -> int:
    """Lists engines, and plugins that could not be loaded. Exit code 0."""
    plugin_paths, rest = split_plugin_paths(argv, os.environ)
    parser = Parser(prog="mkframe engines", description="Lists engines; plugin_path=DIR adds a folder of plugins.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="a table for people, or one JSON document")
    options = parser.parse_args(list(rest))
    registry = load_registry(plugin_paths)
    device = resolve(DeviceConfig(kind=DeviceKind.AUTO)).device
    rows = list(_rows(registry, device))
    failures = [{"id": f.id, "origin": f.origin, "error": f.error} for f in registry.failures]
    if options.format == "json":
        print(json.dumps({"device": device.name, "engines": rows, "failures": failures}, indent=2))
    else:
        _show(rows, failures, device)
    return 0


def _rows(registry: Registry, device: Device) -> Iterator[dict[str, Any]]:
    for (workload, name), loaded in registry.engines.items():
        engine = loaded.plugin
        yield {
            "engine": name,
            "graph": f"{name}{GRAPH_SUFFIX}" if "cuda" in engine.devices else None,
            "workload": workload,
            "devices": list(engine.devices),
            "precisions": list(engine.precisions),
            "limits": engine.limits,
            "origin": loaded.origin,
            "unavailable": _unavailable(registry, workload, name, device),
        }


def _unavailable(registry: Registry, workload_id: str, engine_id: str, device: Device) -> str | None:
    """Why an engine cannot run here at all: the device, or the reason that it gives for a small case in its first precision."""
    engine = registry.engine(workload_id, engine_id)
    if device.kind not in engine.devices:
        return f"needs {' or '.join(engine.devices)}, this is a {device.kind} device"
    workload = registry.workload(workload_id)
    case = workload.Case(**{item.name: _SMALL for item in fields(workload.Case) if item.default is MISSING})
    precision = next(name for name in (workload.defaults.precision, *engine.precisions) if name in engine.precisions)
    return engine.unsupported(case, PRECISIONS[precision], device)


def _show(rows: list[dict[str, Any]], failures: list[dict[str, str]], device: Device) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    table = Table(title=f"engines on {device.name}", title_justify="left")
    for column in _COLUMNS:
        table.add_column(column)
    for row in rows:
        forms = row["engine"] if row["graph"] is None else f"{row['engine']}, {row['graph']}"
        here = "yes" if row["unavailable"] is None else f"no: {row['unavailable']}"
        table.add_row(forms, row["workload"], " ".join(row["devices"]), " ".join(row["precisions"]), row["limits"], row["origin"], here)
    console.print(table)
    for failure in failures:
        console.print(f"not loaded: {failure['id']} ({failure['origin']}): {failure['error']}", markup=False)
