"""mkframe.validate as a library: example files, our own report, and the words of its findings."""

import copy
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path
from typing import Any

import pytest

from mkframe import sentences
from mkframe.canonical import digest, dumps, sha256
from mkframe.model.checks import all_checks
from mkframe.model.device import ClockReading
from mkframe.model.outcome import Outcome, Verdict
from mkframe.model.peaks import DatasheetPeaks, MeasuredPeaks, PeaksRecord, RatesRecord
from mkframe.model.precision import PRECISIONS
from mkframe.model.report import (
    CaseResult,
    CellRecord,
    CheckRecord,
    ComparisonReport,
    CostRecord,
    DeviceRecord,
    EnergyRecord,
    EngineResult,
    EnvironmentRecord,
    FloorRecord,
    FrameworkBlock,
    Interval,
    RoundRecord,
    SamplesRecord,
    Summary,
    TimingRecord,
    VerdictRecord,
)
from mkframe.report.run_facts import run_facts
from mkframe.validate import Finding, Result, Severity, check_document, check_schema, validate
from mkframe.validate.finding import pointer, readable
from mkframe.validate.formats import recognise
from mkframe.validate.rule import Subject
from mkframe.validate.run_facts import run_facts as facts_of_document
from mkframe.validate.schema_rule import MAX_FINDINGS
from mkframe.validate.schemas import schema, validator

DATA = Path(__file__).parent.parent / "data"
VALID = sorted((DATA / "valid").glob("*.json"))
INVALID = sorted(path for path in (DATA / "invalid").glob("*.json") if path.name != "expected.json")
EXPECTED = json.loads((DATA / "invalid" / "expected.json").read_text())
COMPARISON = json.loads((DATA / "valid" / "residual-mlp-rtx3090.json").read_text())
ENERGY = json.loads((DATA / "valid" / "qda-energy-a100.json").read_text())
MINIMAL = json.loads((DATA / "valid" / "minimal-comparison.json").read_text())
HASH = "0123456789abcdef" * 4
RECORDED_ON = "2026-10-05"


def _found(document: Any) -> list[tuple[str, str]]:
    """What the schema says of a document."""
    return [(finding.pointer, finding.message) for finding in check_schema(document).findings]


def _errors(result: Result) -> list[Finding]:
    return [finding for finding in result.findings if finding.severity is Severity.ERROR]


