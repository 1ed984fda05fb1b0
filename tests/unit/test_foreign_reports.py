"""validate raises no error on reports of other systems that hold to the schemas and their descriptions (foreign_reports.py)."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from foreign_reports import foreign_comparison, foreign_energy, written
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.validate import check_document, validate

COUNT = 200


@pytest.mark.parametrize("make", [foreign_comparison, foreign_energy])
@given(st.integers(0, 2**64))
@settings(max_examples=150)
def test_a_foreign_report_raises_no_alarm(make: Callable[[Random], dict[str, Any]], seed: int) -> None:
    findings = check_document(make(Random(seed))).findings
    assert [finding for finding in findings if finding.severity == "E"] == []


@pytest.mark.parametrize("seed", range(40))
def test_a_foreign_file_raises_no_alarm_however_its_json_is_written(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    document = (foreign_comparison, foreign_energy)[seed % 2](random)
    (tmp_path / "report.json").write_bytes(written(document, random))
    result = validate(tmp_path / "report.json")
    assert [finding for finding in result.findings if finding.severity == "E"] == []
    assert result.exit_code == 0
    assert result.format == ("comparison", "energy")[seed % 2]


def test_foreign_reports_vary() -> None:
    comparisons, energies = ([make(Random(seed)) for seed in range(COUNT)] for make in (foreign_comparison, foreign_energy))
    results = [
        [result for cases in document.values() if isinstance(cases, list) for case in cases for result in _engines(case)]
        for document in comparisons
    ]
    medians = [result["stream_summary"]["p50_ms"] for found in results for result in found if result["passed"]]
    assert {any(result["passed"] for result in found) for found in results} == {True, False}
    assert 0 in medians
    assert {type(document["rounds"]) for document in comparisons} == {int, float}
    assert {"plots" in document for document in comparisons} == {True, False}
    assert any(document["rounds"] * document["samples_per_round"] == 1 for document in comparisons)
    numbers = [[one["round"] for one in document["rounds"]] for document in energies if "rounds" in document]
    assert any(len(found) > 1 and found == sorted(found, reverse=True) for found in numbers)
    assert any(found != list(range(len(found))) and found == sorted(found) for found in numbers)
    assert {document.get("summary", "absent") is None for document in energies} == {True, False}
    reads = [one["measurement_end"]["energy_mj"] for document in energies for one in document.get("rounds", ())]
    assert {float(energy_mj).is_integer() for energy_mj in reads} == {True, False}
    assert {document["validation"]["passed"] for document in energies} == {True, False}
    texts = [written(document, Random(seed)) for seed, document in enumerate(comparisons)]
    assert {b"\r\n" in text for text in texts} == {b"E+0" in text for text in texts} == {True, False}
    assert [json.loads(text) for text in texts] == comparisons


def _engines(case: object) -> list[dict[str, object]]:
    found = case.get("engines") if isinstance(case, dict) else None
    return [result for result in found.values() if isinstance(result, dict)] if isinstance(found, dict) else []
