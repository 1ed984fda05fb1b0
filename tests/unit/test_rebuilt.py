"""The strict profile: figures rebuilt from samples, forged reports that agree with themselves, and samples files by strangers."""

import copy
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_reports import NEVER_READY, Document, array, npz, on_host, reason_of, samples, write, zipped
from comparison_mutants import CELLS, GRAPH, OURS, RECORDED, at, index_of, odd, ours, put, times, verdict_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_comparison_rules import JSON, places

from mkframe.errors import UnreadableError
from mkframe.validate import RULES, Finding, Severity, check_document, validate, validate_stream
from mkframe.validate.rebuilt_rules import REBUILT_RULES
from mkframe.validate.samples_file import SamplesFile

DATA = npz(CELLS)
PLACE = f"development/0/{GRAPH}"
CELL = f"/mkframe/cells/{index_of(OURS, 0, GRAPH)}"
MEMBERS = {f"{name}.npy": array(value) for name, value in dict(np.load(io.BytesIO(DATA))).items()}


def written(folder: Path, edit: Callable[[Document], None] | None = None, data: bytes | None = DATA) -> Path:
    made = copy.deepcopy(OURS)
    if edit is not None:
        edit(made)
    return write(folder, made, data)


def told(path: Path, **options: Any) -> list[tuple[str, str, str]]:
    return [(str(finding.severity), finding.rule, finding.pointer) for finding in validate(path, strict=True, **options).findings]


def test_a_report_that_follows_from_its_samples_is_fine(tmp_path: Path) -> None:
    assert validate(written(tmp_path), strict=True).findings == ()


def test_a_report_of_a_real_run_is_fine(tmp_path: Path, run_cli: Any) -> None:
    done = run_cli(
        "shape=smoke",
        "engine=[torch-cublas,persistent]",
        "device=cpu",
        "timing.samples_per_round=20",
        "timing.rounds=4",
        "timing.processes=2",
        "out=run",
        "--quiet",
    )
    assert done.returncode == 0, done.stderr
    assert [finding for finding in validate(tmp_path / "run/report.json", strict=True).findings if finding.severity is Severity.ERROR] == []


def test_the_profile_asks_for_a_report_of_ours_from_a_file(tmp_path: Path, root: Path) -> None:
    recorded = root / "tests/data/valid/residual-mlp-rtx3090.json"
    assert validate(recorded).ok
    assert [item for item in told(recorded) if item[0] == "E"] == [("E", "strict", "")]
    path = written(tmp_path)
    assert [finding.rule for finding in validate(OURS, strict=True).findings] == ["strict"]
    assert [finding.rule for finding in check_document(OURS, strict=True).findings] == ["strict"]
    with path.open("rb") as stream:
        assert [(finding.rule, finding.pointer) for finding in validate_stream(stream, "-", strict=True).findings] == [
            ("strict", "/mkframe/samples")
        ]
    next(tmp_path.glob("samples-*.npz")).unlink()
    assert told(path) == [("E", "samples", "/mkframe/samples")]


def test_the_pointer_of_a_report_without_a_block_is_the_document() -> None:
    assert [
        (finding.rule, finding.pointer) for finding in check_document(RECORDED, strict=True).findings if finding.severity is Severity.ERROR
    ] == [("strict", "")]


ENTRY = f"/development/0/engines/{GRAPH}"
VERDICT = f"/mkframe/verdicts/{verdict_of(OURS, 0, 'torch-cublas')}"
STEP = "/mkframe/timing/timer_step_ms"


def faster(made: Document) -> None:
    """An engine that claims a tenth less than its samples say, in every figure."""
    node, key = at(made, "/development/0/engines/torch-cublas-graph/stream_summary")
    node[key] = {name: value if name == "count" else 0.9 * value for name, value in node[key].items()}
    interval = made["mkframe"]["cells"][index_of(made, 0, "torch-cublas-graph")]["interval"]
    interval |= {name: 0.9 * interval[name] for name in interval}
    record = made["mkframe"]["verdicts"][verdict_of(made, 0, "torch-cublas-graph")]
    record |= {name: 0.9 * record[name] for name in ("ratio", "ratio_low", "ratio_high")}


