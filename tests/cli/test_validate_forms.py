"""`mkframe validate`: forms of output for programs, rules, and everything that a word on the command line may stand for."""

import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mkframe.cli.main as command_line_module
from mkframe.cli.validate_command import main
from mkframe.cli.validate_output import FORMS
from mkframe.validate import READING_RULES, RULES, Finding, Result, Severity
from mkframe.validate.parser import parse

DATA = Path(__file__).parent.parent / "data"
MINIMAL = DATA / "valid" / "minimal-comparison.json"
WRONG = DATA / "invalid" / "boolean_rounds.json"
UNREADABLE = DATA / "invalid" / "nan.json"
PROGRAM = "import sys; from mkframe.cli.main import main; sys.exit(main(sys.argv[1:]))"

Capture = pytest.CaptureFixture[str]


def written(form: str, *results: Result) -> str:
    return "".join(text for text, _ in FORMS[form].pieces(results))


def result(
    message: str = "a message", *, path: str = "a.json", pointer: str = "/a", format: str | None = "energy", severity: str = "E"
) -> Result:
    finding = Finding(severity=Severity(severity), rule="a-rule", pointer=pointer, message=message)
    return Result(path=path, format=format, findings=(finding,))


# Rules ----------------------------------------------------------------------------------------------------------------------------


