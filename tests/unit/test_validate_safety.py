"""A hostile file: nothing of it runs, nothing that it names is opened, and it costs no more than its size."""

import gc
import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.validate import Finding, Severity, check_document, comparison_rules, parser, validate
from mkframe.validate.limited import MAX_FINDINGS, limited
from mkframe.validate.parser import MAX_KEYS, parse
from mkframe.validate.values import MAX_KEY

ROOT = Path(__file__).resolve().parents[2]
VALID = ROOT / "tests" / "data" / "valid"
COMPARISON = VALID / "residual-mlp-rtx3090.json"
ENERGY = VALID / "qda-energy-a100.json"
MINIMAL = json.loads((VALID / "minimal-comparison.json").read_text())
PUBLISHED = ROOT / "outputs" / "published" / "residual-mlp-baselines-h200-per-call" / "report.json"

# Python tells its audit hooks of every file, process, socket, module and piece of code. What happens after the first, honest report
# has loaded everything is told to us.
WATCHED = """
import sys
from mkframe.validate import validate
for path in sys.argv[2:]:
    validate(path, strict=True)
seen = []
sys.addaudithook(lambda event, arguments: seen.append((event, str(arguments[0]) if arguments else "")))
result = validate(sys.argv[1], strict=True)
found = list(seen)
print(result.exit_code)
for event, argument in found:
    print(event, argument)
"""
HARMLESS = {"object.__getattr__", "object.__setattr__", "sys._getframe", "id", "gc.get_objects", "builtins.id", "code.__new__"}


