"""Reading a report: nothing that a file, a stream or a Python object holds raises, and every fault is a clear finding."""

import io
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.validate import Result, check_document, validate, validate_stream
from mkframe.validate.finding import Finding
from mkframe.validate.parser import parse
from mkframe.validate.reader import read_file, read_stream
from mkframe.validate.values import MAX_DEPTH, MAX_FAULTS

DATA = Path(__file__).parent.parent / "data"
COMPARISON_BYTES = (DATA / "valid" / "residual-mlp-rtx3090.json").read_bytes()
ENERGY_BYTES = (DATA / "valid" / "qda-energy-a100.json").read_bytes()


def _faults(data: bytes) -> list[tuple[str, str]]:
    parsed = parse(data)
    assert parsed.faults == () or parsed.document is None
    return [(fault.pointer, fault.message) for fault in parsed.faults]


def _only(result: Result) -> Finding:
    assert (result.format, result.exit_code) == (None, 2)
    (finding,) = result.findings
    return finding


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"", "", "the file is empty"),
        (b" \r\n\t", "", "the file is empty"),
        (b"\xef\xbb\xbf{}", "", "byte order mark of UTF-8"),
        ("{}".encode("utf-16"), "", "byte order mark of UTF-16"),
        ("{}".encode("utf-16-be"), "", "begins as UTF-16"),
        (b'{"a": "\xff"}', "", "not UTF-8: byte 0xff at offset 7"),
        (b'{"a": "\xed\xa0\x80"}', "", "not UTF-8: byte 0xed at offset 7"),
        (b'{"a": "\xc0\xaf"}', "", "not UTF-8"),
        (b'{"a": 1', "", "ends too early"),
        (b'{"a": "b', "", "ends too early"),
        (b'{"a": "b\\', "", "ends too early"),
        (b'{"a": 1} {}', "", 'goes on after the end of the document, with "{}" (line 1, column 10)'),
        (b"{'a': 1}", "", "not JSON"),
        (b'{"a": 01}', "", "not JSON"),
        (b'{"a": 1,}', "", "not JSON"),
        (b'{"a": .5}', "", "not JSON"),
        (b'{"a": +1}', "", "not JSON"),
        (b'{"a": "\n"}', "", "not JSON"),
        (b'{"a": nan}', "", "not JSON"),
        (b'{"a": [1, NaN]}', "/a/1", "NaN is not a JSON number"),
        (b"Infinity", "", "Infinity is not a JSON number"),
        (b'{"a/b": -Infinity}', "/a~1b", "-Infinity is not a JSON number"),
        (b'{"a": 1e309}', "/a", "1e309 is beyond float64"),
        (b'{"a": -1e999999999}', "/a", "beyond float64"),
        (b'{"a": 1e-400}', "/a", "1e-400 is beyond float64"),
        (b'{"a": ' + b"9" * 310 + b"}", "/a", "(310 characters) is beyond float64"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "/a", "(100000 characters) is beyond float64"),
        (b'{"a": ' + b"9" * 400 + b".5}", "/a", "beyond float64"),
        (b'{"a": 1, "b": {"a": 1, "c": 2, "a": 3}}', "/b/a", "stands more than once"),
        (b'{"\\u0061": 1, "a": 1}', "/a", "stands more than once"),
        (b'{"a": ["\\ud800"]}', "/a/0", "lone surrogate"),
        (b'{"a": "\\udc00\\ud800"}', "/a", "lone surrogate"),
        (b'{"a": {"\\udfff": 1}}', "/a", "lone surrogate"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "", "nested deeper than"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "", "nested deeper than"),
        (b"[" * 1_000_000, "", "nested deeper than"),
    ],
)
def test_bytes_that_are_not_a_json_document(data: bytes, place: str, words: str) -> None:
    ((where, message),) = _faults(data)
    assert where == place
    assert words in message


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b'"' + b"[" * 500 + b'"', "[" * 500),
        (b'["\\"' + b"[" * 500 + b'"]', ['"' + "[" * 500]),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b"[1e308, 5e-324, 0e999, -0.0, 0.000]", [1e308, 5e-324, 0.0, -0.0, 0.0]),
        (b"9" * 308, int("9" * 308)),
        (b' {"a": 1, "b": {"a": 1}}\r\n', {"a": 1, "b": {"a": 1}}),
    ],
)
def test_bytes_that_look_bad_and_are_good(data: bytes, value: Any) -> None:
    parsed = parse(data)
    assert parsed.faults == ()
    if value is not None:
        assert parsed.document == value


def test_all_faults_of_a_document_are_listed() -> None:
    data = b'{"a": NaN, "b": [Infinity, {"c": 1, "c": 2, "d": 1e999, "d": 0}], "e": "\\ud800"}'
    assert sorted(place for place, _ in _faults(data)) == ["/a", "/b/0", "/b/1/c", "/b/1/d", "/e"]


def test_a_fault_behind_a_repeated_key_is_not_lost() -> None:
    assert [place for place, _ in _faults(b'{"a": NaN, "a": 1}')] == ["/a"]


def test_very_many_faults_are_cut() -> None:
    faults = _faults(b"[" + b",".join([b"NaN"] * 5000) + b"]")
    assert len(faults) == MAX_FAULTS + 1
    assert "the rest is not listed" in faults[-1][1]


