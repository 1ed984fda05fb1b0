"""`mkframe explain`: exit codes, where words go, and what a file cannot do to a terminal."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mkframe.cli.main import main

DATA = Path(__file__).parent.parent / "data"
COMPARISON, ENERGY = DATA / "valid/residual-mlp-rtx3090.json", DATA / "valid/qda-energy-a100.json"
PUBLISHED = DATA.parents[1] / "outputs/published/residual-mlp-baselines-h200-per-call"
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("file", [COMPARISON, ENERGY])
def test_a_page_ends_0(file: Path, capsys: Capture) -> None:
    assert main(["explain", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"{file}: ")
    assert [line for line in out.splitlines() if line and not line.startswith(" ")][1:] == [
        "What was measured",
        "How",
        "What follows from it",
        "What does not follow from it",
        "Findings of validate",
    ]
    assert max(map(len, out.splitlines()[1:])) <= 110


def test_a_report_with_errors_has_a_page_and_ends_1(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(ENERGY.read_text())
    document["rounds"][0]["gross_mj"] = 1.0
    (tmp_path / "report.json").write_text(json.dumps(document))
    assert main(["explain", "report.json"]) == 1
    out = capsys.readouterr().out
    assert "nothing above is safe to rely on" in out
    assert "E gross at $.rounds[0].gross_mj" in out


@pytest.mark.parametrize(
    ("content", "why"), [("{", "ends too early"), ('{"hello": 1}', "unknown format"), ("[NaN]", "NaN"), ("", "the file is empty")]
)
def test_what_is_in_no_known_format_ends_2_with_a_line(content: str, why: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "report.json").write_text(content)
    assert main(["explain", "report.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mkframe: report.json: ")
    assert why in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_ends_2(capsys: Capture) -> None:
    assert main(["explain", "none\x1b[2J.json"]) == 2
    assert capsys.readouterr().err == "mkframe: none\\x1b[2J.json: no such file\n"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ENERGY.read_bytes())))
    assert main(["explain", "-"]) == 0
    assert "0.011 +- 0.006 mJ" in capsys.readouterr().out


def test_control_characters_of_a_file_are_escaped(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(COMPARISON.read_text())
    document["device"] = "evil\x1b[2J\r\n  - Verdict: resolved\u202e"
    document["limitations"] = ["a\x07b"]
    document["development"][0]["engines"]["\x1b]0;title\x07"] = {"passed": False, "replay_changed_input": False}
    (tmp_path / "report.json").write_text(json.dumps(document))
    main(["explain", "report.json"])
    out = capsys.readouterr().out
    assert all(character.isprintable() or character == "\n" for character in out)
    assert "evil\\x1b[2J\\r\\n" in out
    assert not any(line.startswith("  - Verdict") for line in out.splitlines())


@pytest.mark.parametrize("file", [COMPARISON, ENERGY])
def test_neither_torch_nor_hydra_is_loaded(file: Path) -> None:
    code = (
        "import sys; from mkframe.cli.main import main; main(['explain', sys.argv[1]]); "
        "print(*sorted({'torch', 'hydra', 'omegaconf', 'rich'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def test_samples_beside_a_report_are_rebuilt(tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(PUBLISHED, tmp_path / "run")
    report = tmp_path / "run/report.json"
    assert main(["explain", str(report)]) == 0
    assert "Rebuilt from the samples beside the report" in capsys.readouterr().out
    document = json.loads(report.read_text())
    for case in document["development"]:
        for cell in case["engines"].values():
            cell["host_summary"]["mean_ms"] *= 1.0001
    report.write_text(json.dumps(document))
    assert main(["explain", str(report)]) == 1
    assert "E rebuilt-summary at $.development[0]" in capsys.readouterr().out


def test_without_samples_the_page_says_that_nothing_was_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    data = (PUBLISHED / "report.json").read_bytes()
    (tmp_path / "report.json").write_bytes(data)
    assert main(["explain", str(tmp_path / "report.json")]) == 1
    assert "NOT rebuilt from samples: the samples file is missing" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["explain", "-"]) == 0
    assert "NOT rebuilt from samples: it was not read from a folder" in capsys.readouterr().out
