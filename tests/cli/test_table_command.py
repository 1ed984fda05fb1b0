"""`mkframe table`: as text and as data; what a report holds cannot steer the terminal."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mkframe.cli.main import main
from mkframe.cli.show_table import show
from mkframe.report.table import Cell, Row, Table, table_of

DATA = Path(__file__).parent.parent / "data"
COMPARISON = DATA / "valid" / "residual-mlp-rtx3090.json"
ENERGY = DATA / "valid" / "qda-energy-a100.json"
PUBLISHED = Path(__file__).resolve().parents[2] / "outputs/published/residual-mlp-baselines-h200-per-call/report.json"

Capture = pytest.CaptureFixture[str]


def test_json_holds_the_figures_of_the_report(capsys: Capture) -> None:
    assert main(["table", "--format", "json", str(PUBLISHED), str(COMPARISON)]) == 0
    out, err = capsys.readouterr()
    ours, theirs = json.loads(out)["tables"]
    assert err == ""
    assert (ours["path"], theirs["path"]) == (str(PUBLISHED), str(COMPARISON))
    report: dict[str, Any] = json.loads(PUBLISHED.read_text())
    rows = {(row["set"], row["shape"]): row["cells"] for row in ours["rows"]}
    checked = 0
    for name in ("development", "assessment"):
        for case in report[name]:
            cells = rows[name, "x".join(map(str, case["shape"].values()))]
            for engine, result in case["engines"].items():
                assert cells[engine]["p50_us"] == result["stream_summary"]["p50_ms"] * 1e3
                checked += 1
    assert checked == sum(len(cells) for cells in rows.values())
    assert set(ours["engines"]) == {"torch-cublas", "torch-cublas-graph", "torch-compile", "torch-compile-graph"}


def test_json_of_a_file_that_is_none_is_still_one_document(capsys: Capture) -> None:
    assert main(["table", "--format=json", str(ENERGY), str(COMPARISON), "none\x1b[2J.json"]) == 2
    out, err = capsys.readouterr()
    assert [table["path"] for table in json.loads(out)["tables"]] == [str(COMPARISON)]
    assert err.splitlines()[0] == (
        f"mkframe: {ENERGY} is no valid comparison report: it is an energy report; see python -m mkframe validate {ENERGY}"
    )
    assert err.splitlines()[1] == "mkframe: none\\x1b[2J.json: no such file"


def test_a_report_needs_no_samples_to_be_printed(tmp_path: Path, capsys: Capture) -> None:
    lone = tmp_path / "lone.json"
    lone.write_bytes(PUBLISHED.read_bytes())
    assert main(["table", str(lone)]) == 0
    assert "33x32x64" in capsys.readouterr().out
    assert main(["validate", str(lone)]) == 1


def test_a_report_cannot_steer_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    text = COMPARISON.read_text().replace('"persistent"', json.dumps("p\x1b[31m"))
    document = json.loads(text)
    document["device"] = "GPU\x1b]0;title\x07\nsecond line"
    nasty = tmp_path / "nasty.json"
    nasty.write_text(json.dumps(document))
    assert main(["table", str(nasty)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "GPU\\x1b]0;title\\x07\\nsecond line" in out
    assert "p\\x1b[31m" in out


def test_names_are_no_markup_and_notes_stay_on_their_line(capsys: Capture) -> None:
    row = Row(set="[bold]set[/bold]", shape="1x\r2", cells={"[red]e": Cell(p50_us=1.0)})
    show(Table(title="t\u202e", engines=("[red]e",), rows=(row,), notes=("why:\x1b[2J\nfake",)))
    out = capsys.readouterr().out
    for word in ("[bold]set[/bold]", "1x\\r2", "[red]e", "t\\u202e", "why:\\x1b[2J\\nfake"):
        assert word in out


def test_a_reader_that_has_gone_is_no_end_of_the_program() -> None:
    program = (
        "import os\n"
        "from mkframe.cli.show_table import show\n"
        "from mkframe.report.table import Table\n"
        "reader, writer = os.pipe()\n"
        "os.close(reader)\n"
        "os.dup2(writer, 1)\n"
        "try:\n"
        "    show(Table(title='t', engines=(), rows=()))\n"
        "except BrokenPipeError:\n"
        "    os._exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_wrong_usage_is_one_line(capsys: Capture) -> None:
    assert main(["table", "--format", "xml", "a"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_very_large_table_is_a_line_a_cell(capsys: Capture) -> None:
    def cells(row: int) -> dict[str, Cell]:
        return {f"engine{row}\x1b": Cell(p50_us=1.5, standing="1.10x slower", target="target 1 missed"), "failing": Cell(p50_us=None)}

    rows = tuple(Row(set="s", shape=f"{row}x2", cells=cells(row)) for row in range(400))
    engines = tuple(dict.fromkeys(engine for row in rows for engine in row.cells))
    show(Table(title="many", engines=engines, rows=rows, notes=("a note",)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "many"
    assert lines[1].split() == ["s", "0x2", "engine0\\x1b", "1.50", "1.10x", "slower", "target", "1", "missed"]
    assert lines[2].split() == ["s", "0x2", "failing", "failed"]
    assert lines[-1] == "a note"
    assert len(lines) == 2 + 2 * len(rows)


def test_the_fastest_baseline_is_found_once_for_a_case() -> None:
    """What a table says of masses of engines takes no square of them."""
    summary = {"p50_ms": 0.001}
    engines = {f"torch-{index}": {"stream_summary": {"p50_ms": 0.002 + index * 1e-6}} for index in range(30_000)}
    document = {"precision": "FP16", "device": "d", "x": [{"shape": {"n": 1}, "engines": engines | {"own": {"stream_summary": summary}}}]}
    (row,) = table_of(document).rows
    assert row.cells["torch-0"].standing == "baseline"
    assert row.cells["own"].standing == "2.00x faster"
    assert row.cells["torch-2000"].standing == "2.00x slower"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COMPARISON.read_bytes())))
    assert main(["table", "--format=json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"][0]["path"] == "-"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ENERGY.read_bytes())))
    assert main(["table", "-"]) == 2
    assert capsys.readouterr().err == "mkframe: - is no valid comparison report: it is an energy report\n"