def test_the_rules_are_listed_with_severity_format_and_a_line(capsys: Capture) -> None:
    assert main(["--list-rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(READING_RULES) + len(RULES)
    for rule in RULES:
        words = [rule.id, "".join(rule.severities), rule.format]
        assert any(line.split()[:3] == words and line.endswith(rule.says) for line in lines)


def test_the_rules_as_json(capsys: Capture) -> None:
    assert main(["--list-rules", "--format", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert {(rule["id"], rule["format"]) for rule in rules} >= {(rule.id, rule.format) for rule in RULES}
    assert all(rule["says"] and "\n" not in rule["says"] and set(rule["severities"]) <= set("EWI") and rule["severities"] for rule in rules)


@pytest.mark.parametrize(
    "argv", [["--list-rules", "a.json"], ["--list-rules", "--format", "junit"], ["--profile", "loose", "a"], ["--payload", "a"]]
)
def test_wrong_usage(argv: list[str], capsys: Capture) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


def test_every_rule_has_an_id_of_its_own_in_its_format() -> None:
    keys = [(rule.format, rule.id) for rule in RULES]
    assert len(keys) == len(set(keys))


# JUnit and GitHub -----------------------------------------------------------------------------------------------------------------


def test_junit_has_a_suite_a_file_and_a_case_a_finding(capsys: Capture) -> None:
    assert main(["--format", "junit", str(MINIMAL), str(WRONG), str(UNREADABLE)]) == 2
    good, wrong, unreadable = ElementTree.fromstring(capsys.readouterr().out).findall("testsuite")
    assert good.attrib == {"name": str(MINIMAL), "tests": "1", "failures": "0", "errors": "0"}
    assert wrong.attrib == {"name": str(WRONG), "tests": "1", "failures": "1", "errors": "0"}
    assert unreadable.attrib == {"name": str(UNREADABLE), "tests": "1", "failures": "0", "errors": "1"}
    (case,) = wrong
    assert case.attrib == {"classname": "schema", "name": "schema $.rounds"}
    assert case[0].tag == "failure"
    assert case[0].attrib["message"] == "rounds is true (a boolean), must be an integer"
    assert unreadable[0][0].tag == "error"


@pytest.mark.parametrize("severity", ["W", "I"])
def test_junit_passes_what_is_no_error_and_keeps_its_words(severity: str) -> None:
    (suite,) = ElementTree.fromstring(written("junit", result("<&> look", severity=severity)))
    assert suite.attrib["failures"] == "0"
    assert suite[0][0].tag == "system-out"
    assert suite[0][0].text == f"{severity}: <&> look"


def test_github_annotates_by_severity() -> None:
    for severity, command in (("E", "error"), ("W", "warning"), ("I", "notice")):
        assert written("github", result(severity=severity)) == f"::{command} file=a.json,title=mkframe a-rule::$.a: a message\n"
    assert written("github", Result(path="a.json", format="energy", findings=())) == ""


def _unescaped(text: str) -> str:
    for escape, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def test_github_escapes_what_would_end_a_property_or_a_line() -> None:
    line = written("github", result("100%0A, done: yes", path="a,b:c%3A\n::error::d.json"))
    assert line == "::error file=a%2Cb%3Ac%253A%0A%3A%3Aerror%3A%3Ad.json,title=mkframe a-rule::$.a: 100%250A, done: yes\n"
    assert _unescaped(line.split(",title")[0].removeprefix("::error file=")) == "a,b:c%3A\n::error::d.json"


@given(st.text(), st.text(), st.text(), st.sampled_from("EWI"), st.sampled_from(["energy", None]))
def test_no_text_of_a_file_escapes_from_any_form(message: str, path: str, key: str, severity: str, format: str | None) -> None:
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    one = result(message, path=path, pointer=pointer, format=format, severity=severity)
    for form in FORMS:
        text = written(form, one, one)
        assert all(character.isprintable() for character in text.replace("\n", "")), form
        text.encode("utf-8")
    assert json.loads(written("json", one, one)) == {"files": [one.document(), one.document()]}
    root = ElementTree.fromstring(written("junit", one, one))
    assert len(root.findall("./testsuite/testcase")) == 2
    lines = written("github", one, one).split("\n")
    assert len(lines) == 3
    assert all(line.startswith("::") for line in lines[:2])
    assert len(written("text", one, one).split("\n")) == 3


NASTY = "\x1b[2J\x07\u202e\u2066\u200b\x9b\u2028\r\nx\ufffe"


@pytest.mark.parametrize("form", FORMS)
def test_control_characters_of_a_report_are_escaped_in_every_form(form: str, tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(MINIMAL.read_text()) | {
        NASTY: [{"shape": {NASTY: 0}, "engines": {}}],
        "recorded_on": NASTY,
        "packages": {NASTY: 7},
    }
    path = tmp_path / "nasty.json"
    path.write_text(json.dumps(document, ensure_ascii=False))
    assert main(["--format", form, str(path)]) == 1
    out = capsys.readouterr().out
    assert out.count("\n") > 2
    assert not [character for character in out if character != "\n" and not character.isprintable()]


# Words: globs, folders, profiles --------------------------------------------------------------------------------------------------


def _files(text: str) -> list[str]:
    return [entry["path"] for entry in json.loads(text)["files"]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "b/report.json",
        "a/report-x-5x19.json",
        "a/deep/er/report.json",
        "a/card.json",
        "a/h200-card.json",
        "a/index.json",
        "x.json",
    ):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(MINIMAL.read_bytes())
    (tmp_path / "tree" / "b" / "circle").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "b" / "report-folder.json").mkdir()
    return tmp_path / "tree"


def test_a_folder_stands_for_the_reports_and_cards_below_it(tree: Path, capsys: Capture) -> None:
    assert main(["--format", "json", str(tree)]) == 0
    out, err = capsys.readouterr()
    names = ["a/card.json", "a/h200-card.json", "a/report-x-5x19.json", "a/deep/er/report.json", "b/report.json"]
    assert _files(out) == [str(tree / name) for name in names]
    assert err == f"mkframe validate: {tree}: 5 files taken (report*.json, card*.json, *-card.json)\n"


def test_a_folder_without_a_report_is_an_error_in_every_form(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "other.json").write_bytes(MINIMAL.read_bytes())
    for form in FORMS:
        assert main(["--format", form, str(MINIMAL), str(tmp_path / "empty")]) == 2
        assert "a folder without any report*.json" in capsys.readouterr().out


def test_a_folder_that_cannot_be_listed(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    assert main([str(tmp_path)]) == 2
    assert "the folder cannot be listed: Permission denied" in capsys.readouterr().out


def test_a_pattern_that_no_shell_expanded(tree: Path, capsys: Capture) -> None:
    assert main(["--format", "json", f"{tree}/a/*card.json", f"{tree}/**/report.json"]) == 0
    out, _ = capsys.readouterr()
    names = ["a/card.json", "a/h200-card.json", "a/deep/er/report.json", "b/report.json"]
    assert [name for name in _files(out) if "circle" not in name] == [str(tree / name) for name in names]
    assert main([f"{tree}/none*"]) == 2
    assert "no file matches this pattern" in capsys.readouterr().out


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path, capsys: Capture) -> None:
    for name in ("report[1].json", "report1.json"):
        (tmp_path / name).write_bytes(MINIMAL.read_bytes())
    assert main(["--format", "json", str(tmp_path / "report[1].json")]) == 0
    assert _files(capsys.readouterr().out) == [str(tmp_path / "report[1].json")]


def test_the_strict_profile_reaches_the_rules(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    answer = Result(path="-", format="energy", findings=())
    monkeypatch.setattr("mkframe.cli.validate_command.validate", lambda name, **settings: (seen.append(settings), answer)[1])
    monkeypatch.setattr("mkframe.cli.validate_command.validate_stream", lambda stream, name, **settings: (seen.append(settings), answer)[1])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    assert main(["--profile", "strict", "a.json", "-"]) == 0
    assert main(["a.json"]) == 0
    assert [settings["strict"] for settings in seen] == [True, True, False]


# The process ----------------------------------------------------------------------------------------------------------------------


def test_results_are_written_as_they_come(tmp_path: Path) -> None:
    """The second file is a pipe from standard input that nobody has finished writing: the first result is there before."""
    for form, last in (("text", b"-: ok"), ("json", b'"path": "-"'), ("junit", b'name="-"')):
        command = [sys.executable, "-u", "-c", PROGRAM, "validate", "--format", form, str(WRONG), "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            first = b""
            while b"must be an integer" not in first:
                first += process.stdout.read1(65536)  # type: ignore[attr-defined]
            process.stdin.write(MINIMAL.read_bytes())
            process.stdin.close()
            assert last in process.stdout.read()
        assert process.returncode == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_closed_output_gives_no_traceback(form: str) -> None:
    command = f'exec "$0" -c "$1" validate --format {form} "$2" >&-'
    done = subprocess.run(["sh", "-c", command, sys.executable, PROGRAM, str(WRONG)], capture_output=True, check=False)
    told = b"mkframe validate: standard output is closed; redirect it to /dev/null where the exit code is enough\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_closed_input_is_a_finding() -> None:
    command = 'exec "$0" -c "$1" validate - <&-'
    done = subprocess.run(["sh", "-c", command, sys.executable, PROGRAM], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"-: $: E read: standard input is closed\n", b"")


def test_an_input_without_end_is_too_large() -> None:
    with open("/dev/zero", "rb") as zero:
        command = [sys.executable, "-c", PROGRAM, "validate", "--size-limit", "1", "-"]
        done = subprocess.run(command, stdin=zero, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"larger than the limit of 1048576 bytes" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", PROGRAM, "validate", str(MINIMAL)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_ctrl_c_is_one_line_and_2() -> None:
    command = [sys.executable, "-u", "-c", PROGRAM, "validate", str(WRONG), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        time.sleep(0.2)  # it waits for standard input now
        process.send_signal(signal.SIGINT)
        error = process.stderr.read()
        with contextlib.suppress(ProcessLookupError):
            process.wait(timeout=60)
    assert (process.returncode, error) == (2, b"mkframe validate: interrupted; files that were not reached are not validated\n")


@pytest.mark.parametrize("words", [["validate"], ["explain"], ["table"], ["compare", "a.json"]])
def test_what_is_interrupted_anywhere_says_nothing_of_a_file(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """While the command is still being loaded too."""

    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    monkeypatch.setattr(command_line_module, "silence_stdout", lambda: None)
    assert command_line_module.main([*words, "b.json"]) == 2
    assert capsys.readouterr() == ("", "mkframe: interrupted\n")


def test_the_name_of_a_file_that_is_not_utf_8_is_json_that_validate_itself_would_read(tmp_path: Path, capsys: Capture) -> None:
    name = (bytes(tmp_path) + b"/caf\xe9.json").decode("utf-8", "surrogateescape")
    Path(name).write_bytes(MINIMAL.read_bytes())
    assert command_line_module.main(["validate", "--format=json", name]) == 0
    out = capsys.readouterr().out
    assert parse(out.encode()).faults == ()
    assert json.loads(out)["files"][0]["path"] == f"{tmp_path}/caf\\udce9.json"
