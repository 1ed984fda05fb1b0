"""validate against reports of a generator: no false alarm, planted faults are found at their place, and every rule finds one of them
that nobody else does."""

import copy
import io
import json
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from own_mutants import with_rates
from probe_fakes import FakeGpu
from report_generator import comparison_report, energy_report, own_energy_report, reports
from report_mutants import KINDS, Mutant, mutants
from report_mutants_own import THEMES

from mkframe.probe.session import probe_gpu
from mkframe.validate import RULES, Finding, Rule, Severity, check_document, validate
from mkframe.validate.rebuilt_pairs import out_of_turn
from mkframe.validate.samples_file import CellSamples

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "valid"
PUBLISHED = ROOT / "outputs" / "published" / "residual-mlp-baselines-h200-per-call"

Document = dict[str, Any]


def _read(path: Path) -> Document:
    loaded: Document = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@cache
def bases() -> dict[str, Document]:
    """Honest reports by name: the recorded ones, one of ours, generated ones."""
    random = Random(20261130)
    published = _read(PUBLISHED / "report.json")
    found = {
        "the recorded comparison report": _read(RECORDED / "residual-mlp-rtx3090.json"),
        "the recorded energy report": _read(RECORDED / "qda-energy-a100.json"),
        "our published report": published,
        "our report with rates": with_rates(published, cold=False),
        "our cold report with rates": with_rates(published, cold=True),
        "our energy report": own_energy_report(random),
        "our energy report on edges": own_energy_report(random, on_edges=True),
    }
    for index in range(4):
        found[f"comparison report {index}"] = comparison_report(random)
        found[f"energy report {index}"] = energy_report(random)
    return found


@cache
def planted() -> tuple[Mutant, ...]:
    return tuple(mutants(bases(), seed=7))


@cache
def found_in_planted() -> tuple[tuple[Mutant, tuple[Finding, ...]], ...]:
    return tuple((mutant, check_document(mutant.document).findings) for mutant in planted())


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.ERROR]


def test_a_thousand_honest_reports_raise_no_alarm() -> None:
    alarms = {
        index: found for index, document in enumerate(reports(20261130, 1000)) if (found := _errors(check_document(document).findings))
    }
    assert alarms == {}


def test_the_generator_varies_what_may_vary() -> None:
    made = reports(1, 400)
    comparisons, energies = made[::2], made[1::2]
    assert {document.get("timing") for document in comparisons} >= {None, "per_call", "replay", "unrolled", "cold"}
    assert {document["source_commit"] is None for document in comparisons} == {True, False}
    assert {type(document.get("sanitizers")) for document in comparisons} == {str, dict, type(None)}
    assert {"compiler" in document for document in comparisons} == {True, False}
    assert len({name for document in comparisons for name in document if isinstance(document[name], list)}) >= 5
    assert len({tuple(document) for document in comparisons}) > 100
    assert {len(document["rounds"]) if "rounds" in document else None for document in energies} >= {None, 0, 1, 3, 7}
    assert {document["hardware"]["multiprocessors"] is None for document in energies} == {True, False}
    assert {document["validation"]["passed"] for document in energies} == {True, False}
    assert reports(1, 400) == made


def test_the_bases_are_honest() -> None:
    assert {name: found for name, document in bases().items() if (found := _errors(check_document(document).findings))} == {}


def test_there_are_enough_mutants_of_enough_kinds() -> None:
    assert len(planted()) >= 200
    assert len({mutant.kind for mutant in planted()}) == len(KINDS) >= 40
    assert {theme.__name__ for theme in THEMES} <= {kind.change.__module__ for kind in KINDS}
    for name in ("the recorded comparison report", "the recorded energy report", "our published report"):
        assert len([mutant for mutant in planted() if mutant.base == name]) >= 30


def _is_caught(mutant: Mutant, findings: Iterable[Finding]) -> bool:
    return any(finding.severity == mutant.severity and mutant.holds(finding.pointer) for finding in findings)


def test_planted_faults_are_found_at_their_place() -> None:
    missed = [str(mutant) for mutant, findings in found_in_planted() if not _is_caught(mutant, findings)]
    assert len(missed) <= 0.01 * len(planted()), missed


def _leads_somewhere(document: Any, pointer: str) -> bool:
    node = document
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return False
    return True


def test_every_pointer_leads_to_a_value() -> None:
    for mutant, findings in found_in_planted():
        for finding in findings:
            assert _leads_somewhere(mutant.document, finding.pointer), (str(mutant), finding)


