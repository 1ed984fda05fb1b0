"""The public JSON Schemas, loaded and compiled once.

Two tools hold a document against them. jsonschema-rs says yes or no, a hundred times faster and without loading jsonschema;
where it says no, jsonschema says what is wrong and where.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jsonschema_rs import Draft202012Validator as Acceptor

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

_REFERENCE = "#/$defs/"


@cache
def schema(format: str) -> dict[str, Any]:
    """The schema of a format (formats.FORMATS) as it is published."""
    text = resources.files("mkframe_schemas").joinpath(f"{format}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def acceptor(format: str) -> Acceptor:
    """The published schema of a format, compiled by jsonschema-rs. It fetches nothing."""
    return Acceptor(schema(format), offline=True)


def accepts(document: Any, accept: Acceptor) -> bool:
    """Whether `document` surely holds to a compiled schema. False where jsonschema has to look: it takes subclasses of Python's JSON
    types, which jsonschema-rs refuses to read."""
    try:
        return accept.is_valid(document)
    except ValueError:
        return False


@cache
def validator(format: str) -> "Draft202012Validator":
    """The validator of a format that locates errors.

    References are replaced by what they name (our schemas have no cycles), which saves jsonschema a look-up per value
    and gives each error the whole schema that it broke. What jsonschema-rs accepts below a key or in a list is passed over: one fault
    among a hundred thousand cases costs no more than that case.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    root = resolved(schema(format))
    assert not any(key == "prefixItems" for key in _keys(root)), "items begin behind prefixItems"
    below = _Below()
    words = {"items": below.items, "properties": below.properties, "additionalProperties": below.additional_properties}
    found: Draft202012Validator = extend(Draft202012Validator, words)(root)
    return found


class _Below:
    """jsonschema's keywords for what lies within a list or an object, with a quick look by jsonschema-rs first."""

    def __init__(self) -> None:
        self.acceptors: dict[int, Acceptor] = {}  # by the identity of a schema, which the validator keeps alive

    def items(self, validator: Any, schema: Any, instance: Any, _: Any) -> "Iterator[ValidationError]":
        if validator.is_type(instance, "array"):
            for index, item in enumerate(instance):
                if not self._accepted(item, schema):
                    yield from validator.descend(instance=item, schema=schema, path=index)

    def properties(self, validator: Any, properties: Any, instance: Any, _: Any) -> "Iterator[ValidationError]":
        if validator.is_type(instance, "object"):
            for key, schema in properties.items():
                if key in instance and not self._accepted(instance[key], schema):
                    yield from validator.descend(instance=instance[key], schema=schema, path=key, schema_path=key)

    def additional_properties(self, validator: Any, schema: Any, instance: Any, parent: Any) -> "Iterator[ValidationError]":
        from jsonschema import ValidationError

        if not validator.is_type(instance, "object"):
            return
        patterns = [re.compile(pattern) for pattern in parent.get("patternProperties", ())]
        others = [
            key for key in instance if key not in parent.get("properties", ()) and not any(pattern.search(key) for pattern in patterns)
        ]
        if schema is False and others:
            yield ValidationError("unknown keys")
        elif isinstance(schema, dict):
            for key in others:
                if not self._accepted(instance[key], schema):
                    yield from validator.descend(instance=instance[key], schema=schema, path=key)

    def _accepted(self, value: Any, schema: Any) -> bool:
        if not isinstance(value, dict | list):
            return False  # as quickly looked at as asked for
        if id(schema) not in self.acceptors:
            self.acceptors[id(schema)] = Acceptor(schema, offline=True)
        return accepts(value, self.acceptors[id(schema)])


def _keys(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _keys(child)


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