def _edited(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """`document` with the value at a JSON Pointer replaced; `...` removes it."""
    changed = copy.deepcopy(document)
    node: Any = changed
    *parents, last = [int(token) if token.isdecimal() else token for token in path.split("/")[1:]]
    for token in parents:
        node = node[token]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return changed


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_example_files_that_are_valid(path: Path) -> None:
    result = validate(path)
    assert _errors(result) == []
    assert result.ok
    assert result.exit_code == 0
    assert result.path == str(path)
    assert result.format == ("energy" if "energy" in path.stem else "comparison")


def test_every_invalid_example_says_what_is_expected_of_it() -> None:
    assert {path.name for path in INVALID} == EXPECTED.keys()
    assert len(VALID) >= 3


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_example_files_that_are_invalid(path: Path) -> None:
    result = validate(str(path))
    assert not result.ok
    assert result.exit_code == EXPECTED[path.name]["exit"]
    assert (result.format is None) == (result.exit_code == 2)
    assert [finding.pointer for finding in _errors(result)] == EXPECTED[path.name]["pointers"]
    assert all(finding.message and "\n" not in finding.message for finding in result.findings)


def _mutants() -> dict[str, tuple[bytes, int, str]]:
    """Faults that a schema or the reader sees, planted into the recorded reports: content, exit code, place."""
    engine = "/development/0/engines/persistent"
    text = (DATA / "valid" / "residual-mlp-rtx3090.json").read_text()
    p50 = COMPARISON["development"][0]["engines"]["persistent"]["stream_summary"]["p50_ms"]
    edited = {
        "failed_with_times": (_edited(COMPARISON, f"{engine}/passed", False), 1, engine),
        "short_hash": (_edited(COMPARISON, "/source_sha256/mlp.py", COMPARISON["source_sha256"]["mlp.py"][:-1]), 1, "/source_sha256"),
        "missing_summary": (_edited(COMPARISON, f"{engine}/stream_summary", ...), 1, engine),
        "negative_time": (_edited(COMPARISON, f"{engine}/stream_summary/min_ms", -0.001), 1, f"{engine}/stream_summary"),
        "not_a_report": ({"hello": "world"}, 2, ""),
        "repeats_zero": (_edited(ENERGY, "/rounds/0/repeats", 0), 1, "/rounds/0"),
        "extra_key": (COMPARISON | {"operator_note": "ran at night"}, 0, ""),
    }
    made = {name: (dumps(document).encode(), code, place) for name, (document, code, place) in edited.items()}
    made["nan"] = (text.replace(f'"p50_ms": {p50}', '"p50_ms": NaN', 1).encode(), 2, f"{engine}/stream_summary/p50_ms")
    made["duplicate_key"] = (text.replace('"rounds": 5,', '"rounds": 4, "rounds": 5,', 1).encode(), 2, "/rounds")
    made["truncated"] = (text[: len(text) // 2].encode(), 2, "")
    return made


MUTANTS = _mutants()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_planted_into_a_recorded_report_is_found_at_its_place(name: str, tmp_path: Path) -> None:
    content, code, place = MUTANTS[name]
    (tmp_path / "report.json").write_bytes(content)
    result = validate(tmp_path / "report.json")
    assert result.exit_code == code
    assert bool(_errors(result)) == (code != 0)
    assert all(finding.pointer.startswith(place) for finding in _errors(result))


TIMES = Summary(count=10, p50_ms=0.25, p95_ms=0.5, min_ms=0.125, max_ms=0.75, mean_ms=0.3125)


def _report() -> ComparisonReport:
    """A report that uses every field of every type of the model."""
    shape = {"rows": 4, "channels": 8, "hidden": 16}
    passed = CellRecord(
        set="smoke",
        case=0,
        shape=shape,
        engine="torch-cublas",
        form="eager",
        implementation="cpu BLAS",
        baseline=True,
        options={"tile": 3, "names": ["a"]},
        outcome=Outcome.PASSED,
        check=CheckRecord(max_abs_error=1e-7, mean_abs_error=1e-8, violations=0, elements=32, rtol=3e-4, atol=3e-4, rounding_rows=0),
        checks=all_checks("cpu", chained=False),
        cost=CostRecord(bytes=1000, flops=2000),
        rates=RatesRecord(bytes_per_s=4e6, flops_per_s=8e6, compute_share=None, memory_share=None, read_share=None),
        bind_s=0.1,
        check_s=0.2,
        interval=Interval(low_ms=0.2, high_ms=0.3),
        facts={"compiled": {"mode": "x"}},
    )
    failed = CellRecord(
        set="smoke",
        case=0,
        shape=shape,
        engine="broken",
        form="eager",
        implementation="broken",
        baseline=False,
        options={},
        outcome=Outcome.INCORRECT,
        reason="violations",
        cost=CostRecord(bytes=1000, flops=2000),
    )
    other = replace(passed, engine="torch-compile")
    config = {
        "workload": {"id": "residual_mlp"},
        "engine": {"baselines": {"select": "baselines"}, "broken": {"options": {}}},
        "shape": {"smoke": {"seed": 1234, "cases": [shape]}},
        "precision": asdict(PRECISIONS["fp16"]),
        "device": {"kind": "auto", "card": None},
        "timing": {"protocol": "per_call", "rounds": 2, "samples_per_round": 5, "processes": 2, "warmups": 3, "hold": "auto"}
        | {"spin_up_s": "auto", "cell_timeout_s": 600.0}
        | dict.fromkeys(("replays", "k1", "slope_us", "sets", "method", "footprint")),
        "targets": "none",
        "energy": {"protocol": "none"},
    }
    block = FrameworkBlock(
        version="0.1.0",
        workload="residual_mlp",
        precision=PRECISIONS["fp16"],
        device=DeviceRecord(
            kind="cpu",
            name="A CPU",
            uuid=None,
            compute_capability=None,
            multiprocessors=None,
            memory_bytes=2**34,
            l2_bytes=None,
            driver=None,
            cuda=None,
            threads=2,
            card=None,
            peaks=PeaksRecord(
                datasheet=DatasheetPeaks(memory_bytes_per_s=1e9, flops_per_s=None, source="a sheet"),
                measured=MeasuredPeaks(card_sha256=HASH, driver=None, read_bytes_per_s=9e8, write_bytes_per_s=8e8, copy_bytes_per_s=None),
            ),
        ),
        environment=EnvironmentRecord(python="3.11.9", platform="Linux x86_64", source_dirty=False),
        config=config,
        config_sha256=digest(config),
        seeds={"smoke": 1234},
        timing=TimingRecord(
            protocol="per_call",
            rounds=2,
            samples_per_round=5,
            processes=2,
            warmups=3,
            hold=False,
            cache_state="warm",
            round_process=(0, 1),
            timer_step_ms=None,
            floors=tuple(
                FloorRecord(name="empty-call", clock=clock, process=process, summary=TIMES)
                for process in (0, 1)
                for clock in ("stream", "host")
            ),
        ),
        energy=EnergyRecord(),
        samples=SamplesRecord(file=f"samples-{HASH}.npz", sha256=HASH),
        cells=(passed, other, failed),
        rounds=tuple(
            RoundRecord(set="smoke", case=0, process=index, round=index, before=ClockReading(), after=ClockReading(sm_clock_mhz=2000.0))
            for index in (0, 1)
        ),
        verdicts=(
            VerdictRecord(
                set="smoke",
                case=0,
                engine="torch-cublas",
                baseline="torch-compile",
                verdict=Verdict.UNDECIDED,
                ratio=1.0,
                ratio_low=0.9,
                ratio_high=1.1,
                reason="the intervals of the medians overlap",
            ),
        ),
        incomplete=False,
    )
    engines = {
        **dict.fromkeys(
            ("torch-cublas", "torch-compile"),
            EngineResult(passed=True, replay_changed_input=True, stream_summary=TIMES, host_summary=TIMES),
        ),
        "broken": EngineResult(passed=False, replay_changed_input=False),
    }
    return ComparisonReport(
        recorded_on=RECORDED_ON,
        device="A CPU",
        precision=PRECISIONS["fp16"].describe(),
        packages={"mkframe": "0.1.0", "torch": "2.13.0"},
        timing="per_call",
        rounds=2,
        samples_per_round=5,
        source_sha256={"mkframe/__init__.py": HASH},
        source_commit=HASH[:40],
        sets={"smoke": (CaseResult(shape=shape, engines=engines),)},
        limitations=sentences.limitations(run_facts(block, RECORDED_ON)),
        sanitizers="not run",
        source_replay_checks=sentences.replay_checks(run_facts(block, RECORDED_ON)),
        mkframe=block,
    )


def test_our_own_report_is_valid_as_a_document_and_as_a_file(tmp_path: Path) -> None:
    hash_of_file = sha256(b"samples")
    report = _report()
    side = SamplesRecord(file=f"samples-{hash_of_file}.npz", sha256=hash_of_file)
    device = report.mkframe.device
    assert device.peaks is not None
    device = replace(device, peaks=replace(device.peaks, datasheet=None))  # a CPU has none
    document = replace(report, mkframe=replace(report.mkframe, samples=side, device=device)).document()
    assert check_document(document).findings == ()
    (tmp_path / side.file).write_bytes(b"samples")
    (tmp_path / "report.json").write_text(dumps(document), encoding="utf-8")
    result = validate(tmp_path / "report.json")
    assert (result.ok, result.format, result.findings) == (True, "comparison", ())


def test_the_sentences_of_a_report_follow_from_the_same_facts_before_and_after_it_was_written() -> None:
    report = _report()
    written = json.loads(dumps(report.document()))
    assert facts_of_document(Subject(document=written)) == run_facts(report.mkframe, RECORDED_ON)


def test_a_report_that_the_model_should_not_hold_is_refused_before_it_is_written() -> None:
    report = _report()
    wrong = replace(report, mkframe=replace(report.mkframe, config_sha256="", energy=replace(report.mkframe.energy, u_mj=float("nan"))))
    assert [place for place, _ in _found(wrong.document())] == ["/mkframe/energy/u_mj"]
    wrong = replace(report, rounds=0, mkframe=replace(report.mkframe, config_sha256=""))
    assert [place for place, _ in _found(wrong.document())] == ["/mkframe/config_sha256", "/rounds"]


OURS = _report().document()


def _objects(node: Any, path: str = "") -> list[str]:
    found = [path] if isinstance(node, dict) else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return found + [place for key, value in items for place in _objects(value, f"{path}/{key}")]


OPEN = ("/config", "/options", "/facts", "/seeds", "/shape")  # maps by nature
CLOSED = [place for place in _objects(OURS["mkframe"], "/mkframe") if not any(f"{word}/" in f"{place}/" for word in OPEN)]


def test_the_closed_objects_of_our_block_are_found() -> None:
    assert len(CLOSED) == 37, CLOSED
    assert "/mkframe/timing/floors/0/summary" in CLOSED


@pytest.mark.parametrize("place", CLOSED)
def test_an_unknown_key_in_our_block_is_an_error_at_that_key(place: str) -> None:
    assert [where for where, _ in _found(_edited(OURS, f"{place}/surprise", 1))] == [f"{place}/surprise"]


def _younger_keys(node: Any) -> set[str]:
    """Keys that the schema got after its first version: older reports lack them."""
    found = {key for key, value in node.items() if isinstance(value, dict) and "x-since" in value} if isinstance(node, dict) else set()
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return found.union(*map(_younger_keys, children))


def test_every_key_of_our_block_is_required_but_those_that_older_reports_lack() -> None:
    younger = _younger_keys(schema("comparison"))
    assert younger == {"other_processes", "kernels", "twin", "peaks", "rates"}
    for place in CLOSED:
        node: Any = OURS
        for token in place.split("/")[1:]:
            node = node[int(token) if token.isdecimal() else token]
        for key in node:
            expected = [] if key in younger else [place]
            assert [where for where, _ in _found(_edited(OURS, f"{place}/{key}", ...))] == expected, (place, key)


@pytest.mark.parametrize("key", ["timing", "sanitizers", "source_replay_checks", "limitations"])
def test_our_report_has_every_key_of_the_top_level(key: str) -> None:
    found = _found(_edited(OURS, f"/{key}", ...))
    assert len(found) == 1
    assert found[0][0] == ""
    assert f"the key {key} is missing" in found[0][1]


@pytest.mark.parametrize("name", ["../samples.npz", f"samples-{HASH}.npz\n", f"a/samples-{HASH}.npz", f"samples-{HASH.upper()}.npz", ""])
def test_the_samples_file_is_a_bare_name(name: str) -> None:
    assert [where for where, _ in _found(_edited(OURS, "/mkframe/samples/file", name))] == ["/mkframe/samples/file"]


ENGINE = "/development/0/engines/persistent"


@pytest.mark.parametrize(
    ("document", "path", "value", "place", "message"),
    [
        (COMPARISON, "/rounds", "5", "/rounds", 'rounds is "5", must be an integer'),
        (COMPARISON, "/rounds", True, "/rounds", "rounds is true (a boolean), must be an integer"),
        (COMPARISON, "/rounds", 0, "/rounds", "rounds is 0, must be at least 1"),
        (COMPARISON, "/device", ..., "", "the key device is missing: Name of the device that the times were measured on."),
        (COMPARISON, "/device", "", "/device", 'device is "", must be text that is not empty'),
        (COMPARISON, "/development", {}, "/development", "development is an empty object, must be an array"),
        (COMPARISON, "/development", [], "/development", "development is an empty array, must have at least 1"),
        (COMPARISON, "/development/2", 7, "/development/2", "item 2 is 7, must be an object"),
        (COMPARISON, "/recorded_on", "5 October", "/recorded_on", 'recorded_on is "5 October", must be a date YYYY-MM-DD'),
        (COMPARISON, f"{ENGINE}/stream_summary/min_ms", -0.001, f"{ENGINE}/stream_summary/min_ms", "min_ms is -0.001, must be at least 0"),
        (
            COMPARISON,
            f"{ENGINE}/host_summary",
            ...,
            ENGINE,
            "the key host_summary is missing: passed is true, and a cell that passed has both summaries",
        ),
        (ENERGY, "/rounds/3/repeats", 0, "/rounds/3/repeats", "repeats is 0, must be at least 1"),
        (ENERGY, "/completed_at_utc", ..., "", "the key completed_at_utc is missing: a report with rounds has it"),
        (
            ENERGY,
            "/hardware/compute_capability",
            [8, 0, 0],
            "/hardware/compute_capability",
            "compute_capability is an array with 3 items, must have at most 2",
        ),
        (
            ENERGY,
            "/validation/cpu_correct",
            ...,
            "/validation",
            "the key cpu_correct is missing: it compares labels, and holds every field",
        ),
        (OURS, "/mkframe/cells/0/outcome", "pased", "/mkframe/cells/0/outcome", 'outcome is "pased", must be one of "passed", "incorrect"'),
        (OURS, "/mkframe/cells/0/outcom", 1, "/mkframe/cells/0/outcom", 'the key "outcom" is unknown here; did you mean outcome?'),
        (OURS, "/mkframe/samples/zzz", 1, "/mkframe/samples/zzz", 'the key "zzz" is unknown here; known keys: file, sha256'),
        (OURS, "/mkframe/format", "comparison/2", "/mkframe/format", 'format is "comparison/2", must be "comparison/1"'),
        (OURS, "/mkframe/verdicts/0/ratio", 0, "/mkframe/verdicts/0/ratio", "ratio is 0, must be above 0"),
        (OURS, "/mkframe/cells/0/check", 3, "/mkframe/cells/0/check", "check is 3, must be an object or null"),
    ],
)
def test_a_message_names_the_key_what_was_found_and_what_is_allowed(
    document: dict[str, Any], path: str, value: Any, place: str, message: str
) -> None:
    found = [item for item in _found(_edited(document, path, value)) if item[1].startswith(message)]
    assert [where for where, _ in found] == [place]


def test_a_failed_cell_with_times_says_so_for_each_summary() -> None:
    found = _found(_edited(COMPARISON, f"{ENGINE}/passed", False))
    assert found == [
        (ENGINE, f"persistent holds {name}: passed is false, and only a cell that passed has times")
        for name in ("stream_summary", "host_summary")
    ]


def test_every_violation_is_a_finding_of_its_own_ordered_by_place() -> None:
    wrong = _edited(COMPARISON, "/rounds", 0)
    for index in (4, 0):
        wrong = _edited(wrong, f"/development/{index}/shape/rows", 0)
    wrong = _edited(_edited(wrong, "/device", ...), "/precision", ...)
    assert [where for where, _ in _found(wrong)] == ["", "", "/development/0/shape/rows", "/development/4/shape/rows", "/rounds"]


def test_a_report_without_a_shape_set_says_what_one_is() -> None:
    ((place, message),) = _found({key: value for key, value in COMPARISON.items() if key not in ("development", "assessment")})
    assert place == ""
    assert "at least one shape set" in message


def test_the_list_of_findings_ends_with_a_word_when_it_is_cut() -> None:
    findings = check_schema(MINIMAL | {"limitations": [1] * (MAX_FINDINGS + 5)}).findings
    assert len(findings) == MAX_FINDINGS + 1
    assert "the rest is not listed" in findings[-1].message


@pytest.mark.parametrize(
    ("document", "format"),
    [
        ({"samples_per_round": 1}, "comparison"),
        ({"mine": [{}, {"shape": {}, "engines": {}}]}, "comparison"),
        ({"validation": {}}, "energy"),
        ({"rounds": [{"gross_mj": 1}]}, "energy"),
        (COMPARISON | {"validation": {}}, "comparison"),
        (ENERGY | {"samples_per_round": 7}, "energy"),
        ({"samples_per_round": 1, "validation": {}}, "comparison"),
        ({"rounds": [{"wall_ms": 1}]}, None),
        ({"mine": [{"shape": {}}, {"engines": {}}]}, None),
        ({}, None),
        ([], None),
        ([COMPARISON], None),
        (None, None),
        ("report", None),
        (5, None),
    ],
)
def test_the_format_is_told_by_its_signs(document: Any, format: str | None) -> None:
    assert recognise(document) == format


def test_an_unknown_format_names_what_is_known() -> None:
    result = check_document({"hello": "world"})
    assert (result.format, result.ok, result.exit_code) == (None, False, 2)
    assert [finding.rule for finding in result.findings] == ["format"]
    assert "samples_per_round" in result.findings[0].message
    assert "gross_mj" in result.findings[0].message


def test_results_are_frozen_and_print_as_plain_json() -> None:
    result = check_schema(_edited(MINIMAL, "/rounds", 0))
    with pytest.raises(FrozenInstanceError):
        result.path = "other"  # type: ignore[misc]
    finding = {"severity": "E", "rule": "schema", "pointer": "/rounds", "message": "rounds is 0, must be at least 1"}
    assert result.document() == {"path": None, "format": "comparison", "ok": False, "findings": [finding]}
    assert type(result.document()["findings"][0]["severity"]) is str


def test_warnings_and_information_do_not_make_a_report_wrong() -> None:
    mild = [Finding(severity=severity, rule="r", pointer="", message="m") for severity in (Severity.WARNING, Severity.INFORMATION)]
    result = replace(check_document(MINIMAL), findings=tuple(mild))
    assert result.ok
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("path", "expected", "text"),
    [
        ((), "", "$"),
        (("a", 0, "b-c"), "/a/0/b-c", "$.a[0].b-c"),
        (("mlp.py",), "/mlp.py", '$["mlp.py"]'),
        (("a/b~c", "~1"), "/a~1b~0c/~01", '$["a/b~c"]["~1"]'),
        (("",), "/", '$[""]'),
        (("\x1b[31m\u00e9",), "/\x1b[31m\u00e9", '$["\\u001b[31m\\u00e9"]'),
        (("007",), "/007", '$["007"]'),
    ],
)
def test_pointers_follow_rfc_6901_and_read_as_paths(path: tuple[str | int, ...], expected: str, text: str) -> None:
    assert pointer(path) == expected
    assert readable(expected) == text


def test_a_long_numeric_key_is_no_trouble() -> None:
    key = "9" * 5000
    assert [where for where, _ in _found(MINIMAL | {"packages": {key: 1}})] == [f"/packages/{key}"]


def test_a_large_report_is_valid_and_its_validator_is_compiled_once(tmp_path: Path) -> None:
    large = COMPARISON | {f"set_{index}": COMPARISON["development"] + COMPARISON["assessment"] for index in range(40)}
    large["set_39"] = [_edited(COMPARISON, "/development/0/shape/rows", 0)["development"][0]]
    (tmp_path / "large.json").write_text(dumps(large))
    assert [finding.pointer for finding in _errors(validate(tmp_path / "large.json"))] == ["/set_39/0/shape/rows"]
    assert validator("comparison") is validator("comparison")


def test_validating_imports_neither_torch_nor_hydra() -> None:
    program = (
        "import sys\n"
        "from mkframe.validate import validate\n"
        "import mkframe.cli.validate_command\n"
        f"assert validate({str(VALID[0])!r}).ok\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        "print(sorted(names & {'torch', 'hydra', 'omegaconf', 'numpy', 'pynvml', 'mkframe_plugins', 'mkframe_conf'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
