"""Keys that the schema of energy reports does not name: others may add some, ours has none."""

from collections.abc import Iterator
from typing import Any

from mkframe.validate.energy_parts import Node, Path, energy_rule
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import ENERGY
from mkframe.validate.schemas import schema

RULE = "unknown-keys"
_REFERENCE = "#/$defs/"


def unknown_keys(document: Node) -> Iterator[Finding]:
    """Every key beside the named ones. Objects that the schema leaves open, or closes, are passed over: a key too many in a closed one
    is an error of the schema rule."""
    root = schema(ENERGY)
    say = error if isinstance(document.get("mkframe"), dict) else warning
    stack: list[tuple[Any, Any, Path]] = [(document, root, ())]
    while stack:
        value, found, path = stack.pop()
        node = _named(found, root)
        if isinstance(value, dict):
            properties = node.get("properties", {})
            others = node.get("additionalProperties")
            for key, child in value.items():
                if key in properties:
                    stack.append((child, properties[key], (*path, key)))
                elif isinstance(others, dict):
                    stack.append((child, others, (*path, key)))
                elif properties and others is None:
                    yield say(RULE, f"the key {shown(key)} is in no schema, and nothing checks it", (*path, key))
        elif isinstance(value, list) and "items" in node:
            stack += [(child, node["items"], (*path, index)) for index, child in enumerate(value)]


def _named(node: Node, root: Node) -> Node:
    """A schema without its reference. A key beside a `$ref` wins, as in mkframe.validate.schemas."""
    reference = node.get("$ref")
    return node if reference is None else {**root["$defs"][reference.removeprefix(_REFERENCE)], **node}


KEY_RULES = (
    energy_rule(RULE, unknown_keys, "keys that the schema does not name; an error in a report of ours", Severity.ERROR, Severity.WARNING),
)
