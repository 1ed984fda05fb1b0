"""validate: the samples file beside a report of ours."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_reports import document, foreign, report, samples

from mkframe.validate import Finding, Severity, check_document, validate, validate_stream

CELLS = {(0, "torch-cublas"): samples(20.0, seed=1)}


def side_file(path: Path) -> Path:
    (file,) = path.parent.glob("samples-*.npz")
    return file


def only(findings: tuple[Finding, ...]) -> str:
    (finding,) = findings
    assert (finding.severity, finding.rule, finding.pointer) == (Severity.ERROR, "samples", "/mkframe/samples")
    return finding.message


def test_a_report_with_its_samples_is_fine_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report(tmp_path / "run", CELLS)
    assert (validate(path).findings, validate(path).exit_code) == ((), 0)
    monkeypatch.chdir(path.parent)
    assert validate("report.json").findings == ()


def test_a_report_without_its_samples_is_not(tmp_path: Path) -> None:
    path = report(tmp_path, CELLS)
    name = side_file(path).name
    side_file(path).unlink()
    assert only(validate(path).findings) == f"{name} beside the report: no such file"
    assert validate(path).exit_code == 1


def test_one_changed_byte_is_found(tmp_path: Path) -> None:
    path = report(tmp_path, CELLS)
    data = bytearray(side_file(path).read_bytes())
    data[len(data) // 2] ^= 1
    side_file(path).write_bytes(data)
    assert "has another SHA-256 than the report says" in only(validate(path).findings)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _link(file: Path) -> None:
    file.rename(file.parent / "elsewhere")
    file.symlink_to("elsewhere")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _large(file: Path) -> None:
    os.truncate(file, 64 * 2**20 + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_folder, "folder"),
        (_link, "is a link; the samples file itself must lie beside the report"),
        (_pipe, "not a regular file"),
        (_large, "larger than the limit of 67108864 bytes"),
    ],
)
def test_nothing_but_a_file_of_a_fair_size_is_read(tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    path = report(tmp_path, CELLS)
    change(side_file(path))
    message = only(validate(path).findings)
    assert words in message
    assert "standard input" not in message  # that advice is for the report
    assert "name the report" not in message


@pytest.mark.parametrize("name", ["../samples.npz", "/etc/passwd", "..", ""])
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_opened(tmp_path: Path, name: str) -> None:
    path = report(tmp_path, CELLS)
    made = json.loads(path.read_text())
    made["mkframe"]["samples"]["file"] = name
    path.write_text(json.dumps(made))
    assert [(finding.rule, finding.pointer) for finding in validate(path).findings] == [("schema", "/mkframe/samples/file")]


def test_documents_streams_and_reports_of_others_have_nothing_beside_them(tmp_path: Path) -> None:
    path = report(tmp_path, CELLS)
    side_file(path).unlink()
    made: dict[str, Any] = json.loads(path.read_text())
    assert check_document(made).findings == validate(made).findings == ()
    with path.open("rb") as stream:
        assert validate_stream(stream, "-").findings == ()
    foreign(made)
    path.write_text(json.dumps(made))
    assert [finding.rule for finding in validate(path).findings] == ["block"]  # it is told whose it was
    made["packages"], made["source_sha256"] = {"numpy": "2.0"}, {"bench.py": "0" * 64}
    path.write_text(json.dumps(made))
    assert validate(path).findings == ()


def test_the_schema_comes_first(tmp_path: Path) -> None:
    path = report(tmp_path, CELLS, edit=lambda made: made.update(rounds=0))
    side_file(path).unlink()
    assert [finding.rule for finding in validate(path).findings] == ["schema"]


def test_the_made_report_is_what_these_tests_take_it_for() -> None:
    assert np.isfinite(CELLS[0, "torch-cublas"]).all()
    assert "samples" in document(CELLS)["mkframe"]
