"""The published schemas as documents: valid, versioned, described, and what they accept and refuse on their own.

Here jsonschema reads the schemas as they lie in schemas/, with its own handling of references.
"""

import copy
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mkframe.validate import check_schema
from mkframe.validate.finding import pointer
from mkframe.validate.schemas import resolved, validator

DATA = Path(__file__).parent.parent / "data"
FORMATS = ("comparison", "energy")
SCHEMAS = {
    name: json.loads(resources.files("mkframe_schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")) for name in FORMATS
}
COMPARISON = json.loads((DATA / "valid" / "residual-mlp-rtx3090.json").read_text())
ENERGY = json.loads((DATA / "valid" / "qda-energy-a100.json").read_text())
UNITS = {
    "_ms": "ms",
    "_s": "s",
    "_mj": "mJ",
    "_w": "W",
    "_bytes": "bytes",
    "bytes_per_s": "bytes/s",
    "flops_per_s": "1/s (operations)",
    "_share": "1 (ratio)",
    "_mhz": "MHz",
    "_c": "degrees Celsius",
    "_mj_median": "mJ",
    "_ms_median": "ms",
    "_mj_sample_sd": "mJ",
}
HASH = "ab" * 32


def _valid(name: str, document: Any) -> bool:
    return bool(Draft202012Validator(SCHEMAS[name]).is_valid(document))


