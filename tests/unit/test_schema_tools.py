"""The published schemas in the hands of other tools. jsonschema-rs is one of another family: another language, another regex engine."""

import json
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from damage import damaged
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from report_generator import comparison_report, energy_report, own_energy_report
from seeds import seeds

from mkframe.validate.schema_rule import schema_findings
from mkframe.validate.schemas import validator

FORMATS = ("comparison", "energy", "device-card")
PUBLISHED = {
    name: json.loads(resources.files("mkframe_schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")) for name in FORMATS
}
RS = {name: jsonschema_rs.Draft202012Validator(PUBLISHED[name], offline=True) for name in FORMATS}
PYTHON = {name: Draft202012Validator(PUBLISHED[name]) for name in FORMATS}
DATA = Path(__file__).parent.parent / "data"
SEEDS = seeds()


@pytest.mark.parametrize("name", FORMATS)
def test_another_tool_takes_the_schema_itself_for_a_good_one(name: str) -> None:
    assert jsonschema_rs.meta.is_valid(PUBLISHED[name])


@pytest.mark.parametrize("path", sorted((DATA / "valid").glob("*.json")), ids=lambda path: path.stem)
def test_another_tool_accepts_the_recorded_reports(path: Path) -> None:
    assert RS["energy" if "energy" in path.stem else "comparison"].is_valid(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "name",
    ["boolean_rounds", "failed_with_times", "hash_with_newline", "missing_summaries", "no_engines", "no_shape_set", "upper_case_hash"],
)
def test_another_tool_refuses_what_the_schema_forbids(name: str) -> None:
    document = json.loads((DATA / "invalid" / f"{name}.json").read_text(encoding="utf-8"))
    (first, *_) = RS["comparison"].iter_errors(document)
    assert first.message


@given(st.integers(0, 2**32))
@settings(max_examples=50)
def test_generated_reports_hold_to_the_schema_in_both_tools(seed: int) -> None:
    random = Random(seed)
    for name, document in (
        ("comparison", comparison_report(random)),
        ("energy", energy_report(random)),
        ("energy", own_energy_report(random, on_edges=bool(seed % 2))),
    ):
        assert RS[name].is_valid(document)
        assert PYTHON[name].is_valid(document)


@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 2**32))
@settings(max_examples=150)
@example("comparison", 0)
def test_both_tools_and_the_rule_agree_on_damaged_reports(name: str, seed: int) -> None:
    document: Any = damaged(SEEDS[name], Random(seed))
    for format in FORMATS:
        answer = PYTHON[format].is_valid(document)
        assert RS[format].is_valid(document) is answer
        assert validator(format).is_valid(document) is answer
        assert bool(schema_findings(document, format)) is not answer


@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 2**32))
@settings(max_examples=60)
def test_the_quick_look_hides_no_violation(name: str, seed: int) -> None:
    """Places and keywords of all violations are those that jsonschema alone finds."""
    document: Any = damaged(SEEDS[name], Random(seed), most=8)
    format = "energy" if name in ("energy", "verify-only") else "comparison"
    plain = {(tuple(problem.absolute_path), str(problem.validator)) for problem in PYTHON[format].iter_errors(document)}
    quick = {(tuple(problem.absolute_path), str(problem.validator)) for problem in validator(format).iter_errors(document)}
    assert quick == plain


@pytest.mark.parametrize(
    "value", [2**63 - 1, 2**63, 2**64, 10**300, -(10**300), 1.0, 1e300, 5e-324, -0.0, True, 9007199254740993, 9223372036854775807.0]
)
def test_both_tools_agree_on_odd_numbers(value: Any) -> None:
    for format, document in (("comparison", SEEDS["minimal"]), ("energy", SEEDS["energy"])):
        for key in ("rounds", "samples_per_round", "verified_at_utc", "scope"):
            assert RS[format].is_valid(document | {key: value}) is PYTHON[format].is_valid(document | {key: value})
    provenance = SEEDS["energy"]["provenance"] | {"benchmark_dataset_seed": value}
    changed = SEEDS["energy"] | {"provenance": provenance}
    assert RS["energy"].is_valid(changed) is PYTHON["energy"].is_valid(changed)
