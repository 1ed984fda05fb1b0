"""validate with a payload folder: files and arrays that fit their manifest, those that do not, and those that are out to hurt."""

import contextlib
import copy
import io
import json
import os
import struct
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.cli.validate_command import main
from mkframe.validate import Finding, Severity, validate
from mkframe.validate.payload_files import PayloadError, arrays

ENERGY = json.loads((Path(__file__).parent.parent / "data" / "valid" / "qda-energy-a100.json").read_text())
DRAWS = "/provenance/payload_manifest/draws"

Document = dict[str, Any]


def npz(**members: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **members)
    return stream.getvalue()


def manifest_of(array: np.ndarray) -> Document:
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {"shape": [*array.shape], "dtype": array.dtype.name, "sha256": sha256(little.tobytes()).hexdigest()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "payload" / "predictions").mkdir(parents=True)
    return tmp_path / "payload"


def report(folder: Path, members: dict[str, np.ndarray], data: bytes | None = None) -> Document:
    """The recorded report with one draw, whose file holds `members`; `data`: what is written instead."""
    document = copy.deepcopy(ENERGY)
    manifest = document["provenance"]["payload_manifest"]
    manifest["draws"], manifest["seeds"] = manifest["draws"][:1], manifest["seeds"][:1]
    (draw,) = manifest["draws"]
    content = npz(**members) if data is None else data
    (folder / draw["path"]).write_bytes(content)
    predictions = b"\x93NUMPY some predictions"
    (folder / draw["frozen_prediction_path"]).write_bytes(predictions)
    draw |= {"sha256": sha256(content).hexdigest(), "frozen_prediction_sha256": sha256(predictions).hexdigest()}
    draw["arrays"] = {name: manifest_of(array) for name, array in members.items()}
    return document


def found(document: Document, payload: Path) -> list[Finding]:
    """What the rule says, without its last word that predictions are unchecked."""
    path = payload.parent / "report.json"
    path.write_text(json.dumps(document))
    findings = [finding for finding in validate(path, payload=payload).findings if finding.rule == "payload"]
    last = findings.pop()
    assert (last.severity, last.pointer) == (Severity.INFORMATION, "/validation")
    assert "not recomputed" in last.message
    return findings


def one(document: Document, payload: Path, severity: Severity = Severity.ERROR) -> tuple[str, str]:
    (finding,) = found(document, payload)
    assert finding.severity is severity
    return finding.pointer, finding.message


MEMBERS = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "big": np.arange(5, dtype=">i4"),
    "dataset_seed": np.array(20261201),
    "flags": np.array([True, False]),
    "half": np.zeros((0, 3), dtype=np.float16),
}


def test_a_payload_that_fits_has_nothing_to_say_but_what_is_unchecked(folder: Path) -> None:
    assert found(report(folder, MEMBERS), folder) == []


def test_the_seed_of_the_recorded_report_hashes_as_its_manifest_says() -> None:
    draw = ENERGY["provenance"]["payload_manifest"]["draws"][0]
    seed = arrays(npz(dataset_seed=np.array(draw["dataset_seed"], dtype=np.int64)))["dataset_seed"]
    assert {"shape": [*seed.shape], "dtype": seed.dtype, "sha256": seed.sha256} == draw["arrays"]["dataset_seed"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("shape", [4, 3], "shape [3, 4]"), ("dtype", "float64", "dtype float32"), ("sha256", "0" * 64, "another SHA-256")],
)
def test_an_array_that_does_not_fit(key: str, value: Any, words: str, folder: Path) -> None:
    document = report(folder, MEMBERS)
    document["provenance"]["payload_manifest"]["draws"][0]["arrays"]["x"][key] = value
    place, message = one(document, folder)
    assert place == f"{DRAWS}/0/arrays/x/{key}"
    assert words in message


def test_one_changed_byte_of_an_array(folder: Path) -> None:
    document = report(folder, MEMBERS)
    other = MEMBERS["x"].copy()
    other[0, 0] = 1
    (folder / "draw-00.npz").write_bytes(npz(**MEMBERS | {"x": other}))
    assert [finding.pointer for finding in found(document, folder)] == [f"{DRAWS}/0/sha256", f"{DRAWS}/0/arrays/x/sha256"]


def test_arrays_that_are_too_many_or_too_few(folder: Path) -> None:
    document = report(folder, MEMBERS)
    listed = document["provenance"]["payload_manifest"]["draws"][0]["arrays"]
    listed["missing"] = listed["x"]
    assert one(document, folder)[0] == f"{DRAWS}/0/arrays/missing"
    del listed["missing"], listed["x"]
    assert one(document, folder, Severity.WARNING) == (f"{DRAWS}/0/arrays", '"draw-00.npz" also holds "x"')


def test_a_missing_draw_is_an_error_and_missing_predictions_are_told(folder: Path) -> None:
    document = report(folder, MEMBERS)
    (folder / "predictions" / "draw-00.npy").unlink()
    assert one(document, folder, Severity.INFORMATION)[0] == f"{DRAWS}/0/frozen_prediction_path"
    (folder / "predictions" / "draw-00.npy").write_bytes(b"other")
    assert one(document, folder)[0] == f"{DRAWS}/0/frozen_prediction_sha256"
    (folder / "draw-00.npz").unlink()
    assert [finding.pointer for finding in found(document, folder)] == [f"{DRAWS}/0/path", f"{DRAWS}/0/frozen_prediction_sha256"]