FORGED = [
    ("rebuilt-summary", times(f"{ENTRY}/stream_summary/p95_ms", 1 - 1e-9), f"{ENTRY}/stream_summary/p95_ms"),
    ("rebuilt-summary", times(f"{ENTRY}/stream_summary/min_ms", 0.9), f"{ENTRY}/stream_summary/min_ms"),
    ("rebuilt-summary", times(f"{ENTRY}/host_summary/max_ms", 1.1), f"{ENTRY}/host_summary/max_ms"),
    ("rebuilt-summary", times(f"{ENTRY}/host_summary/mean_ms", 1 + 1e-6), f"{ENTRY}/host_summary/mean_ms"),
    ("rebuilt-interval", times(f"{CELL}/interval/low_ms", 0.999), f"{CELL}/interval/low_ms"),
    ("rebuilt-interval", times(f"{CELL}/interval/high_ms", 1.001), f"{CELL}/interval/high_ms"),
    ("rebuilt-verdict", times(f"{VERDICT}/ratio_low", 0.999), f"{VERDICT}/ratio_low"),
    ("rebuilt-verdict", times(f"{VERDICT}/ratio_high", 1.001), f"{VERDICT}/ratio_high"),
]


@pytest.mark.parametrize(("rule", "edit", "pointer"), FORGED)
def test_a_figure_that_does_not_follow_is_found_and_by_one_rule(tmp_path: Path, rule: str, edit: Any, pointer: str) -> None:
    path = written(tmp_path, edit)
    assert validate(path).findings == ()
    assert told(path) == [("E", rule, pointer)]
    assert told(path, without={rule}) == []


def test_a_verdict_that_is_not_the_one_of_the_samples_is_found(tmp_path: Path) -> None:
    def undecided(made: Document) -> None:
        at(made, VERDICT)[0][at(made, VERDICT)[1]] |= {"verdict": "UNDECIDED", "reason": "it suits us"}

    path = written(tmp_path, undecided)
    assert told(path) == [("E", rule, f"{VERDICT}/verdict") for rule in ("verdict-word", "rebuilt-verdict")]


def test_a_step_that_the_samples_do_not_show_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, put(STEP, 64e-6))
    assert validate(path).findings == ()
    assert ("E", "rebuilt-step", STEP) in told(path)
    path = written(tmp_path / "unknown", put(STEP, None))
    assert ("E", "rebuilt-step", STEP) in told(path)
    assert all(rule != "rebuilt-step" for _, rule, _ in told(path, without={"rebuilt-step"}))


def test_a_report_forged_from_end_to_end_agrees_with_itself_and_not_with_its_samples(tmp_path: Path) -> None:
    path = written(tmp_path, faster)
    assert validate(path).findings == ()
    found = told(path)
    assert {rule for _, rule, _ in found} == {"rebuilt-summary", "rebuilt-interval", "rebuilt-verdict"}
    assert {pointer.rpartition("/")[2] for _, rule, pointer in found if rule == "rebuilt-summary"} == {
        "p50_ms",
        "p95_ms",
        "min_ms",
        "max_ms",
        "mean_ms",
    }


def _before_1_2(made: Document) -> None:
    del made["mkframe"]["device"]["peaks"]
    for cell in made["mkframe"]["cells"]:
        del cell["rates"], cell["kernels"], cell["twin"]


def test_without_rates_intervals_are_of_an_older_rule_and_that_is_said(tmp_path: Path) -> None:
    def older(made: Document) -> None:
        _before_1_2(made)
        times(f"{CELL}/interval/low_ms", 0.99)(made)

    path = written(tmp_path, older)
    assert told(path) == [("W", "rebuilt-interval", "/mkframe/cells")]
    older_and_wrong = written(tmp_path / "wrong", lambda made: (older(made), times(f"{ENTRY}/stream_summary/min_ms", 0.9)(made))[0])
    assert ("E", "rebuilt-summary", f"{ENTRY}/stream_summary/min_ms") in told(older_and_wrong)


SINGLE = (0,) * 6
ONE: Any = {(0, "torch-cublas"): odd(samples(20.0, 1, process=SINGLE)), (0, "persistent"): samples(20.5, 2, process=SINGLE)}