def _named(schema: dict[str, Any], path: str = "#") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(where, name, schema) of every declared property and of every value of an open map or list."""
    for word in ("properties", "patternProperties", "$defs"):
        for name, node in schema.get(word, {}).items():
            where = f"{path}/{word}/{name}"
            if word != "$defs":
                yield where, name, node
            yield from _named(node, where)
    for word in ("items", "additionalProperties"):
        node = schema.get(word)
        if isinstance(node, dict) and "if" not in node:
            yield f"{path}/{word}", "", node
            yield from _named(node, f"{path}/{word}")


FIELDS = [(f"{name}{where}", key, node) for name in FORMATS for where, key, node in _named(SCHEMAS[name])]


VERSIONS = {"comparison": "1.2.1", "energy": "1.1.0"}


@pytest.mark.parametrize("name", FORMATS)
def test_the_schema_is_valid_and_versioned(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMAS[name]["$id"] == f"urn:mkframe:schema:{name}:{VERSIONS[name]}"


def test_every_field_has_a_description() -> None:
    bare = []
    for where, _, node in FIELDS:
        target = SCHEMAS[where.split("#")[0]]["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
        if not (node.get("description") or target.get("description")):
            bare.append(where)
    assert len(FIELDS) > 200
    assert bare == []


def test_every_number_names_its_unit() -> None:
    numeric = [(where, key, node) for where, key, node in FIELDS if {"number", "integer"} & set(_types(node))]
    assert len(numeric) > 80
    for where, key, node in numeric:
        unit = re.search(r"Unit: (.+)\.$", node["description"])
        assert unit, where
        suffix = next((s for s in sorted(UNITS, key=len, reverse=True) if key.endswith(s)), None)
        if suffix:
            assert unit[1] == UNITS[suffix], where


def _types(node: dict[str, Any]) -> list[str]:
    names = node.get("type", [])
    return [names] if isinstance(names, str) else names


@pytest.mark.parametrize("name", FORMATS)
def test_every_reference_exists_and_only_annotations_and_closing_stand_beside_it(name: str) -> None:
    def references(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node
            for item in node.values():
                yield from references(item)
        elif isinstance(node, list):
            for item in node:
                yield from references(item)

    found = list(references(SCHEMAS[name]))
    assert found
    for node in found:
        assert node["$ref"].removeprefix("#/$defs/") in SCHEMAS[name]["$defs"]
        assert node.keys() <= {"$ref", "description", "x-rules", "unevaluatedProperties"}


def test_resolving_leaves_no_reference_and_keeps_what_stands_beside_one() -> None:
    root = {"$defs": {"a": {"type": "integer", "description": "old"}, "b": {"items": {"$ref": "#/$defs/a"}}}}
    whole = resolved(root | {"properties": {"x": {"$ref": "#/$defs/b"}, "y": {"$ref": "#/$defs/a", "description": "new"}}})
    assert whole == {
        "properties": {"x": {"items": {"type": "integer", "description": "old"}}, "y": {"type": "integer", "description": "new"}}
    }


@pytest.mark.parametrize(("name", "document"), [("comparison", COMPARISON), ("energy", ENERGY)])
def test_the_recorded_report_is_accepted_unmodified(name: str, document: dict[str, Any]) -> None:
    assert _valid(name, document)


def _without(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in keys}


def _changed(document: dict[str, Any], *path: Any, value: Any = None, drop: bool = False) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    node: Any = changed
    for key in path[:-1]:
        node = node[key]
    if drop:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return changed


ENGINE = ("development", 0, "engines", "persistent")
OTHER_SET = _without(COMPARISON, "development", "assessment") | {"decode": COMPARISON["development"][:1]}
VERIFY_ONLY = _without(ENERGY, "rounds", "summary", "completed_at_utc")
TIMES = {"count": 4, "p50_ms": 1.0, "p95_ms": 1.0, "min_ms": 1.0, "max_ms": 1.0, "mean_ms": 1.0}
VALUES = {"max_abs_error": 0.0, "mean_abs_error": 0.0, "violations": 0, "elements": 4, "rtol": 1e-4, "atol": 1e-5, "passed": True}
OUR_ENERGY = {
    "timing": {"protocol": "replay", "rounds": 2, "samples_per_round": 2, "stream_summary": TIMES, "host_summary": TIMES},
    "energy": {
        "protocol": "nvml_edge_aligned",
        "verdict": "below_resolution",
        "net_mj": -0.1,
        "u_mj": 0.2,
        "sham_mj": -0.01,
        "reference": "unchecked",
        "rounds": [{"run_s": 10.5}],
    },
    "session": {"order": ["a", "b"]},
    "invalid_rounds": [{"round": 3, "why": "the counter went back"}],
}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("comparison", _without(COMPARISON, "compiler", "sanitizers", "source_replay_checks")),
        ("comparison", COMPARISON | {"sanitizers": "not run"}),
        ("comparison", COMPARISON | {"sanitizers": {"memcheck": 0, "version": "2026.1"}}),
        ("comparison", COMPARISON | {"source_commit": None}),
        ("comparison", COMPARISON | {"timing": "per_call"}),
        ("comparison", COMPARISON | {"operator_note": "ran at night", "plots": [], "more": [{"shape": "round"}]}),
        ("comparison", _changed(COMPARISON, *ENGINE, drop=True)),
        (
            "comparison",
            _changed(COMPARISON, "development", 0, "engines", "someone-elses", value=COMPARISON["development"][0]["engines"]["persistent"]),
        ),
        ("comparison", _changed(COMPARISON, *ENGINE, value={"passed": False, "replay_changed_input": False})),
        ("comparison", _changed(COMPARISON, *ENGINE, "note", value="kept")),
        ("comparison", _changed(COMPARISON, "development", 0, "shape", value={"train": 10, "classes": 3})),
        ("comparison", _without(COMPARISON, "assessment")),
        ("comparison", OTHER_SET),
        ("energy", VERIFY_ONLY),
        ("energy", ENERGY | {"summary": None}),
        ("energy", ENERGY | {"summary": None, "rounds": []}),
        ("energy", ENERGY | {"note": "kept"}),
        ("energy", ENERGY | {"verified_at_utc": "2026-09-15T11:52:24.125+00:00"}),
        ("energy", _changed(ENERGY, "rounds", 0, "adjusted_mj", value=-0.5)),
        ("energy", _changed(ENERGY, "summary", "adjusted_mj_sample_sd", value=None)),
        ("energy", ENERGY | {"hardware": ENERGY["hardware"] | {"uuid": None, "multiprocessors": None, "compute_capability": None}}),
        ("energy", ENERGY | {"kernel": dict.fromkeys(ENERGY["kernel"])}),
        ("energy", ENERGY | {"validation": VALUES}),
        ("energy", ENERGY | {"mkframe": OUR_ENERGY}),
    ],
)
def test_variants_are_accepted(name: str, document: dict[str, Any]) -> None:
    assert [problem.message for problem in Draft202012Validator(SCHEMAS[name]).iter_errors(document)] == []


@pytest.mark.parametrize("key", SCHEMAS["comparison"]["required"])
def test_a_required_key_of_a_comparison_is_missed(key: str) -> None:
    assert not _valid("comparison", _without(COMPARISON, key))


@pytest.mark.parametrize("key", ENERGY.keys())
def test_every_key_of_a_full_energy_report_is_missed(key: str) -> None:
    assert not _valid("energy", _without(ENERGY, key))


INTEGERS = [("rounds",), ("samples_per_round",), ("development", 0, "shape", "rows"), (*ENGINE, "stream_summary", "count")]


@pytest.mark.parametrize("path", INTEGERS)
@pytest.mark.parametrize("value", [True, 0, -1, 1.5, "5", None, [5]])
def test_counts_and_sizes_are_integers_from_one_and_never_booleans(path: tuple[Any, ...], value: Any) -> None:
    assert not _valid("comparison", _changed(COMPARISON, *path, value=value))


@pytest.mark.parametrize("hash_", [HASH[:-1], HASH + "a", HASH + "\n", HASH.upper(), "g" * 64, "", 1, None, " " + HASH[1:]])
def test_a_hash_is_exactly_64_lower_case_hex_digits(hash_: Any) -> None:
    assert _valid("comparison", COMPARISON | {"source_sha256": {"a": HASH}})
    assert not _valid("comparison", COMPARISON | {"source_sha256": {"a": hash_}})
    assert not _valid("energy", _changed(ENERGY, "provenance", "runner_sha256", value=hash_))


@pytest.mark.parametrize("commit", ["a" * 39, "a" * 41, "a" * 40 + "\n", "A" * 40, "", 0])
def test_a_commit_is_40_lower_case_hex_digits(commit: Any) -> None:
    assert not _valid("comparison", COMPARISON | {"source_commit": commit})
    assert not _valid("comparison", _changed(COMPARISON, "compiler", "source_commit", value=commit))


@pytest.mark.parametrize(
    "date", ["2026-13-01", "2026-00-10", "2026-10-32", "26-10-05", "2026-10-05\n", "2026/10/05", "\uff12026-10-05", 20261005]
)
def test_a_date_is_written_year_month_day(date: Any) -> None:
    assert not _valid("comparison", COMPARISON | {"recorded_on": date})


@pytest.mark.parametrize(
    "time",
    [
        "2026-09-15T24:00:00Z",
        "2026-09-15T11:60:00Z",
        "2026-09-15T11:52:24",
        "2026-09-15 11:52:24Z",
        "2026-09-15T11:52:24Z\n",
        "2026-09-15T11:52:24+02:00",
        0,
    ],
)
def test_a_time_is_utc(time: Any) -> None:
    assert not _valid("energy", ENERGY | {"completed_at_utc": time})


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("comparison", _changed(COMPARISON, *ENGINE, "passed", value=False)),
        ("comparison", _changed(COMPARISON, *ENGINE, "passed", value=1)),
        ("comparison", _changed(COMPARISON, *ENGINE, "host_summary", drop=True)),
        ("comparison", _changed(COMPARISON, *ENGINE, "host_summary", value=None)),
        ("comparison", _changed(COMPARISON, *ENGINE, "replay_changed_input", value="yes")),
        ("comparison", _changed(COMPARISON, *ENGINE, "stream_summary", "p50_ms", value=-0.001)),
        ("comparison", _changed(COMPARISON, *ENGINE, "stream_summary", "p50_ms", drop=True)),
        ("comparison", _changed(COMPARISON, "development", 0, "engines", value={})),
        ("comparison", _changed(COMPARISON, "development", 0, "shape", value={})),
        ("comparison", _without(COMPARISON, "development", "assessment")),
        ("comparison", COMPARISON | {"development": []}),
        ("comparison", COMPARISON | {"mkframe": {}}),
        ("comparison", COMPARISON | {"mkframe": None}),
        ("comparison", _changed(OTHER_SET, "decode", 0, "shape", "rows", value=0)),
        ("comparison", _changed(OTHER_SET, "decode", 0, "engines", drop=True)),
        ("comparison", _changed(COMPARISON, "compiler", "small_gpu_output", "violations", value=-1)),
        ("comparison", _changed(COMPARISON, "compiler", "small_gpu_output", "elements", drop=True)),
        ("energy", _changed(ENERGY, "rounds", 0, "repeats", value=0)),
        ("energy", _changed(ENERGY, "rounds", 0, "repeats", value=True)),
        ("energy", _changed(ENERGY, "rounds", 0, "gross_mj", value=-1e-9)),
        ("energy", _changed(ENERGY, "rounds", 0, "idle_before", "start", "time_s", drop=True)),
        ("energy", _changed(ENERGY, "validation", "total", drop=True)),
        ("energy", _changed(ENERGY, "validation", "draws", 0, "graph_replays_equal_eager", 1, value=1)),
        ("energy", _changed(ENERGY, "hardware", "compute_capability", value=[8])),
        ("energy", _changed(ENERGY, "provenance", "payload_manifest", "draws", 0, "arrays", "x", "dtype", value="float")),
        ("energy", ENERGY | {"validation": _without(VALUES, "elements")}),
        ("energy", ENERGY | {"mkframe": _changed(OUR_ENERGY, "energy", "verdict", value="proved")}),
        ("energy", ENERGY | {"mkframe": _changed(OUR_ENERGY, "timing", "extra", value=1)}),
        ("energy", ENERGY | {"mkframe": _changed(OUR_ENERGY, "invalid_rounds", value=[{"round": 3}])}),
    ],
)
def test_faults_are_refused(name: str, document: dict[str, Any]) -> None:
    assert not _valid(name, document)
    assert not validator(name).is_valid(document)


def _paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, value in items for place in [(*path, key), *_paths(value, (*path, key))]]


PLACES = {
    "comparison": (COMPARISON, _paths(COMPARISON)),
    "energy": (ENERGY | {"mkframe": OUR_ENERGY}, _paths(ENERGY | {"mkframe": OUR_ENERGY})),
}
VALUES_OF_ANY_KIND = st.sampled_from([None, True, False, 0, 1, -1, 0.5, -0.5, "", "x", HASH, [], {}, [1], {"a": 1}, [{}], "2026-01-01"])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FORMATS), st.data())
def test_our_findings_agree_with_jsonschema_on_the_published_file(name: str, data: st.DataObject) -> None:
    document, places = PLACES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places))
        try:
            document = _changed(document, *place, value=data.draw(VALUES_OF_ANY_KIND), drop=data.draw(st.booleans()))
        except (KeyError, IndexError, TypeError):  # an earlier change has taken the place away
            continue
    result = check_schema(document)
    if result.format == name:
        published = list(Draft202012Validator(SCHEMAS[name]).iter_errors(document))
        assert bool(result.findings) == bool(published)
        assert {pointer(problem.absolute_path) for problem in published} <= {
            finding.pointer.rpartition("/")[0] if "is unknown here" in finding.message else finding.pointer for finding in result.findings
        }