def _events(path: Path, *before: Path) -> tuple[int, list[tuple[str, str]]]:
    command = [sys.executable, "-c", WATCHED, str(path), *map(str, before)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    code, *lines = done.stdout.splitlines()
    events = [tuple(line.split(" ", 1)) for line in lines]
    return int(code), [(event, argument) for event, argument in events if event not in HARMLESS]


def test_nothing_is_opened_but_the_report(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    names = {"$schema": "http://127.0.0.1:9/schema", "$ref": f"file://{secret}", "$id": "http://127.0.0.1:9/", "path": str(secret)}
    document = MINIMAL | names | {"packages": {"torch": "$(touch x)", "numpy": "__import__('os').system('touch x')"}}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    code, events = _events(path, COMPARISON)
    assert code in (0, 1)  # it was read to its end
    assert {argument for event, argument in events if event == "open"} == {str(path)}
    assert {event for event, _ in events} == {"open"}


def test_of_our_report_the_samples_file_alone_is_opened(tmp_path: Path) -> None:
    document = json.loads(PUBLISHED.read_text())
    for file in PUBLISHED.parent.glob("samples-*.npz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    document["mkframe"]["config"] |= {"plugin_path": str(tmp_path), "$ref": "file:///etc/hostname"}
    (tmp_path / "evil.py").write_text("raise SystemExit(99)")
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    _, events = _events(path, PUBLISHED)
    names = {str(path), document["mkframe"]["samples"]["file"], str(tmp_path / document["mkframe"]["samples"]["file"])}
    assert {argument for event, argument in events if event == "open"} <= names
    forbidden = (
        "socket.",
        "subprocess.",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "import",
        "exec",
        "pickle.",
        "urllib.",
        "shutil.",
    )
    assert [pair for pair in events if pair[0].startswith(forbidden)] == []


def test_the_samples_of_an_energy_report_are_not_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(ENERGY.read_bytes())
    _, events = _events(path, ENERGY)
    assert {argument for event, argument in events if event == "open"} == {str(path)}


def test_a_report_is_never_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "report.json.gz"
    path.write_bytes(gzip.compress(COMPARISON.read_bytes()))
    result = validate(path)
    assert result.exit_code == 2
    assert [finding.rule for finding in result.findings] == ["json"]


@pytest.mark.parametrize("path", [COMPARISON, ENERGY, PUBLISHED], ids=lambda path: path.parent.name + "/" + path.name)
def test_nothing_heavy_is_imported(path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "mkframe", "validate", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "mkframe" in loaded
    assert loaded.isdisjoint({"torch", "hydra", "omegaconf", "scipy", "jsonschema", "requests", "cutlass", "triton", "cuda"})


# What it costs --------------------------------------------------------------------------------------------------------------------


def test_a_very_long_key_is_a_finding_at_its_object() -> None:
    text = json.dumps({"a": {"x" * (MAX_KEY + 1): 1}}).encode()
    ((finding),) = parse(text).faults
    assert finding.pointer == "/a"
    assert f"has {MAX_KEY + 1} characters, more than {MAX_KEY}" in finding.message
    assert parse(json.dumps({"a": {"x" * MAX_KEY: 1}}).encode()).faults == ()
    assert [f.pointer for f in check_document({"a": {"x" * (MAX_KEY + 1): 1}}).findings] == ["/a"]


def test_masses_of_small_objects_are_refused_before_they_are_built() -> None:
    data = b'{"samples_per_round": [' + b"{}," * 500_000 + b"{}]}"
    tracemalloc.start()
    (fault,) = parse(data).faults
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "too many small ones" in fault.message
    assert peak < 2 * len(data)
    assert parse(b"[" + b'{"a": 0.5, "b": 1},' * 200_000 + b"{}]").faults == ()


def test_brackets_within_texts_are_no_objects() -> None:
    text = b'["' + b"[{" * 1_000_000 + b'"]'
    assert parse(text).faults == ()


@pytest.mark.parametrize("name", ["residual-mlp-rtx3090", "qda-energy-a100"])
def test_memory_is_bounded_by_the_size_of_an_honest_report(name: str, tmp_path: Path) -> None:
    document = json.loads((VALID / f"{name}.json").read_text())
    if "rounds" in document and isinstance(document["rounds"], list):
        document["rounds"] = [entry for _ in range(100) for entry in document["rounds"]]
    else:
        document |= {f"set_{index}": document["development"] for index in range(100)}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    validate(path)  # loads what it needs
    tracemalloc.start()
    validate(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * path.stat().st_size


def _finding(severity: str) -> Finding:
    return Finding(severity=severity, rule="r", pointer="/a", message="m")  # type: ignore[arg-type]


def test_a_rule_lists_so_many_findings_and_no_more() -> None:
    asked: list[int] = []

    def endless() -> Any:
        while True:
            asked.append(1)
            yield _finding("E")

    found = limited("r", endless())
    assert len(found) == MAX_FINDINGS + 1
    assert "the rest is not listed" in found[-1].message
    assert len(asked) == MAX_FINDINGS + 1


def test_warnings_never_hide_an_error() -> None:
    found = limited("r", [*(_finding("W") for _ in range(3 * MAX_FINDINGS)), _finding("E")])
    assert len(found) == MAX_FINDINGS + 2
    assert found[-1].severity == "E"


def test_what_a_rule_quotes_of_a_file_is_printable() -> None:
    """atheris: a rule quoted the name of a shape set as it stood in the file, with an escape sequence in it."""
    odd = Finding(severity=Severity.ERROR, rule="r", pointer="/a", message="on \x1b[2J[0]\n")
    assert [finding.message for finding in limited("r", [odd, _finding("E")])] == ["on \\x1b[2J[0]\\n", "m"]


def test_files_made_to_be_slow_do_not_hang(tmp_path: Path) -> None:
    """Seconds in all; hours where a rule's time is quadratic in what stands there in masses."""
    engine = {"passed": True, "replay_changed_input": True}
    names = {f"engine{index}": engine for index in range(30_000)}
    slow: list[dict[str, Any]] = [
        MINIMAL | {"limitations": [0] * 100_000},
        MINIMAL | {f"devic{index}": 0 for index in range(100_000)},
        MINIMAL | {"packages": {f"{index}" + "x" * 4000: 0 for index in range(1000)}},
        MINIMAL | {"x": [{"shape": {"rows": 1}, "engines": names}]},
        MINIMAL | {"x": [{"shape": {"rows": 1}, "engines": {"a": engine}}] * 30_000},
        MINIMAL | {"source_sha256": dict.fromkeys((str(index) for index in range(50_000)), "0")},
        json.loads(ENERGY.read_text()) | {"rounds": json.loads(ENERGY.read_text())["rounds"] * 2000},
        json.loads(PUBLISHED.read_text()) | {"mkframe": {f"key{index}": 0 for index in range(50_000)}},
    ]
    for index, document in enumerate(slow):
        (tmp_path / f"report-{index}.json").write_text(json.dumps(document))
    command = [
        sys.executable,
        "-c",
        "import sys; from mkframe.cli.main import main; sys.exit(main(sys.argv[1:]))",
        "validate",
        str(tmp_path),
    ]
    with open(os.devnull, "w") as sink:
        done = subprocess.run(command, stdout=sink, stderr=subprocess.DEVNULL, timeout=600, check=False)
    assert done.returncode == 1


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=6)))
def test_only_an_object_with_too_many_keys_is_refused(document: Any) -> None:
    """However the text is spaced: the quick count before reading may miss such an object, and never takes another for one."""

    def most(node: Any) -> int:
        children = list(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
        return max([len(node) if isinstance(node, dict) else 0, *map(most, children)])

    for text in (json.dumps(document), json.dumps(document, separators=(",", " : ")), json.dumps(document, indent=1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parser, "MAX_KEYS", 3)
            patch.setattr(parser, "_LONG_PART", 8)
            faults = parse(text.encode()).faults
        assert ["keys" in fault.message for fault in faults] == [True] * (most(document) > 3)


@pytest.mark.parametrize("value", [b"0", b"[]", b'"\\":\\":"', b'{"a":1}'])
def test_an_object_may_have_so_many_keys_and_not_one_more(value: bytes) -> None:
    def document(count: int) -> bytes:
        return b"{" + b",".join(b'"k%07d" :%b' % (index, value) for index in range(count)) + b"}"

    assert parse(document(MAX_KEYS)).faults == ()
    (fault,) = parse(document(MAX_KEYS + 1)).faults
    assert fault.message == "an object with more than 131072 keys: too many for a report"


@pytest.mark.parametrize("value", [b"0", b"[]"])
def test_masses_of_keys_are_refused_before_they_are_read(value: bytes) -> None:
    data = b"{" + b",".join(b'"k%07d":%b' % (index, value) for index in range(500_000)) + b"}"
    tracemalloc.start()
    (fault,) = parse(data).faults
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "keys" in fault.message
    assert peak < 2 * len(data)


@pytest.mark.parametrize("value", [b"NaN", b"9e999", b'{"ab":1,"ab":1}'])
def test_reading_stops_where_too_much_is_no_json(value: bytes) -> None:
    several = b"[" + b",".join([value] * 200) + b"]"
    assert [fault.pointer for fault in parse(several).faults][1:3] != ["", ""]  # each is located
    data = b"[" + b",".join([value] * 600_000) + b"]"
    tracemalloc.start()
    (fault,) = parse(data).faults
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fault.message.startswith("more than 100000 values and keys that are not JSON, the last of them: ")
    assert peak < 100e6  # for those that were kept, whatever the file holds


def test_what_breaks_its_schema_everywhere_is_asked_nothing_more() -> None:
    document = MINIMAL | {"limitations": list(range(MAX_FINDINGS + 5)), "recorded_on": "2026-02-30"}
    assert {finding.rule for finding in check_document(document).findings} == {"schema"}
    document["limitations"] = list(range(MAX_FINDINGS - 5))
    assert {finding.rule for finding in check_document(document).findings} == {"schema", "date"}


def test_words_are_made_for_no_more_unknown_keys_than_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(key: str, known: list[str]) -> str:
        made.append(key)
        return "unknown"

    monkeypatch.setattr(comparison_rules, "unknown_key", counted)
    findings = check_document(MINIMAL | {f"key{index}": 0 for index in range(3 * MAX_FINDINGS)}).findings
    assert len(made) == MAX_FINDINGS + 1
    assert "the rest is not listed" in findings[-1].message


def test_the_collector_runs_again_after_a_file() -> None:
    for data in (b"[NaN]", b"{", b"{}", COMPARISON.read_bytes()):
        parse(data)
        assert gc.isenabled()
    validate(COMPARISON)
    assert gc.isenabled()
    gc.disable()
    try:
        validate(COMPARISON)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_utf_16_without_its_mark_is_told() -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        (fault,) = parse(COMPARISON.read_text().encode(encoding)).faults
        assert "UTF-16 or UTF-32" in fault.message
        assert "save it as UTF-8" in fault.message
