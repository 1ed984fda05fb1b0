"""The values of a configuration in a report of ours: keys, types and ranges are those that a run accepts."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_type_hints

from mkframe.errors import ConfigError
from mkframe.seeds import seed_of
from mkframe.settings.contracts import check_card, check_device, check_precision
from mkframe.settings.nodes import UNTOLD, UNTOLD_OF_DEVICE, Config
from mkframe.settings.timing import check_timing
from mkframe.settings.typed import typed
from mkframe.text import printable
from mkframe.validate.block_parts import block_of
from mkframe.validate.comparison_parts import Path
from mkframe.validate.finding import Finding, Severity, error
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_CONFIG: Path = ("mkframe", "config")
_TARGETS = "targets"
_PARTS = {name: kind for name, kind in get_type_hints(Config).items() if name not in UNTOLD} | {_TARGETS: str}
"""Key -> its type. A report tells only the id of targets."""
_LONGEST = 200


def settings(subject: Subject) -> Iterator[Finding]:
    """Every part of the configuration is what a run accepts: at most one finding for each part."""
    block = block_of(subject.document)
    if not block:
        return
    config, cuda = _whole_numbers(block["config"]), block["device"]["kind"] == "cuda"
    for name in dict.fromkeys((*_PARTS, *config)):
        if name not in config and name != _TARGETS:
            continue  # the rule `config` says so
        try:
            _check(name, config, cuda)
        except ConfigError as refusal:
            message = printable(str(refusal))
            yield error("settings", message if len(message) <= _LONGEST else f"{message[:_LONGEST]}...", _place(config, str(refusal)))


def _check(name: str, config: dict[str, Any], cuda: bool) -> None:
    """Raises ConfigError for a key that no report has, and for what a run refuses."""
    if name not in _PARTS:
        raise ConfigError(f"{name}: no such key; there are: {', '.join(_PARTS)}")
    if name not in config:
        raise ConfigError(f"{name}: missing")
    value = typed(_PARTS[name], config[name], name)
    if name == "device":
        for key in UNTOLD_OF_DEVICE:
            if key in config[name]:
                raise ConfigError(f"{name}.{key}: no report holds this key")
    _BEYOND_TYPES.get(name, _nothing)(value, cuda)


def _nothing(_: Any, __: bool) -> None:
    """Whose types say everything."""


def _of_device(value: Any, _: bool) -> None:
    check_device(value)
    if value.card is not None:
        check_card(value.card)


def _of_shapes(value: Mapping[str, Mapping[str, Any]], _: bool) -> None:
    for name, node in value.items():
        seed_of(name, node.get("seed"))


_BEYOND_TYPES: Mapping[str, Callable[[Any, bool], None]] = MappingProxyType(
    {
        "device": _of_device,
        "precision": lambda value, _: check_precision(value),
        "shape": _of_shapes,
        "timing": lambda value, cuda: check_timing(value, cuda=cuda),
    }
)


def _whole_numbers(node: Any) -> Any:
    """An integer may be written as 3.0 in a report, and a run knows it as 3."""
    if isinstance(node, dict):
        return {key: _whole_numbers(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_whole_numbers(value) for value in node]
    return int(node) if isinstance(node, float) and node.is_integer() else node


def _place(config: dict[str, Any], message: str) -> Path:
    """The deepest value on the way of the dotted key that a message begins with."""
    node: Any = config
    place: list[str | int] = list(_CONFIG)
    for step in message.partition(": ")[0].split("."):
        if not isinstance(node, dict) or step not in node:
            break
        place.append(step)
        node = node[step]
    return tuple(place)


SETTING_RULES: tuple[Rule, ...] = (
    Rule(
        id="settings",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="keys, types and values of the configuration are those that a run accepts",
        check=settings,
        needs_schema=True,
    ),
)
