"""`python -m mkframe engines`: what can be measured here, what cannot, and why."""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from mkframe.cli.output import console
from mkframe.cli.parser import Parser
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import PluginError
from mkframe.model.device import Device
from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.model.precision import PRECISIONS
from mkframe.plan.devices import resolve
from mkframe.plan.engines import answer
from mkframe.plugin.answers import check_reason
from mkframe.plugin.asking import asking
from mkframe.plugin.engine import engine_on
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import LoadFailure, Registry
from mkframe.plugin.workload import Workload
from mkframe.settings.nodes import DeviceConfig, DeviceKind
from mkframe.text import one_line

_COLUMNS = ("engine", "workload", "devices", "precisions", "limits", "origin", "here")
_SMALL = 16
_WIDTH_OF_A_FILE = 200
_FAILED = "failed: "


def main(argv: list[str]) -> int:
    """Lists engines, and plugins that could not be loaded. Exit code 0."""
    plugin_paths, rest = split_plugin_paths(argv, os.environ)
    parser = Parser(prog="mkframe engines", description="Lists engines; plugin_path=DIR adds a folder of plugins.")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="a table for people, or one JSON document")
    options = parser.parse_args(list(rest))
    registry = load_registry(plugin_paths)
    device = resolve(DeviceConfig(kind=DeviceKind.AUTO)).device
    rows = list(_rows(registry, device))
    failures, ignored = _told(registry.failures), _told(registry.ignored)
    if options.format == "json":
        print(json.dumps({"device": device.name, "engines": rows, "failures": failures, "ignored": ignored}, indent=2))
    else:
        _show(rows, [*failures, *ignored], device)
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
    """Why an engine cannot run here at all: the device, or the reason that it gives for a small case in its first precision.
    `failed: ...` where it gives none."""
    engine = registry.engine(workload_id, engine_id)
    if device.kind not in engine.devices:
        return f"needs {' or '.join(engine.devices)}, this is a {device.kind} device"
    engine = engine_on(engine, device.kind)
    workload = registry.workload(workload_id)
    case = _small_case(workload)
    if case is None:
        return f"{_FAILED}workload {workload_id} takes no case that mkframe knows"
    precision = next(name for name in (workload.defaults.precision, *engine.precisions) if name in engine.precisions)
    try:
        return answer("unsupported()", check_reason, engine.unsupported, case, PRECISIONS[precision], device)
    except PluginError as error:
        return f"{_FAILED}{str(error).removeprefix('unsupported() failed: ')}"


def _small_case(workload: Workload) -> Any:
    """A case to ask about, or None: all axes alike and small, else the first that the workload itself brings."""
    small = {item.name: _SMALL for item in fields(workload.Case) if item.default is MISSING}
    for values in (small, *(case for cases in workload.shapes.values() for case in cases)):
        try:
            with asking():
                return workload.Case(**values)
        except Exception:  # the workload takes no such case
            continue
    return None


def _told(failures: Iterable[LoadFailure]) -> list[dict[str, str]]:
    return [{"id": failure.id, "origin": failure.origin, "error": failure.error} for failure in failures]


def _show(rows: list[dict[str, Any]], failures: list[dict[str, str]], device: Device) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console(_WIDTH_OF_A_FILE)
    table = Table(title=Text(f"engines on {one_line(device.name)}"), title_justify="left")
    for column in _COLUMNS:
        table.add_column(column)
    for row in rows:
        forms = row["engine"] if row["graph"] is None else f"{row['engine']}, {row['graph']}"
        words = (forms, row["workload"], " ".join(row["devices"]), " ".join(row["precisions"]), row["limits"], row["origin"], _here(row))
        table.add_row(*(Text(one_line(word)) for word in words))  # Text: what a plugin says is no markup
    out.print(table)
    for failure in failures:
        line = f"not loaded: {failure['id']} ({failure['origin']}): {failure['error']}"
        out.print(Text(line), soft_wrap=True)


def _here(row: dict[str, Any]) -> str:
    reason: str | None = row["unavailable"]
    if reason is None:
        return "yes"
    return reason if reason.startswith(_FAILED) else f"no: {reason}"