def test_text_made_to_be_slow_does_not_hang() -> None:
    program = (
        "from mkframe.validate.parser import parse\n"
        "n = 2_000_000\n"
        "for data in (b'\"' + b'\\\\\"' * n, b'\"' + b'\\\\' * (2 * n + 1), b'[]' * n, b'9' * n, b'\"' * (2 * n + 1), b'1.' + b'3' * n):\n"
        "    print(len(parse(data).faults))\n"
    )
    # Takes about a second; hours where the time is quadratic in the length.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == ["1", "1", "1", "1", "1", "0"]


def test_values_that_python_has_and_json_has_not() -> None:
    document = {
        "a": math.nan,
        "b": [math.inf, (1,), {1}, b"x", 10**400],
        "c": {3: 1},
        "d": "\ud800",
        "e": object(),
        "f": 1,
        "g": [None, True, -0.0],
    }
    found = sorted((finding.pointer, finding.message) for finding in check_document(document).findings)
    assert [place for place, _ in found] == ["/a", "/b/0", "/b/1", "/b/2", "/b/3", "/b/4", "/c", "/d", "/e"]
    assert "tuple" in dict(found)["/b/1"]
    assert "int, must be a string" in dict(found)["/c"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_the_depth_limit_is_the_same_for_text_and_for_objects(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    for depth, words in ((MAX_DEPTH, "unknown format"), (MAX_DEPTH + 1, "nested deeper")):
        text = opening * (depth - 1) + b"[]" + closing * (depth - 1)
        assert words in _only(validate_stream(io.BytesIO(text), "-")).message
        assert words in _only(check_document(json.loads(text))).message


def test_a_document_that_holds_itself_is_too_deep() -> None:
    document: dict[str, Any] = {"samples_per_round": 1}
    document["again"] = [document, document]
    assert "nested deeper" in _only(check_document(document)).message


def test_a_missing_file(tmp_path: Path) -> None:
    assert _only(validate(tmp_path / "none.json")).message == "no such file"


def test_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in _only(validate(tmp_path)).message


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "\udcff" * 3, ""])
def test_a_name_that_cannot_be_a_file(name: str) -> None:
    assert _only(validate(name)).rule == "read"


def test_a_file_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    assert "cannot be opened" in _only(validate(tmp_path / "file" / "report.json")).message


def test_a_pipe_that_nobody_writes_to_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    answers: list[Result] = []
    thread = threading.Thread(target=lambda: answers.append(validate(tmp_path / "pipe")), daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert "not a regular file" in _only(answers[0]).message


def test_a_device_that_never_ends_is_refused() -> None:
    assert "not a regular file" in _only(validate("/dev/zero")).message


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(COMPARISON_BYTES)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything

        def refuse(*_: Any) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    assert _only(validate(path)).message == "the file cannot be opened: Permission denied"


def test_a_read_that_fails_half_way() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    finding = read_stream(Broken())  # type: ignore[arg-type]
    assert isinstance(finding, Finding)
    assert finding.message == "the file cannot be read: Input/output error"


def test_the_size_limit_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(COMPARISON_BYTES)
    size = len(COMPARISON_BYTES)
    assert read_file(path, size) == COMPARISON_BYTES
    assert validate(path, size_limit=size).ok
    assert f"limit of {size - 1} bytes" in _only(validate(path, size_limit=size - 1)).message


def test_the_size_limit_ends_a_stream_that_never_does() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size: int = -1, /) -> bytes:
            part = b" " * min(size, 1000)
            self.taken += len(part)
            return part

    stream = Endless()
    assert "larger than the limit" in _only(validate_stream(stream, "-", size_limit=10_000)).message  # type: ignore[arg-type]
    assert stream.taken == 10_001


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["samples_per_round", "validation", "rounds", "development", "engines", "shape", "passed", "gross_mj", "mkframe", "a", ""]
)
REPORT_LIKE = st.dictionaries(
    KEYS,
    st.recursive(JSON_VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=30),
)


def _check_result(result: Result) -> None:
    assert result.exit_code in (0, 1, 2)
    assert result.ok == (result.exit_code == 0)
    assert all(finding.message and "\n" not in finding.message for finding in result.findings)
    json.dumps(result.document())


@settings(deadline=None)
@given(JSON_VALUES | REPORT_LIKE)
def test_no_document_raises(document: Any) -> None:
    _check_result(check_document(document))


@settings(deadline=None)
@given(REPORT_LIKE)
def test_a_document_and_its_text_give_the_same_findings(document: dict[str, Any]) -> None:
    from_object = check_document(document)
    from_text = validate_stream(io.BytesIO(json.dumps(document).encode()), "-")
    assert (from_text.format, from_text.findings) == (from_object.format, from_object.findings)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    _check_result(validate_stream(io.BytesIO(data), "-"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([COMPARISON_BYTES, ENERGY_BYTES]), st.data())
def test_no_damage_to_a_recorded_report_raises(original: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(original)))
    stop = data.draw(st.integers(start, min(start + 60, len(original))))
    middle = data.draw(
        st.binary(max_size=6) | st.sampled_from([b"NaN", b'"', b"{", b"]", b"-", b"1e999", b"null", b"true", b",", b"\\ud800"])
    )
    _check_result(validate_stream(io.BytesIO(original[:start] + middle + original[stop:]), "-"))


@settings(deadline=None)
@given(st.floats() | st.integers(-(10**330), 10**330))
def test_a_number_is_accepted_exactly_where_float64_can_hold_it(value: float) -> None:
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    assert (parse(json.dumps([value]).encode()).faults == ()) == finite


@settings(deadline=None)
@given(JSON_VALUES)
def test_what_the_parser_accepts_is_what_json_means(value: Any) -> None:
    parsed = parse(json.dumps(value).encode())
    if not parsed.faults:
        assert parsed.document == value
