"""`sanitizers=FILE`: a report repeats what a sanitizer run of the same sources, cells and device found, and nothing else."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_sanitizer import fake_sanitizer

from mkframe.config.one_job import one_job
from mkframe.model.plan import RunPlan
from mkframe.plan.build import build_plan
from mkframe.plan.devices import cpu
from mkframe.plugin.loader import load_registry
from mkframe.sanitize.runner import Runner
from mkframe.sanitize.statement import read_run
from mkframe.sanitize.tool import find
from mkframe.validate import validate

WORDS = ("engine=persistent", "device=cpu", "shape=smoke", "shape.smoke.cases=[{rows: 2, channels: 4, hidden: 8}]")
QUICK = ("timing.rounds=1", "timing.processes=1", "timing.samples_per_round=20", "--json")


@pytest.fixture(scope="module")
def plan() -> RunPlan:
    registry = load_registry()
    return build_plan(one_job(WORDS, "sanitize", registry), registry, cpu())


@pytest.fixture(scope="module")
def result(plan: RunPlan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The real program on the CPU, under a tool that finds nothing (memcheck) and one that warns (racecheck)."""
    warns = "CLEAN[tool].replace('0 hazards', '3 hazards').replace('0 warnings', '3 warnings') if tool == 'racecheck' else CLEAN[tool]"
    tool = find(str(fake_sanitizer(tmp_path_factory.mktemp("tool"), f"code = run_program(); say({warns}); sys.exit(code)")))
    made = Runner(plan, tool, ("memcheck", "racecheck"), limit_s=300.0, jobs=1, tell=lambda done, count, check: None).run()
    assert made.passed, [check.reason for check in made.checks]
    return made.document()


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "sanitized.json"
    path.write_text(json.dumps(document))
    return path


def edited(document: dict[str, Any], edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(document))
    edit(copy)
    return copy


def test_the_report_says_what_the_file_holds(run_cli: Any, tmp_path: Path, result: dict[str, Any]) -> None:
    path = written(tmp_path, result)
    done = run_cli(*WORDS, *QUICK, f"sanitizers={path}")
    assert done.returncode == 0, done.stderr
    report = tmp_path / json.loads(done.stdout)["report"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    said = f"memcheck 0 errors, racecheck 0 errors and 3 warnings on 1 cells; compute-sanitizer 2025.1.0.0; result file SHA-256 {digest}"
    document = json.loads(report.read_text())
    assert document["sanitizers"] == said
    assert not [finding for finding in validate(report).findings if finding.pointer == "/sanitizers"]
    report.write_text(json.dumps(document | {"sanitizers": "memcheck found nothing"}))
    assert [finding.rule for finding in validate(report).findings if finding.pointer == "/sanitizers"] == ["sources"]


def test_sources_that_only_a_worker_imports_are_compared_at_the_end(run_cli: Any, tmp_path: Path, result: dict[str, Any]) -> None:
    (late, *_) = [file for file in result["source_sha256"] if file == "mkframe/check/cell.py"]
    path = written(tmp_path, edited(result, lambda found: found["source_sha256"].update({late: "0" * 64})))
    done = run_cli(*WORDS, *QUICK, f"sanitizers={path}")
    assert done.returncode == 0, done.stderr
    assert f"is of other sources ({late}); run sanitize again; the report says: not run" in done.stderr
    assert json.loads((tmp_path / json.loads(done.stdout)["report"]).read_text())["sanitizers"] == "not run"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda found: found["device"].update(name="Another GPU"), "is of device Another GPU, and this run of "),
        (lambda found: found.update(precision="bf16"), "is of precision bf16, and this run of fp16"),
        (lambda found: found["cells"].pop(), "lacks persistent on smoke[0] under racecheck"),
        (lambda found: found["cells"][0]["shape"].update(rows=3), "checked another shape for persistent on smoke[0] under memcheck"),
        (lambda found: found["cells"][0].update(implementation="other:Engine"), "checked another implementation"),
        (lambda found: found["cells"][0].update(options={"tile": 1}), "checked another choice of options"),
        (lambda found: found["source_sha256"].update({"mkframe/__init__.py": "0" * 64}), "is of other sources (mkframe/__init__.py)"),
        (lambda found: found["sources_that_changed"].append("x.py"), "is of other sources (x.py)"),
        (lambda found: found.update(format="sanitize/2"), "is no result of mkframe sanitize: ValueError: its format is not sanitize/1"),
        (lambda found: found["cells"][0].update(errors=-1), "is no result of mkframe sanitize: TypeError: a count was expected"),
        (lambda found: found.pop("tools"), "is no result of mkframe sanitize: KeyError"),
        (lambda found: found.update(tools=[]), "is no result of mkframe sanitize: ValueError: its tools are none of ours"),
    ],
)
def test_another_file_is_refused_before_anything_runs(
    run_cli: Any, tmp_path: Path, result: dict[str, Any], edit: Callable[[dict[str, Any]], object], reason: str
) -> None:
    done = run_cli(*WORDS, *QUICK, f"sanitizers={written(tmp_path, edited(result, edit))}")
    assert done.returncode == 2, done.stderr
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.rglob("report.json"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["sanitizers="], "sanitizers=FILE takes one result file"),
        (["sanitizers=a", "sanitizers=b"], "sanitizers=FILE takes one result file"),
        (["sanitizers=no-such-file"], "sanitizers=no-such-file: cannot be read: No such file"),
    ],
)
def test_usage(run_cli: Any, words: list[str], reason: str) -> None:
    done = run_cli(*WORDS, *QUICK, *words)
    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr


def test_errors_and_unchecked_cells_are_told(tmp_path: Path, plan: RunPlan, result: dict[str, Any]) -> None:
    def spoil(found: dict[str, Any]) -> None:
        found["cells"][0].update(outcome="errors", errors=7)
        found["cells"][1].update(outcome="unchecked", errors=None, warnings=None)

    said = read_run(written(tmp_path, edited(result, spoil))).sentence(plan)
    assert said.startswith("memcheck 7 errors, racecheck 0 errors (1 cells unchecked) on 1 cells; compute-sanitizer ")


def test_an_engine_that_was_not_imported_is_another_source(tmp_path: Path, result: dict[str, Any]) -> None:
    from mkframe.errors import UsageError

    run = read_run(written(tmp_path, result))
    run.check_sources({"mkframe/only_here.py": "1"}, all_of_them=True)
    run.check_sources({"my_plugin/engine.py": "1"}, all_of_them=False)
    with pytest.raises(UsageError, match=r"is of other sources \(my_plugin/engine.py\)"):
        run.check_sources({"my_plugin/engine.py": "1"}, all_of_them=True)
