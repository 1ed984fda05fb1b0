"""From a plain composed configuration to a checked `Config`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mkframe.errors import ConfigError, SelectionError
from mkframe.plugin.registry import Registry, choices
from mkframe.settings.contracts import check_card, check_precision
from mkframe.settings.nodes import UNTOLD, UNTOLD_OF_DEVICE, Config
from mkframe.settings.typed import typed


def config_of(container: Mapping[str, Any], registry: Registry, plugin_paths: Sequence[str] = ()) -> Config:
    """Types, the contract of the precision, the rates of a card, and empty selections. Raises ConfigError or SelectionError.

    `plugin_paths` are the folders that were really read; a configuration file that names others is refused, because
    plugins are loaded before it is.
    """
    values = {"engine": {}, "shape": {}, **container}
    if values.pop("plugin_path", None):
        raise ConfigError("plugin_path: can only be given on the command line (plugin_path=DIR) or in MKFRAME_PLUGIN_PATH")
    config = typed(Config, values)
    _check_selected("engine", config.engine, registry.engine_ids(config.workload.id))
    _check_selected("shape", config.shape, ())
    check_precision(config.precision)
    if config.device.card is not None:
        check_card(config.device.card)
    return replace(config, plugin_path=tuple(plugin_paths))


def _check_selected(group: str, selected: Mapping[str, Any], existing: Sequence[str]) -> None:
    if not selected:
        listing = f"; {choices('', existing)}" if existing else ""
        raise SelectionError(f"{group}: nothing is selected; name at least one, as in {group}=NAME{listing}")


def public(config: Config) -> dict[str, Any]:
    """The configuration for the report: JSON types, without folders, plugin paths and the device's UUID."""
    document: dict[str, Any] = _json(asdict(config))
    for name in UNTOLD:
        del document[name]
    for name in UNTOLD_OF_DEVICE:
        del document["device"][name]
    document["targets"] = config.targets.id
    for engine in document["engine"].values():
        if engine["select"] is None:
            del engine["select"]
    return document


def from_public(document: Mapping[str, Any]) -> Config:
    """The configuration that `public` made `document` of, without its targets. Raises ConfigError."""
    targets = {"id": document["targets"], "source": "", "groups": []}
    return typed(Config, {**document, "targets": targets})


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return str(value) if isinstance(value, str) else value
