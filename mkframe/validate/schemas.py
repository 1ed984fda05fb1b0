"""The public JSON Schemas, loaded and compiled once."""

import json
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator

_REFERENCE = "#/$defs/"


@cache
def schema(format: str) -> dict[str, Any]:
    """The schema of a format (formats.FORMATS) as it is published."""
    text = resources.files("mkframe_schemas").joinpath(f"{format}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def validator(format: str) -> Draft202012Validator:
    """The validator of a format.

    References are replaced by what they name (our schemas have no cycles), which saves jsonschema a look-up per value
    and gives each error the whole schema that it broke.
    """
    return Draft202012Validator(resolved(schema(format)))


def resolved(root: dict[str, Any]) -> dict[str, Any]:
    """`root` without references. A key beside a `$ref` wins over the same key of the definition."""
    definitions = root.get("$defs", {})

    def inline(node: Any) -> Any:
        if isinstance(node, list):
            return [inline(item) for item in node]
        if not isinstance(node, dict):
            return node
        plain = {key: inline(value) for key, value in node.items() if key not in ("$ref", "$defs")}
        if "$ref" not in node:
            return plain
        assert node["$ref"].startswith(_REFERENCE), node["$ref"]
        return inline(definitions[node["$ref"].removeprefix(_REFERENCE)]) | plain

    result: dict[str, Any] = inline(root)
    return result
