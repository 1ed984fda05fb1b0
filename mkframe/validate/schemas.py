"""The public JSON Schemas, loaded and compiled once.

Two tools hold a document against them. jsonschema-rs says yes or no, a hundred times faster and without loading jsonschema;
where it says no, jsonschema says what is wrong and where.
"""

import json
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
    and gives each error the whole schema that it broke. Items of a list that jsonschema-rs accepts are passed over: one fault among
    a hundred thousand cases costs no more than that case.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    acceptors: dict[int, Acceptor] = {}  # by the identity of a schema, which the validator keeps alive

    def items(validator: Any, schema: Any, instance: Any, _: Any) -> "Iterator[ValidationError]":
        if not validator.is_type(instance, "array"):
            return
        if id(schema) not in acceptors:
            acceptors[id(schema)] = Acceptor(schema, offline=True)
        for index, item in enumerate(instance):
            if not accepts(item, acceptors[id(schema)]):
                yield from validator.descend(instance=item, schema=schema, path=index)

    root = resolved(schema(format))
    assert not any(key == "prefixItems" for key in _keys(root)), "items begin behind prefixItems"
    found: Draft202012Validator = extend(Draft202012Validator, {"items": items})(root)
    return found


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