def ranked(word: str) -> Document:
    """A report of one process whose only verdict, on two medians 2 % apart, is `word`, with an interval that fits it."""
    made = ours(ONE, SINGLE)
    record = made["mkframe"]["verdicts"][0]
    assert record["verdict"] == "UNDECIDED"
    if word != "UNDECIDED":
        record |= {"verdict": word, "reason": None, "ratio_low": 1.001, "ratio_high": 1.1 * record["ratio"]}
    return made


def test_with_one_process_the_resamples_are_not_rebuilt_but_the_rule_holds(tmp_path: Path) -> None:
    honest = ranked("UNDECIDED")
    times("/mkframe/cells/0/interval/low_ms", 0.999)(honest)
    assert told(write(tmp_path / "honest", honest, npz(ONE, SINGLE))) == []
    path = write(tmp_path / "ranked", ranked("SLOWER"), npz(ONE, SINGLE))
    assert told(path) == [("E", rule, "/mkframe/verdicts/0/verdict") for rule in ("verdict-word", "rebuilt-verdict")]


def test_every_rule_of_the_profile_is_silent_without_it(tmp_path: Path) -> None:
    path = written(tmp_path, lambda made: [edit(made) for _, edit, _ in FORGED] and None)
    assert validate(path).findings == ()
    seen = {rule for rule, _, _ in FORGED} | {"strict", "samples-file", "samples-pairs", "samples-cells", "samples-clock", "rebuilt-step"}
    assert seen == {rule.id for rule in REBUILT_RULES}
    assert all(rule in RULES for rule in REBUILT_RULES)


# --- samples files by strangers


def member(name: str, value: Any) -> bytes:
    return zipped({**MEMBERS, f"{PLACE}/{name}.npy": value if isinstance(value, bytes) else array(value)})


def _but(*names: str) -> bytes:
    return zipped({name: data for name, data in MEMBERS.items() if name not in names})


def _bomb() -> bytes:
    head = array(np.zeros((6, 50)))
    return zipped({**MEMBERS, f"{PLACE}/stream_ms.npy": head + bytes(65 * 2**20)})


def _pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    return buffer.getvalue()


