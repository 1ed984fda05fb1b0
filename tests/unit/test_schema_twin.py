"""mkframe/model/report.py and schemas/comparison.schema.json say the same, field by field and in both directions."""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, make_dataclass
from enum import StrEnum
from typing import Any

import pytest

from mkframe.model.device_card import MeasuredCard
from mkframe.model.report import CaseResult, ComparisonReport, EngineResult, FrameworkBlock, Summary
from mkframe.validate.schemas import resolved, schema

OPEN = (CaseResult, EngineResult, Summary)  # parts of the recorded form: other systems may add keys
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def differences(model: Any, node: dict[str, Any], path: str = "$", closed: bool = False) -> list[str]:
    """Every difference between a type and the schema of its values."""
    model, null = _split_null(model)
    names = node.get("type", [])
    allowed = {names} if isinstance(names, str) else set(names)
    found = [] if null == ("null" in allowed) else [f"{path}: null"]
    allowed -= {"null"}
    if model in SCALARS:
        return found + _expect(allowed, SCALARS[model], path)
    if isinstance(model, type) and issubclass(model, StrEnum):
        members = set(model)
        return found + _expect(allowed, "string", path) + ([] if set(node.get("enum", [])) == members else [f"{path}: enum"])
    if is_dataclass(model):
        return found + _expect(allowed, "object", path) + _object_differences(model, node, path, closed)
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin is tuple:
        assert arguments[1] is Ellipsis
        return found + _expect(allowed, "array", path) + differences(arguments[0], node.get("items", {}), f"{path}[]", closed)
    assert origin is Mapping, f"{path}: no rule for {model}"
    found += _expect(allowed, "object", path)
    values = node.get("additionalProperties")
    if arguments[1] is Any:
        return found + ([] if values is None else [f"{path}: values"])
    return found + ([f"{path}: values"] if values is None else differences(arguments[1], values, f"{path}.*", closed))


def _object_differences(model: Any, node: dict[str, Any], path: str, closed: bool) -> list[str]:
    hints = typing.get_type_hints(model)
    wanted = {f.name: hints[f.name] for f in fields(model)}
    properties = node.get("properties", {})
    found = [f"{path}.{name}: only in the model" for name in wanted.keys() - properties.keys()]
    found += [f"{path}.{name}: only in the schema" for name in properties.keys() - wanted.keys()]
    absent = {f.name for f in fields(model) if f.default is None} if model is EngineResult else set()
    later = {name for name, node in properties.items() if "x-since" in node}  # reports of the schema before that lack it
    found += [f"{path}.{name}: required" for name in set(node.get("required", [])) ^ (wanted.keys() - absent - later)]
    is_closed = node.get("additionalProperties") is False or node.get("unevaluatedProperties") is False
    if is_closed != (closed or model not in OPEN):
        found.append(f"{path}: closed")
    for name in wanted.keys() & properties.keys():
        field_type = _split_null(wanted[name])[0] if name in absent else wanted[name]
        found += differences(field_type, properties[name], f"{path}.{name}", closed or model not in OPEN)
    return found


def _split_null(model: Any) -> tuple[Any, bool]:
    if typing.get_origin(model) in (types.UnionType, typing.Union):
        rest = [argument for argument in typing.get_args(model) if argument is not type(None)]
        assert len(rest) == 1, model
        return rest[0], True
    return model, False


def _expect(allowed: set[str], name: str, path: str) -> list[str]:
    return [] if allowed == {name} else [f"{path}: type {allowed} is not {name}"]


COMPARISON = resolved(schema("comparison"))
RECORDED_ONLY = {"compiler"}  # written by other systems only
NULLABLE_TOP = {"source_commit"}


def test_the_framework_block_has_the_same_fields_and_types_as_its_schema() -> None:
    assert differences(FrameworkBlock, COMPARISON["properties"]["mkframe"]) == []


def test_the_top_level_has_the_same_fields_and_types_as_its_schema() -> None:
    hints = typing.get_type_hints(ComparisonReport)
    sets = hints.pop("sets")
    properties = COMPARISON["properties"]
    assert hints.keys() == properties.keys() - RECORDED_ONLY - {"development", "assessment"}
    assert set(COMPARISON["required"]) | set(COMPARISON["dependentRequired"]["mkframe"]) | {"mkframe"} == hints.keys()
    found = []
    for name in hints.keys() - {"mkframe", "sanitizers"}:
        found += differences(hints[name], properties[name], f"$.{name}")
    assert hints["sanitizers"] is str
    assert "string" in properties["sanitizers"]["type"]
    case_list = typing.get_args(sets)[1]
    for node in (properties["development"], properties["assessment"], COMPARISON["additionalProperties"]["then"]):
        found += differences(case_list, node, "$.SET")
    assert found == []


def test_the_device_card_has_the_same_fields_and_types_as_its_schema() -> None:
    assert differences(MeasuredCard, resolved(schema("device-card"))) == []


@pytest.mark.parametrize(
    ("model", "node"),
    [(FrameworkBlock, COMPARISON["properties"]["mkframe"]), (MeasuredCard, schema("device-card"))],
    ids=["report", "card"],
)
def test_constants_are_the_models(model: Any, node: dict[str, Any]) -> None:
    default = next(f.default for f in fields(model) if f.name == "format")
    assert default is not MISSING
    assert node["properties"]["format"]["const"] == default


class _Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inner:
    size: int


_GOOD = {
    "type": "object",
    "required": ["inner", "colour", "notes"],
    "properties": {
        "inner": {
            "type": ["object", "null"],
            "required": ["size"],
            "properties": {"size": {"type": "integer"}},
            "additionalProperties": False,
        },
        "colour": {"type": "string", "enum": ["red"]},
        "notes": {"type": "array", "items": {"type": "number"}},
    },
    "additionalProperties": False,
}
_FIELDS = [("inner", _Inner | None), ("colour", _Colour), ("notes", tuple[float, ...])]


def _planted(*path: str, value: Any) -> dict[str, Any]:
    changed: dict[str, Any] = {**_GOOD}
    node = changed
    for key in path[:-1]:
        node[key] = {**node[key]}
        node = node[key]
    node[path[-1]] = value
    return changed


def test_the_comparison_of_model_and_schema_accepts_equal_ones() -> None:
    assert differences(make_dataclass("Good", _FIELDS), _GOOD) == []


@pytest.mark.parametrize(
    "node",
    [
        _planted("required", value=["inner", "colour"]),
        _planted("additionalProperties", value=True),
        _planted("properties", "colour", "enum", value=["red", "blue"]),
        _planted("properties", "notes", "items", value={"type": "integer"}),
        _planted("properties", "inner", "type", value="object"),
        _planted("properties", "inner", "properties", value={}),
        _planted("properties", "inner", "properties", "size", value={"type": ["integer", "null"]}),
        _planted("properties", "more", value={"type": "string"}),
    ],
)
def test_the_comparison_of_model_and_schema_sees_a_planted_difference(node: dict[str, Any]) -> None:
    assert differences(make_dataclass("Good", _FIELDS), node)


def test_the_comparison_of_model_and_schema_sees_a_field_that_the_schema_lacks() -> None:
    assert differences(make_dataclass("More", [*_FIELDS, ("more", str)]), _GOOD)
