"""`mkframe compare`: exit codes, the table, the JSON document, wrong usage, and what it does not import."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit"))
from compare_reports import Document, reason_of, report, samples

from mkframe.cli.main import main

GRAPH = "persistent-graph"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return report(tmp_path / "base", {(0, GRAPH): samples(20.0, 1), (1, GRAPH): samples(30.0, 2)})


@pytest.fixture
def slower(tmp_path: Path) -> Path:
    return report(tmp_path / "slower", {(0, GRAPH): samples(21.0, 3), (1, GRAPH): samples(30.0, 4, spread=0.02)})


def compare(*words: str | Path) -> int:
    return main(["compare", *map(str, words)])


def test_a_loss_is_one_and_a_win_is_zero(base: Path, slower: Path, capsys: Capture) -> None:
    assert compare(base, slower) == 1
    assert "FAILED: 1 cells SLOWER beyond 0 % or without the result that BASE has\n" in capsys.readouterr().out
    assert compare(base, slower, "--fail-on", "10") == 0
    assert compare(base, slower, "--fail-on=10%") == 0
    assert compare(slower, base) == 0
    assert "FAILED" not in capsys.readouterr().out


def test_the_table_has_a_row_for_each_cell(base: Path, slower: Path, capsys: Capture) -> None:
    compare(base, slower)
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == f"BASE {base}, recorded 2026-11-30, commit {json.loads(base.read_text())['source_commit'][:12]}"
    rows = [line.split() for line in lines if GRAPH in line]
    assert [row[:3] for row in rows] == [["development", "33x32x64", GRAPH], ["development", "257x64x128", GRAPH]]
    assert [row[10] for row in rows] == ["SLOWER", "UNDECIDED:"]
    assert float(rows[0][5]) == pytest.approx(1.05, abs=0.01)
    assert float(rows[0][6]) < 1.05 < float(rows[0][8].rstrip(","))
    assert lines[-2].startswith("1 SLOWER, 1 UNDECIDED; geometric mean of the ratios 1.0")


def test_the_text_says_which_floor_and_how_long_it_is(base: Path, slower: Path, tmp_path: Path, capsys: Capture) -> None:
    def none(made: Document) -> None:  # as reports of slopes were before there was their floor
        timing = made["mkframe"]["timing"]
        made["timing"] = timing["protocol"] = "unrolled"
        timing["floors"] = [floor for floor in timing["floors"] if floor["name"] != "empty-kernel-slope"]

    compare(base, slower, "--format", "json")
    floor_ms = json.loads(capsys.readouterr().out)["cells"][0]["floor_ms"]
    compare(base, slower)
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("floors: ")]
    kind = "an event pair around a graph of one empty kernel, for graph forms (empty-kernel-graph)"
    assert told == [f"floors: (NEW - BASE) / {floor_ms * 1e3:.3g} us, the sessions' median of {kind}"]
    cells = {(0, GRAPH): samples(20.0, 5), (1, GRAPH): samples(20.0, 6)}
    compare(*(report(tmp_path / name, cells, edit=none) for name in ("without", "too")))
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("floors: ")]
    assert told == ["floors: - where not both sessions measured the floor"]


def test_json_is_one_document(base: Path, slower: Path, capsys: Capture) -> None:
    assert compare(base, slower, "--format", "json", "--fail-on", "2.5") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["format"], document["exit_code"], document["fail_on_percent"]) == ("compare/1", 1, 2.5)
    assert document["counts"] == {"SLOWER": 1, "UNDECIDED": 1}
    assert (document["base"]["path"], document["new"]["path"]) == (str(base), str(slower))
    cell = document["cells"][0]
    assert (cell["set"], cell["shape"], cell["engine"]) == ("development", {"rows": 33, "channels": 32, "hidden": 64}, GRAPH)
    assert (cell["state"], cell["verdict"], cell["rests_on"], cell["floor"]) == ("compared", "SLOWER", "samples", "empty-kernel-graph")
    assert cell["ratio"] == pytest.approx(cell["new_p50_ms"] / cell["base_p50_ms"])
    assert cell["floors"] == pytest.approx((cell["new_p50_ms"] - cell["base_p50_ms"]) / cell["floor_ms"])
    assert cell["ratio_low"] < cell["ratio"] < cell["ratio_high"]


def test_no_advice_to_allow_where_nothing_could_be_compared(base: Path, tmp_path: Path, capsys: Capture) -> None:
    other = report(tmp_path / "other", {(0, "another-graph"): samples(20.0, 5), (1, "another-graph"): samples(30.0, 6)})
    assert compare(base, other) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "--allow" not in err
    assert err.endswith("They have no cell in common: there is nothing to compare\n")


def test_a_cell_that_no_longer_passes_is_listed_and_one(base: Path, tmp_path: Path, capsys: Capture) -> None:
    broken = report(tmp_path / "broken", {(0, GRAPH): samples(20.0, 5), (1, GRAPH): "crashed"})
    assert compare(base, broken, "--fail-on", "50") == 1
    out = capsys.readouterr().out
    assert f"regressed: NEW: crashed: {reason_of('crashed')}" in out
    assert "; no geometric mean: 1 cells have no ratio (--skip-failed leaves them out)" in out
    assert compare(base, broken, "--skip-failed") == 1
    assert "over 1 cells, 1 left out" in capsys.readouterr().out


def test_a_refusal_is_one_line_and_two(base: Path, tmp_path: Path, capsys: Capture) -> None:
    def edit(made: Document) -> None:
        made["mkframe"]["timing"]["hold"] = False
        for cell in made["mkframe"]["cells"]:
            cell["late_samples"] = None
        made["mkframe"]["workload"] = "a\x1b[31m\nb"

    other = report(tmp_path / "other", {(0, GRAPH): samples(20.0, 5), (1, GRAPH): samples(30.0, 6)}, edit=edit)
    assert compare(base, other) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert err.startswith("mkframe: BASE and NEW differ in what must be equal: workload: ")
    assert err.endswith("--allow workload hold\n")
    assert compare(base, other, "--allow", "workload", "hold") in (0, 1)
    assert "allowed: hold: true in BASE, false in NEW\n" in capsys.readouterr().out
    assert compare(base, other, "--allow=workload", "--allow=hold") in (0, 1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "BASE, NEW"),
        (["a.json"], "NEW"),
        (["a.json", "b.json"], "no such file"),
        (["a.json", "b.json", "--fail-on", "-1"], "'-1' is no percentage"),
        (["a.json", "b.json", "--fail-on", "nan"], "'nan' is no percentage"),
        (["a.json", "b.json", "--fail-on", "much"], "'much' is no percentage"),
        (["a.json", "b.json", "--form", "json"], "--form"),
        (["a.json", "b.json", "--format", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_one_line_and_two(words: list[str], text: str, capsys: Capture) -> None:
    assert compare(*words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert text in err


def test_help_ends_0(capsys: Capture) -> None:
    assert compare("--help") == 0
    assert "--allow FIELD" in capsys.readouterr().out


def test_a_file_cannot_write_control_characters_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    def edit(made: Document) -> None:
        del made["mkframe"], made["timing"]
        made["device"] = "\x1b[2Jcard\u0000"
        (case,) = made["development"]
        case["engines"] = {"\x1b[31m\nengine": case["engines"][GRAPH]}
        case["shape"] = {"rows\x1b[1m": 1, "b": 2, "c": 3, "\x1b[32m\n": 4}
        made["set\x1b[4m\n"] = made.pop("development")

    def strangers(name: str) -> Path:
        path = report(tmp_path / "ours", {(0, GRAPH): samples(20.0, 1)})
        made: dict[str, Any] = json.loads(path.read_text())
        edit(made)
        path = tmp_path / name
        path.write_text(json.dumps(made))
        return path

    assert compare(strangers("a\x1b.json"), strangers("b.json")) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31m\\nengine" in out


def test_it_imports_neither_torch_nor_hydra(base: Path) -> None:
    program = (
        "import sys; from mkframe.cli.main import main; code = main(sys.argv[1:]); "
        "sys.exit(' '.join({'torch', 'hydra', 'omegaconf', 'pynvml'} & set(sys.modules)) or code)"
    )
    done = subprocess.run([sys.executable, "-c", program, "compare", str(base), str(base)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_gives_no_traceback(base: Path) -> None:
    program = "import sys; from mkframe.cli.main import main; sys.stdin.read(); sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", program, "compare", str(base), str(base)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 2


def test_reports_behind_allow_are_reports(base: Path, slower: Path, capsys: Capture) -> None:
    assert compare("--allow", "hold", "workload", base, slower) == 1
    assert f"NEW  {slower}" in capsys.readouterr().out
    assert compare("--allow", "hold", base, slower, "--allow=workload", "--fail-on=10") == 0


@pytest.mark.parametrize(
    "words", [["a.json", "--allow", "hold", "b.json"], ["--allow", "hold", "a.json", "--skip-failed", "b.json"], ["--allow", "base", "new"]]
)
def test_where_it_is_not_plain_which_report_is_which_nothing_is_guessed(words: list[str], capsys: Capture) -> None:
    assert compare(*words) == 2
    err = capsys.readouterr().err
    assert err.startswith("mkframe: not named: ")
    assert "--allow takes every word behind it, so name both in front" in err


def test_a_dash_is_standard_input(base: Path, slower: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(slower.read_bytes())))
    assert compare(base, "-", "--format", "json") in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert (document["new"]["path"], document["new"]["has_samples"], document["base"]["has_samples"]) == ("-", False, True)
    assert {cell["rests_on"] for cell in document["cells"]} == {"summaries"}
    assert compare("-", "-") == 2
    assert "only once" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    assert compare("-", slower) == 2
    err = capsys.readouterr().err
    assert "ends too early" in err
    assert "see python -m mkframe validate" not in err
    monkeypatch.setattr(sys, "stdin", None)
    assert compare("-", slower) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_the_advice_names_the_file(tmp_path: Path, slower: Path, capsys: Capture) -> None:
    (tmp_path / "a b.json").write_text("{")
    assert compare(tmp_path / "a b.json", slower) == 2
    assert capsys.readouterr().err.endswith(f"; see python -m mkframe validate '{tmp_path}/a b.json'\n")


def test_the_name_of_a_file_that_is_not_utf_8_is_still_json(base: Path, tmp_path: Path, capsys: Capture) -> None:
    name = (bytes(tmp_path) + b"/\xff.json").decode("utf-8", "surrogateescape")
    Path(name).write_bytes(base.read_bytes())
    compare(name, base, "--format=json")
    path = json.loads(capsys.readouterr().out)["base"]["path"]
    assert path == f"{tmp_path}/\\udcff.json"


def test_a_samples_file_that_is_a_pipe_is_told_as_one(base: Path, slower: Path, capsys: Capture) -> None:
    (samples_file,) = base.parent.glob("samples-*.npz")
    samples_file.unlink()
    os.mkfifo(samples_file)
    assert compare(base, slower) == 2
    assert capsys.readouterr().err.endswith("this is not a regular file\n")