STREAM: Any = CELLS[0, GRAPH]
WHOLE, ITS_CELL = "/mkframe/samples", CELL
STRANGE: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "no archive": (lambda: b"samples", WHOLE, "no .npz file"),
    "empty": (lambda: b"", WHOLE, "no .npz file"),
    "bomb": (_bomb, WHOLE, "larger than 64 MiB when unpacked"),
    "other method": (lambda: zipped(MEMBERS, zipfile.ZIP_BZIP2), WHOLE, "packed in a way that numpy does not use"),
    "traversal": (lambda: zipped({**MEMBERS, "../../evil.npy": array(STREAM)}), WHOLE, 'holds "../../evil.npy", which no cell'),
    "absolute": (lambda: zipped({**MEMBERS, "/evil": b"x"}), WHOLE, 'holds "/evil", which no cell'),
    "array of no cell": (lambda: zipped({**MEMBERS, f"{PLACE}2/stream_ms.npy": array(STREAM)}), WHOLE, "which no cell"),
    "no stream": (lambda: _but(f"{PLACE}/stream_ms.npy"), ITS_CELL, "is missing"),
    "no host": (lambda: _but(f"{PLACE}/host_ms.npy"), ITS_CELL, "is missing"),
    "no rounds": (lambda: _but(f"{PLACE}/rounds.npy"), ITS_CELL, "is missing"),
    "pickled": (lambda: member("stream_ms", _pickled()), ITS_CELL, "no array of <f8"),
    "float32": (lambda: member("stream_ms", STREAM.astype(np.float32)), ITS_CELL, "no array of <f8"),
    "big-endian": (lambda: member("host_ms", STREAM.astype(">f8")), ITS_CELL, "no array of <f8"),
    "rounds in float64": (lambda: member("rounds", np.arange(6.0)), ITS_CELL, "no array of <i8"),
    "flat": (lambda: member("host_ms", STREAM.ravel()), ITS_CELL, "another shape"),
    "not a number": (lambda: member("host_ms", np.where(STREAM.max() == STREAM, np.nan, STREAM)), ITS_CELL, "no numbers"),
    "negative": (lambda: member("host_ms", -STREAM), ITS_CELL, "negative"),
    "other shapes": (lambda: member("host_ms", STREAM[:, :40]), ITS_CELL, "have the shapes (6, 50) and (6, 40)"),
    "other rounds": (lambda: member("rounds", np.array([0, 1, 2, 3, 4, 6])), ITS_CELL, "a cell that passed has 0 to 5"),
    "workers of two processes": (lambda: member("workers", np.array([0, 0, 0, 1, 2, 2])), ITS_CELL, "one worker took rounds of several"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_samples_file_that_is_not_one_is_a_finding_at_its_place(tmp_path: Path, name: str) -> None:
    made, pointer, words = STRANGE[name]
    path = written(tmp_path, data=made())
    assert validate(path).findings == ()
    found = [finding for finding in validate(path, strict=True).findings if finding.rule == "samples-file"]
    assert [finding.pointer for finding in found] == [pointer]
    assert words in found[0].message
    assert not validate(path, strict=True).ok
    assert all(rule == "samples-file" for _, rule, _ in told(path))
    assert told(path, without={"samples-file"}) == []
    assert {entry.name for entry in tmp_path.iterdir()} == {"report.json", next(tmp_path.glob("samples-*")).name}


def test_fewer_samples_than_stated_are_found(tmp_path: Path) -> None:
    short = {name: array(np.load(io.BytesIO(data))[:, :40]) if name.endswith("_ms.npy") else data for name, data in MEMBERS.items()}
    found = told(written(tmp_path, data=zipped(short)))
    assert {rule for _, rule, _ in found} == {"samples-file"}
    assert len(found) == len([value for value in CELLS.values() if not isinstance(value, str)])


def test_a_cell_that_did_not_pass_may_have_samples_of_some_rounds(tmp_path: Path) -> None:
    name = "development/1/persistent"
    some = {"stream_ms": STREAM[:2], "host_ms": on_host(STREAM[:2]), "rounds": np.arange(2), "workers": np.array([0, 0])}
    made = zipped({**MEMBERS, **{f"{name}/{key}.npy": array(value) for key, value in some.items()}})
    assert told(written(tmp_path / "a", data=made)) == []
    short = zipped({**MEMBERS, **{f"{name}/{key}.npy": array(value[:, :9] if value.ndim == 2 else value) for key, value in some.items()}})
    assert told(written(tmp_path / "b", data=short)) == [("E", "samples-file", f"/mkframe/cells/{index_of(OURS, 1, 'persistent')}")]


def test_a_file_without_workers_is_read_as_older_ones_are(tmp_path: Path) -> None:
    data = npz(CELLS, workers=False)
    assert told(written(tmp_path / "older", _before_1_2, data)) == [("W", "rebuilt-interval", "/mkframe/cells")]
    found = told(written(tmp_path / "newer", data=data))
    assert {(severity, rule) for severity, rule, _ in found} == {("E", "samples-cells")}
    assert len(found) == len([value for value in CELLS.values() if not isinstance(value, str)])


def _changed(place: str, **arrays: Any) -> bytes:
    """The samples file with other arrays in one cell."""
    return zipped({**MEMBERS, **{f"{place}/{name}.npy": array(value) for name, value in arrays.items()}})


def test_host_and_stream_belong_together_sample_by_sample(tmp_path: Path) -> None:
    pairs = {"stream_ms": STREAM, "host_ms": np.sort(on_host(STREAM).ravel()).reshape(STREAM.shape)}
    path = written(tmp_path, data=_changed(PLACE, **pairs))
    assert validate(path).findings == ()
    assert told(path) == [("E", "samples-pairs", CELL)]
    assert told(path, without={"samples-pairs"}) == []


def _failed(made: Document, outcome: str, **changes: Any) -> str:
    """Cell 1 of engine persistent ends in another way; its place."""
    index = index_of(made, 1, "persistent")
    never = NEVER_READY if outcome == "unsupported" else {}
    made["mkframe"]["cells"][index] |= {"outcome": outcome, "reason": reason_of(outcome), **never, **changes}
    return f"/mkframe/cells/{index}"


@pytest.mark.parametrize(
    ("changes", "rounds", "severity"),
    [
        ({"outcome": "unsupported"}, 6, "E"),
        ({"outcome": "timeout", "check": None}, 6, "E"),
        ({"outcome": "timeout", "checks": []}, 3, "E"),
        ({"outcome": "timeout"}, 6, "W"),
        ({"outcome": "timeout"}, 5, None),
        ({"outcome": "timeout", "worker": 7}, 3, "E"),
    ],
)
def test_samples_of_a_cell_that_did_not_pass_must_fit_what_is_said_of_it(
    tmp_path: Path, changes: Document, rounds: int, severity: str | None
) -> None:
    workers = np.array([0, 0, 1, 1, 2, 2][:rounds]) + changes.get("worker", 0)
    data = _changed(
        "development/1/persistent", stream_ms=STREAM[:rounds], host_ms=on_host(STREAM[:rounds]), rounds=np.arange(rounds), workers=workers
    )

    def edit(made: Document) -> None:
        _failed(made, **{name: value for name, value in changes.items() if name != "worker"})
        if changes["outcome"] == "unsupported":
            del made["development"][1]["engines"]["persistent"]

    found = [item for item in told(written(tmp_path, edit, data)) if item[1] != "engine-set"]
    place = f"/mkframe/cells/{index_of(OURS, 1, 'persistent')}"
    assert found == ([] if severity is None else [(severity, "samples-cells", place)])


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300, 5e-324, 1.7e308])
def test_times_at_the_ends_of_float64_are_no_exception(tmp_path: Path, value: float) -> None:
    extreme = np.full((6, 50), value)
    path = written(tmp_path, data=zipped({**MEMBERS, f"{PLACE}/stream_ms.npy": array(extreme), f"{PLACE}/host_ms.npy": array(extreme)}))
    found = told(path)
    assert ("E", "rebuilt-summary", f"{ENTRY}/stream_summary/p50_ms") in found


