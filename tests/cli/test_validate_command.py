"""`mkframe validate`: lines, the JSON document, exit codes and wrong usage."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mkframe.cli.main import main as command_line
from mkframe.cli.validate_command import main

DATA = Path(__file__).parent.parent / "data"
COMPARISON = DATA / "valid" / "minimal-comparison.json"
ENERGY = DATA / "valid" / "qda-energy-a100.json"
WRONG = DATA / "invalid" / "boolean_rounds.json"
UNREADABLE = DATA / "invalid" / "nan.json"

Capture = pytest.CaptureFixture[str]


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_good_reports_end_0_with_a_line_each(capsys: Capture) -> None:
    assert main([str(COMPARISON), str(ENERGY)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{COMPARISON}: ok (comparison report)\n{ENERGY}: $.provenance: I opaque-hashes: ")
    assert ": E " not in out
    assert err == ""


def test_a_finding_is_a_line_with_file_path_severity_rule_and_text(capsys: Capture) -> None:
    assert main([str(WRONG)]) == 1
    assert capsys.readouterr() == (f"{WRONG}: $.rounds: E schema: rounds is true (a boolean), must be an integer\n", "")


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([COMPARISON], 0),
        ([WRONG], 1),
        ([UNREADABLE], 2),
        ([UNREADABLE, WRONG, COMPARISON], 2),
        ([WRONG, COMPARISON], 1),
        ([COMPARISON, DATA], 2),
        ([DATA / "none.json", COMPARISON], 2),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_the_exit_code_is_the_highest_over_the_files(files: list[Path], code: int, form: str, capsys: Capture) -> None:
    assert main(["--format", form, *map(str, files)]) == code
    out, err = capsys.readouterr()
    assert err == ""
    assert all(str(file) in out for file in files)


def test_json_is_one_document(capsys: Capture) -> None:
    assert main(["--format=json", str(COMPARISON), str(WRONG), str(UNREADABLE)]) == 2
    document = json.loads(capsys.readouterr().out)
    finding = {"severity": "E", "rule": "schema", "pointer": "/rounds", "message": "rounds is true (a boolean), must be an integer"}
    assert document["files"][:2] == [
        {"path": str(COMPARISON), "format": "comparison", "ok": True, "findings": []},
        {"path": str(WRONG), "format": "comparison", "ok": False, "findings": [finding]},
    ]
    assert document["files"][2]["format"] is None
    assert not document["files"][2]["ok"]
    assert [item["rule"] for item in document["files"][2]["findings"]] == ["json"]
    assert document.keys() == {"files"}


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _stdin(monkeypatch, ENERGY.read_bytes())
    assert main([str(COMPARISON), "-"]) == 0
    assert "\n-: $.rounds: I net-energy: net energy 0.011 +- 0.006 mJ" in capsys.readouterr().out
    _stdin(monkeypatch, b"{")
    assert main(["-"]) == 2
    assert capsys.readouterr().out.startswith("-: $: E json: the file ends too early")


def test_closed_standard_input_is_a_finding(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["-"]) == 2
    assert capsys.readouterr() == ("-: $: E read: standard input is closed\n", "")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "FILE"),
        (["--format", "xml", "a"], "xml"),
        (["--fromat", "json", "a"], "--fromat"),
        (["--form", "json", "a"], "--form"),
        (["--size-limit", "0", "a"], "'0'"),
        (["--size-limit", "many", "a"], "'many'"),
        (["-", "-"], "standard input"),
    ],
)
def test_wrong_usage_is_one_line_and_2(argv: list[str], words: str, capsys: Capture) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mkframe validate: ")
    assert words in err


def test_help_ends_0(capsys: Capture) -> None:
    assert command_line(["validate", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Exit code" in out
    assert "every rule that --list-rules prints" in out


def test_the_size_limit_is_in_mebibytes(tmp_path: Path, capsys: Capture) -> None:
    large = tmp_path / "large.json"
    large.write_bytes(COMPARISON.read_bytes() + b" " * 2**20)
    assert main(["--size-limit", "1", str(large)]) == 2
    assert "larger than the limit of 1048576 bytes; --size-limit MIB raises it\n" in capsys.readouterr().out
    assert main(["--size-limit", "2", str(large)]) == 0


def test_a_file_cannot_write_control_characters_to_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    nasty = tmp_path / "a\x1b[2J\nb.json"
    nasty.write_text(json.dumps({"samples_per_round": "\x1b[31m", "packages": {"\x1b[32m\n": 1}}))
    assert main([str(nasty)]) == 1
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    assert all(line.startswith(f"{tmp_path}/a\\x1b[2J\\nb.json: $") for line in lines)
    assert any('$.packages["\\u001b[32m\\n"]' in line for line in lines)


def _run(*argv: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    program = "import sys; from mkframe.cli.validate_command import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program, *argv], capture_output=True, env=_environment(encoding), check=False
    )


def _environment(encoding: str) -> dict[str, str]:
    return os.environ | {"PYTHONIOENCODING": encoding}


def test_any_terminal_encoding_can_take_any_file_name(tmp_path: Path) -> None:
    name = bytes(tmp_path) + b"/caf\xc3\xa9-\xff.json"
    Path(name.decode("utf-8", "surrogateescape")).write_bytes(WRONG.read_bytes())
    for encoding in ("ascii", "utf-8"):
        for form in ("text", "json"):
            done = _run("--format", form, name.decode("utf-8", "surrogateescape"), encoding=encoding)
            assert (done.returncode, done.stderr) == (1, b"")
            assert done.stdout.decode(encoding)


def test_a_reader_that_goes_away_gives_no_traceback() -> None:
    program = "import sys; from mkframe.cli.validate_command import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", program, *[str(WRONG)] * 2000], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)