# Faults that are no JSON, or lie in files -----------------------------------------------------------------------------------------

TEXT = (RECORDED / "residual-mlp-rtx3090.json").read_bytes()
UNREADABLE = {
    "NaN": TEXT.replace(b'"rounds": 5', b'"rounds": NaN', 1),
    "infinity": TEXT.replace(b'"rounds": 5', b'"rounds": -Infinity', 1),
    "beyond float64": TEXT.replace(b'"rounds": 5', b'"rounds": 5e400', 1),
    "duplicate key": TEXT.replace(b'"rounds": 5', b'"rounds": 4, "rounds": 5', 1),
    "lone surrogate": TEXT.replace(b"GeForce", b"\\ud800", 1),
    "not UTF-8": TEXT.replace(b"GeForce", b"\xff", 1),
    "byte order mark": b"\xef\xbb\xbf" + TEXT,
    "cut off": TEXT[:-100],
    "two documents": TEXT + TEXT,
    "trailing comma": TEXT.rstrip()[:-1] + b",}",
    "too deep": TEXT.replace(b'"rounds": 5', b'"x": ' + b"[" * 101 + b"]" * 101 + b', "rounds": 5', 1),
    "empty": b"",
    "no report": b'{"hello": "world"}',
    "a list": b"[" + TEXT + b"]",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_as_a_report_ends_with_2(name: str, tmp_path: Path) -> None:
    assert UNREADABLE[name] != TEXT
    (tmp_path / "report.json").write_bytes(UNREADABLE[name])
    result = validate(tmp_path / "report.json")
    assert result.exit_code == 2
    assert {finding.rule for finding in result.findings} <= {"json", "format"}


@dataclass(frozen=True, kw_only=True)
class Filed:
    """A fault that only files show. `settings` are those of `validate`."""

    path: Path
    place: str
    settings: dict[str, Any]
    severity: str = "E"


def _put(folder: Path, document: Document) -> Path:
    """Our published report with its samples, the report replaced by `document`."""
    folder.mkdir()
    for file in PUBLISHED.glob("samples-*.npz"):
        shutil.copy(file, folder)
    (folder / "report.json").write_text(json.dumps(document))
    return folder / "report.json"


def _named(document: Document, folder: Path, data: bytes) -> Document:
    """The report with another samples file, which is named and hashed as it should be."""
    document = copy.deepcopy(document)
    digest = sha256(data).hexdigest()
    document["mkframe"]["samples"] = {"file": f"samples-{digest}.npz", "sha256": digest}
    path = _put(folder, document)
    (folder / f"samples-{digest}.npz").write_bytes(data)
    return _read(path)


def _other_samples(folder: Path) -> Filed:
    path = _put(folder, bases()["our published report"])
    with next(folder.glob("samples-*.npz")).open("ab") as file:
        file.write(b"\0")
    return Filed(path=path, place="/mkframe/samples", settings={})


def _stranger_in_the_samples(folder: Path) -> Filed:
    stream = io.BytesIO(next(PUBLISHED.glob("samples-*.npz")).read_bytes())
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("stranger.npy", b"")
    _named(bases()["our published report"], folder, stream.getvalue())
    return Filed(path=folder / "report.json", place="/mkframe/samples", settings={"strict": True})


def _strict_and_foreign(base: str, folder: Path) -> Filed:
    return Filed(path=_put(folder, bases()[base]), place="", settings={"strict": True})


def _mean_of_other_samples(folder: Path) -> Filed:
    document = copy.deepcopy(bases()["our published report"])
    engine, result = next(iter(document["development"][0]["engines"].items()))
    result["stream_summary"]["mean_ms"] *= 1 + 1e-9
    path = _put(folder, document)
    return Filed(path=path, place=f"/development/0/engines/{engine}/stream_summary/mean_ms", settings={"strict": True})


def _another_step_of_the_clock(folder: Path) -> Filed:
    document = copy.deepcopy(bases()["our published report"])
    document["mkframe"]["timing"]["timer_step_ms"] = 0.000512
    return Filed(path=_put(folder, document), place="/mkframe/timing/timer_step_ms", settings={"strict": True})


def _another_interval(folder: Path) -> Filed:
    document = copy.deepcopy(bases()["our published report"])
    document["mkframe"]["cells"][0]["interval"]["low_ms"] *= 1 - 1e-6
    return Filed(path=_put(folder, document), place="/mkframe/cells/0/interval/low_ms", settings={"strict": True})


def _another_ratio(folder: Path) -> Filed:
    document = copy.deepcopy(bases()["our published report"])
    document["mkframe"]["verdicts"][0]["ratio_high"] *= 1 + 1e-6
    return Filed(path=_put(folder, document), place="/mkframe/verdicts/0", settings={"strict": True})


def _other_arrays(folder: Path, change: Callable[[dict[str, Any], str], None]) -> Filed:
    """The arrays of the first cell changed; `change` gets all arrays and the cell's place."""
    document = bases()["our published report"]
    cell = document["mkframe"]["cells"][0]
    arrays = dict(np.load(next(PUBLISHED.glob("samples-*.npz"))))
    change(arrays, f"{cell['set']}/{cell['case']}/{cell['engine']}")
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    _named(document, folder, stream.getvalue())
    return Filed(path=folder / "report.json", place="/mkframe/cells/0", settings={"strict": True})


def _host_inside_in_one_sample(arrays: dict[str, Any], place: str) -> None:
    arrays[f"{place}/host_ms"][1, 7] = 1e-6


def _times_of_no_clock(arrays: dict[str, Any], place: str) -> None:
    """All times of a cell longer by one ulp at most: no summary and no verdict tells that."""
    arrays[f"{place}/host_ms"] = np.nextafter(arrays[f"{place}/host_ms"], np.inf)


def _no_workers(arrays: dict[str, Any], place: str) -> None:
    del arrays[f"{place}/workers"]


def _changed_archive(folder: Path, change: Callable[[bytes], bytes]) -> Filed:
    _named(bases()["our published report"], folder, change(next(PUBLISHED.glob("samples-*.npz")).read_bytes()))
    return Filed(path=folder / "report.json", place="/mkframe/samples", settings={"strict": True})


def _with_comment(data: bytes) -> bytes:
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b"measured twice"
    return stream.getvalue()


def _with_a_gap(data: bytes) -> bytes:
    """Bytes between the last array and the directory, whose place the end record tells anew."""
    start = int.from_bytes(data[-6:-2], "little")
    return data[:start] + b"between" + data[start:-6] + (start + 7).to_bytes(4, "little") + data[-2:]


def _with_one_name_twice(data: bytes) -> bytes:
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(archive.namelist()[0], archive.read(archive.namelist()[0]))
    return stream.getvalue()


def _repacked(data: bytes, change: Callable[[bytes], bytes] = bytes, info: dict[str, Any] | None = None) -> bytes:
    """The archive again, every member changed by `change`, with other fields in its directory."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as read, zipfile.ZipFile(stream, "w") as archive:
        for name in read.namelist():
            entry = zipfile.ZipInfo(name)
            for field, value in (info or {}).items():
                setattr(entry, field, value)
            archive.writestr(entry, change(read.read(name)), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _with_a_long_header(npy: bytes) -> bytes:
    """64 more spaces in the header of an array."""
    length = int.from_bytes(npy[8:10], "little")
    return npy[:8] + (length + 64).to_bytes(2, "little") + npy[10 : 9 + length] + b" " * 64 + npy[9 + length :]


def _with_another_crc(data: bytes) -> bytes:
    return data[:14] + bytes([data[14] ^ 1]) + data[15:]


def _with_more_flags(data: bytes) -> bytes:
    return data[:6] + bytes([data[6] | 4]) + data[7:]


def _with_bytes_behind_a_stream(data: bytes) -> bytes:
    """60 bytes behind the packed stream of the last member, which its sizes and the place of the directory count."""
    start = int.from_bytes(data[-6:-2], "little")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entry = archive.infolist()[-1]
    packed = entry.compress_size
    made = bytearray(data[:start] + bytes(range(60)) + data[start:-6] + (start + 60).to_bytes(4, "little") + data[-2:])
    local, directory = entry.header_offset, made.rindex(b"PK\x01\x02")
    extra = local + 30 + len(entry.filename)
    assert int.from_bytes(made[extra + 12 : extra + 20], "little") == packed
    made[extra + 12 : extra + 20] = (packed + 60).to_bytes(8, "little")
    made[directory + 20 : directory + 24] = (packed + 60).to_bytes(4, "little")
    return bytes(made)


def test_an_archive_that_is_repacked_in_the_same_form_is_fine(tmp_path: Path) -> None:
    filed = _changed_archive(tmp_path / "run", _repacked)
    assert _errors(validate(filed.path, **filed.settings).findings) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (partial(_repacked, change=_with_a_long_header), "as numpy writes it"),
        (partial(_repacked, info={"date_time": (2026, 1, 2, 3, 4, 6)}), "has a date"),
        (partial(_repacked, info={"external_attr": 0o644 << 16}), "attributes"),
        (_with_another_crc, "has another header than the directory"),
        (_with_more_flags, "has another header than the directory"),
        (_with_bytes_behind_a_stream, "behind the end of its packed stream"),
    ],
    ids=["npy headers", "dates", "attributes", "crc", "flags", "behind a stream"],
)
def test_nothing_hides_in_a_member(change: Callable[[bytes], bytes], words: str, tmp_path: Path) -> None:
    found = _errors(validate(_changed_archive(tmp_path / "run", change).path, strict=True).findings)
    assert {finding.rule for finding in found} == {"samples-file"}
    assert all(words in finding.message for finding in found)


@pytest.mark.parametrize(
    "change",
    [lambda data: b"before" + data, lambda data: data + b"after", _with_comment, _with_a_gap, _with_one_name_twice],
    ids=["bytes before", "bytes after", "a comment", "a gap", "a name twice"],
)
def test_an_archive_is_one_from_its_first_byte_to_its_last(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    filed = _changed_archive(tmp_path / "run", change)
    found = validate(filed.path, **filed.settings).findings
    assert _is_at(filed, found)
    assert {finding.rule for finding in _errors(found)} == {"samples-file"}


def _workers_backwards(arrays: dict[str, Any], _: str) -> None:
    for name in arrays:
        if name.endswith("/workers"):
            arrays[name] = arrays[name][::-1].copy()


def test_workers_take_rounds_in_their_order(tmp_path: Path) -> None:
    filed = _other_arrays(tmp_path / "run", _workers_backwards)
    assert _is_at(filed, validate(filed.path, **filed.settings).findings)
    found = validate(filed.path, without={"samples-cells"}, **filed.settings).findings
    assert _errors(found) == []


def _taken(workers: list[int]) -> CellSamples:
    return CellSamples(stream_ms=np.ones((6, 1)), process=tuple(workers), rounds=tuple(range(6)))


def test_a_worker_belongs_to_one_process_in_all_cells() -> None:
    owner: dict[int, int] = {}
    dealt = [0, 0, 1, 1, 2, 2]
    assert out_of_turn(_taken([0, 1, 2, 2, 3, 3]), dealt, owner) is None
    assert out_of_turn(_taken([0, 0, 2, 2, 3, 4]), dealt, owner) is None
    assert owner == {0: 0, 1: 0, 2: 1, 3: 2, 4: 2}
    assert out_of_turn(_taken([0, 0, 1, 1, 2, 2]), dealt, dict(owner)) == "worker 1 took rounds of process 1, and of process 0 elsewhere"
    assert out_of_turn(_taken([1, 0, 2, 2, 3, 3]), dealt, dict(owner)) is not None


def _payload_that_is_not_there(folder: Path) -> Filed:
    path = _put(folder, bases()["the recorded energy report"])
    return Filed(path=path, place="/provenance/payload_manifest/draws/0/path", settings={"payload": folder})


def _block_taken_out(key: str, folder: Path) -> Filed:
    document = copy.deepcopy(bases()["our published report"])
    del document["mkframe"]
    del document["source_sha256" if key == "packages" else "packages"]["mkframe/__init__.py" if key == "packages" else "mkframe"]
    return Filed(path=_put(folder, document), place=f"/{key}", settings={}, severity="W")


FILED: dict[tuple[str, str], Callable[[Path], Filed]] = {
    ("comparison", "block"): partial(_block_taken_out, "packages"),
    ("comparison", "samples"): _other_samples,
    ("comparison", "samples-file"): _stranger_in_the_samples,
    ("comparison", "samples-pairs"): partial(_other_arrays, change=_host_inside_in_one_sample),
    ("comparison", "samples-clock"): partial(_other_arrays, change=_times_of_no_clock),
    ("comparison", "samples-cells"): partial(_other_arrays, change=_no_workers),
    ("comparison", "strict"): partial(_strict_and_foreign, "the recorded comparison report"),
    ("energy", "strict"): partial(_strict_and_foreign, "the recorded energy report"),
    ("comparison", "rebuilt-summary"): _mean_of_other_samples,
    ("comparison", "rebuilt-step"): _another_step_of_the_clock,
    ("comparison", "rebuilt-interval"): _another_interval,
    ("comparison", "rebuilt-verdict"): _another_ratio,
    ("energy", "payload"): _payload_that_is_not_there,
}


def _is_at(filed: Filed, findings: Iterable[Finding]) -> bool:
    place = filed.place
    return any(
        finding.severity == filed.severity and (finding.pointer == place or (place != "" and finding.pointer.startswith(f"{place}/")))
        for finding in findings
    )


# Every rule is needed -------------------------------------------------------------------------------------------------------------

CARD = probe_gpu(gpu := FakeGpu(), rounds=2, now=gpu.now).document()


def _changed_card(path: str, value: Any) -> Document:
    document = copy.deepcopy(CARD)
    *parents, last = [int(token) if token.isdecimal() else token for token in path.split("/")[1:]]
    node: Any = document
    for token in parents:
        node = node[token]
    node[last] = value
    return document


CARD_FAULTS: tuple[tuple[str, Any, str], ...] = (
    ("/took_s", "long", "/took_s"),
    ("/events/floors/0/time/median_us", 1e6, "/events/floors/0/time/median_us"),
    ("/barriers/0/bare/rounds", 3, "/barriers/0/bare/rounds"),
    ("/measured_at_utc", "2026-02-31T00:00:00Z", "/measured_at_utc"),
    ("/device/uuid", None, "/device/uuid"),
    ("/clock/round_measured/readings", 1, "/clock/round_measured/readings"),
    ("/events/step_us", 0.05, "/events/step_us"),
    ("/launches/1", CARD["launches"][0], "/launches/1"),
    ("/barriers/1", CARD["barriers"][0], "/barriers/1"),
    ("/memory/0/sets", 1, "/memory/0/sets"),
    ("/l2/0/bytes", CARD["l2"][0]["bytes"] - 1, "/l2/0/moved_bytes"),
    ("/memory_models/0/latency_us", 1.9, "/memory_models/0/latency_us"),
    ("/checks", [], "/checks"),
)


def _card_mutants() -> list[tuple[Mutant, tuple[Finding, ...]]]:
    made = [
        Mutant(kind=path, base="a card", document=_changed_card(path, value), places=(place,), severity="E")
        for path, value, place in CARD_FAULTS
    ]
    return [(mutant, check_document(mutant.document).findings) for mutant in made]


def _format(mutant: Mutant) -> str:
    document = mutant.document
    return "device-card" if document.get("format") == CARD["format"] else "energy" if "validation" in document else "comparison"


@cache
def _found_alone() -> dict[tuple[str, str], Mutant]:
    """(format, rule) -> a mutant that this rule alone finds at its place."""
    found: dict[tuple[str, str], Mutant] = {}
    for mutant, findings in (*found_in_planted(), *_card_mutants()):
        finders = {finding.rule for finding in findings if _is_caught(mutant, (finding,))}
        if len(finders) == 1:
            found.setdefault((_format(mutant), finders.pop()), mutant)
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.format} {rule.id}")
def test_without_a_rule_a_mutant_gets_through(rule: Rule, tmp_path: Path) -> None:
    if (rule.format, rule.id) in FILED:
        filed = FILED[rule.format, rule.id](tmp_path / "run")
        assert _is_at(filed, validate(filed.path, **filed.settings).findings)
        assert not _is_at(filed, validate(filed.path, **filed.settings, without={rule.id}).findings)
        return
    mutant = _found_alone().get((rule.format, rule.id))
    assert mutant is not None, (
        "no mutant is found by this rule alone: add a kind to report_mutants.py or to a theme of report_mutants_own.py"
    )
    assert _is_caught(mutant, check_document(mutant.document).findings)
    assert not _is_caught(mutant, check_document(mutant.document, without={rule.id}).findings), str(mutant)


def test_our_sources_alone_tell_that_a_block_was_taken_out(tmp_path: Path) -> None:
    filed = _block_taken_out("source_sha256", tmp_path / "run")
    found = validate(filed.path).findings
    assert _is_at(filed, found)
    assert {finding.rule for finding in found} == {"block"}


def test_every_fault_in_files_belongs_to_a_rule() -> None:
    assert FILED.keys() <= {(rule.format, rule.id) for rule in RULES}
