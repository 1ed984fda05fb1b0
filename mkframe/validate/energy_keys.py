"""Keys that the schema of energy reports does not name: others may add some, ours has none."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from mkframe.validate.energy_parts import Node, Path, energy_rule
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import ENERGY
from mkframe.validate.schemas import resolved, schema

RULE = "unknown-key"


def unknown_keys(document: Node) -> Iterator[Finding]:
    """Every key beside the named ones. Objects that the schema leaves open, or closes, are passed over: a key too many in a closed one
    is an error of the schema rule."""
    say = error if isinstance(document.get("mkframe"), dict) else warning
    stack: list[tuple[Any, Any, Path]] = [(document, _schema(), ())]
    while stack:
        value, node, path = stack.pop()
        if isinstance(value, list):
            below = node.get("items", {})
            stack += [(child, below, (*path, index)) for index, child in enumerate(value) if isinstance(child, dict | list)]
            continue
        properties, others = node.get("properties", {}), node.get("additionalProperties")
        for key, child in value.items():
            below = properties.get(key, others)
            if below is None:
                if properties:
                    yield say(RULE, f"the key {shown(key)} is in no schema, and nothing checks it", (*path, key))
            elif isinstance(below, dict) and isinstance(child, dict | list):
                stack.append((child, below, (*path, key)))


@cache
def _schema() -> Node:
    return resolved(schema(ENERGY))


KEY_RULES = (
    energy_rule(RULE, unknown_keys, "keys that the schema does not name; an error in a report of ours", Severity.ERROR, Severity.WARNING),
)