@settings(max_examples=100)
@given(junk=st.binary(min_size=1, max_size=60), where=st.integers(0, len(DATA)))
def test_bytes_put_anywhere_into_the_samples_are_found(junk: bytes, where: int) -> None:
    """At both ends, between arrays, and within them."""
    SamplesFile(DATA, "beside the report", len(CELLS))
    with pytest.raises(UnreadableError):
        SamplesFile(DATA[:where] + junk + DATA[where:], "beside the report", len(CELLS))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_samples_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    damaged = bytearray(DATA)
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(DATA) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(DATA)) | st.just(len(DATA)))
    path = written(tmp_path, data=bytes(damaged[:end]))
    for side in tmp_path.glob("samples-*.npz"):
        if side.name != json.loads(path.read_text())["mkframe"]["samples"]["file"]:
            side.unlink()
    findings: tuple[Finding, ...] = validate(path, strict=True).findings
    assert all(finding.message and "\n" not in finding.message for finding in findings)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_reports_beside_good_samples_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    made = json.loads(written(tmp_path).read_text())
    path = data.draw(st.sampled_from([path for path in places(made) if path[0] in ("mkframe", "development")]))
    node: Any = made
    for key in path[:-1]:
        node = node[key]
    value = data.draw(st.sampled_from(("passed", 0, 1, 10**6, 1e300, None)) | JSON)
    node[path[-1]] = value
    (tmp_path / "report.json").write_text(json.dumps(made))
    validate(tmp_path / "report.json", strict=True)
    validate(tmp_path / "report.json", strict=True, without={"schema"})


def test_a_link_or_a_pipe_beside_the_report_is_not_rebuilt_from(tmp_path: Path) -> None:
    path = written(tmp_path)
    (side,) = tmp_path.glob("samples-*.npz")
    side.rename(tmp_path / "elsewhere")
    side.symlink_to("elsewhere")
    assert told(path) == [("E", "samples", "/mkframe/samples")]
    side.unlink()
    os.mkfifo(side)
    assert told(path) == [("E", "samples", "/mkframe/samples")]