@pytest.mark.parametrize("name", ["../report.json", "/etc/passwd", "a//b", "./x", "", "a\0b", "x" * 5000, "predictions", "\udcff"])
def test_a_name_cannot_lead_anywhere_else(name: str, folder: Path) -> None:
    document = report(folder, MEMBERS)
    document["provenance"]["payload_manifest"]["draws"][0]["path"] = name
    if name == "\udcff":  # no JSON: the reader ends it before
        path = folder.parent / "report.json"
        path.write_text(json.dumps(document))
        assert validate(path, payload=folder).exit_code == 2
    else:
        assert one(document, folder)[0] == f"{DRAWS}/0/path"


def test_links_are_not_followed_on_any_part_of_the_way(folder: Path, tmp_path: Path) -> None:
    document = report(folder, MEMBERS)
    (folder / "draw-00.npz").rename(tmp_path / "elsewhere.npz")
    (folder / "draw-00.npz").symlink_to(tmp_path / "elsewhere.npz")
    assert "without following a link" in one(document, folder)[1]
    (tmp_path / "dir").mkdir()
    (tmp_path / "elsewhere.npz").rename(tmp_path / "dir" / "x.npz")
    (folder / "to").symlink_to(tmp_path / "dir")
    document["provenance"]["payload_manifest"]["draws"][0]["path"] = "to/x.npz"
    assert "without following a link" in one(document, folder)[1]


def test_a_pipe_is_refused_without_waiting(folder: Path) -> None:
    document = report(folder, MEMBERS)
    (folder / "draw-00.npz").unlink()
    os.mkfifo(folder / "draw-00.npz")
    assert "not a regular file" in one(document, folder)[1]


def _zip(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return stream.getvalue()


def _npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("utf-8") + data


def _pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no .npz"),
        (b"PK\x03\x04" + b"\0" * 100, "no .npz"),
        (npz(x=MEMBERS["x"])[:-30], "no .npz"),
        (_zip(("x.npy", _pickled())), "no .npy file of plain numbers"),
        (_zip(("x.npy", b"\0" * 300 * 2**20)), "larger than 67108864 bytes when it is unpacked"),
        (_zip(("x.npy", b"not numpy")), "no .npy"),
        (_zip(("x.npy", _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10**9,)}"))), "no .npy"),
        (_zip(("x.npy", _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}"))), "not those of its shape"),
        (_zip(("x.npy", _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}", b"abcd"))), "no .npy"),
        (_zip(("x.npy", _npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", b"abcd"))), "no .npy file of plain numbers"),
        (_zip(("x.npy", _npy("(" * 9000))), "no .npy"),
        (_zip(("x.npy", _npy("__import__('os').system('false')"))), "no .npy"),
        (_zip(("x.npy", b"\x93NUMPY\x03\x00")), "no .npy"),
        (_zip(("x.npy", b""), compression=zipfile.ZIP_LZMA), "a way that numpy does not use"),
        (_zip(*((f"{index}.npy", b"") for index in range(1001))), "1001 members"),
    ],
)  # fmt: skip
def test_files_that_are_no_honest_arrays(data: bytes, words: str, folder: Path) -> None:
    place, message = one(report(folder, {"x": MEMBERS["x"]}, data), folder)
    assert place == f"{DRAWS}/0/path"
    assert words in message


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_stands_twice(folder: Path) -> None:
    document = report(folder, {"x": MEMBERS["x"]}, _zip(("x.npy", _npy("")), ("x.npy", _npy(""))))
    assert one(document, folder)[0] == f"{DRAWS}/0/path"


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_files_never_raise_anything_else(junk: bytes, at: int) -> None:
    data = npz(x=MEMBERS["x"])
    for damaged in (junk, data[:at] + junk + data[at + len(junk) :], _zip(("x.npy", junk)), _zip(("x.npy", b"\x93NUMPY" + junk))):
        with contextlib.suppress(PayloadError):
            assert isinstance(arrays(damaged), dict)


@given(st.text(max_size=60), st.sampled_from(["descr", "fortran_order", "shape"]))
def test_odd_headers_never_raise_anything_else(text: str, key: str) -> None:
    parts = {"descr": "'<f4'", "fortran_order": "False", "shape": "(3,)"} | {key: text}
    for header in (text, "{" + ", ".join(f"'{name}': {value}" for name, value in parts.items()) + "}"):
        with contextlib.suppress(PayloadError):
            assert isinstance(arrays(_zip(("x.npy", _npy(header, b"\0" * 12)))), dict)


def test_a_manifest_that_names_one_file_often_reads_it_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = report(folder, MEMBERS)
    manifest = document["provenance"]["payload_manifest"]
    manifest["draws"] = manifest["draws"] * 500
    opened: list[Any] = []
    really = os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **kwargs: (opened.append(path), really(path, *args, **kwargs))[1])
    assert found(document, folder) == []
    assert opened.count("draw-00.npz") == 2  # its hash, its arrays


def test_without_a_payload_folder_nothing_that_a_report_names_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = report(folder, MEMBERS)
    monkeypatch.setattr("mkframe.validate.payload_rule.read_below", None)
    assert [finding for finding in validate(document).findings if finding.rule == "payload"] == []


def test_the_command_takes_a_folder_and_says_where_it_was_not_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder.parent / "report.json"
    path.write_text(json.dumps(report(folder, MEMBERS)))
    main(["--payload", str(folder), str(path)])
    assert "I payload: predictions, agreement and accuracy were not recomputed" in capsys.readouterr().out
    comparison = Path(__file__).parent.parent / "data" / "valid" / "residual-mlp-rtx3090.json"
    assert main(["--payload", str(folder), str(comparison)]) == 0
    assert "--payload is for energy reports" in capsys.readouterr().err
    assert main(["--payload", str(path), str(path)]) == 2
    assert "is no folder" in capsys.readouterr().err
