"""`sanitize` with a stand-in for compute-sanitizer: what every ending of tool and program means."""

import json
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_sanitizer import VERSION, fake_sanitizer
from plan_fakes import GPU

from mkframe.cli import sanitize_command
from mkframe.errors import DeviceError, SelectionError, UnreadableError, UsageError
from mkframe.plan.devices import Resolved, cpu
from mkframe.sanitize import process
from mkframe.sanitize.job import Job, read_answer
from mkframe.sanitize.result import Outcome
from mkframe.sanitize.runner import Runner, judged
from mkframe.sanitize.tool import TOOLS, find

CLEAN = "say(CLEAN[tool]); answer()"
ONE = ("engine=persistent", "shape=smoke")
CPU_ONLY = f"plugin_path={Path(__file__).parents[1] / 'cheats' / 'careless'}"  # brings the engine careful


@pytest.fixture(autouse=True)
def _gpu_on_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = replace(GPU, uuid="GPU-paper")
    monkeypatch.setattr(sanitize_command, "device_for", lambda config, registry: Resolved(device=device))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def sanitize(folder: Path, behaviour: str, *words: str) -> tuple[int, dict[str, Any]]:
    tool, output = fake_sanitizer(folder, behaviour), folder / "result.json"
    code = sanitize_command.main([*(words or ONE), "--sanitizer", str(tool), "--output", str(output)])
    found: dict[str, Any] = json.loads(output.read_text())
    return code, found


def calls(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


def test_every_cell_under_every_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = sanitize(tmp_path, CLEAN, "engine=[persistent,persistent-graph,careful]", "shape=smoke", CPU_ONLY)
    assert (code, found["passed"], found["format"]) == (0, True, "sanitize/1")
    assert found["sanitizer"] == {"name": "compute-sanitizer", "version": "2025.1.0.0"}
    keys = [(cell["engine"], cell["case"], cell["tool"]) for cell in found["cells"]]
    assert sorted(keys) == sorted((e, c, t) for e in ("persistent", "persistent-graph") for c in (0, 1) for t in TOOLS)
    assert {cell["outcome"] for cell in found["cells"]} == {"clean"}
    assert found["totals"]["memcheck"] == {"cells": 4, "clean": 4, "unchecked": 0, "errors": 0, "warnings": 0}
    assert [(item["engine"], item["reason"]) for item in found["unsupported"]] == [("careful", "runs on cpu only")] * 2
    assert found["source_sha256"] == {"engine.py": "0" * 64}
    out = capsys.readouterr().out
    assert "racecheck: 0 errors, 0 warnings on 4 cells\n" in out
    assert "careful: not checked on 2 cases: runs on cpu only\n" in out


def test_what_the_tool_and_the_program_are_given(tmp_path: Path) -> None:
    sanitize(tmp_path, CLEAN, "engine=persistent-graph", "shape=smoke", "tool=[memcheck,initcheck]", "--timeout", "30")
    given = calls(tmp_path)
    assert [call["options"]["--tool"] for call in given] == ["memcheck", "initcheck"] * 2
    options = given[0]["options"]
    assert (options["--error-exitcode"], options["--target-processes"], options["--launch-timeout"]) == ("86", "application-only", "31")
    assert (options["--padding"], options["--report-api-errors"]) == ("512", "no")
    assert not {"--padding", "--report-api-errors"} & set(given[1]["options"])
    assert {(call["uncached"], call["gpu"]) for call in given} == {("1", "GPU-paper")}
    job = given[0]["job"]
    assert (job["engine"], job["graph"], job["device_kind"], job["precision"]) == ("persistent", True, "cuda", "fp16")
    assert job["case"] == {"rows": 2, "channels": 4, "hidden": 8, "depth": 1}


def test_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = sanitize(tmp_path, "say(BROKEN[tool]); answer(); sys.exit(86)")
    assert (code, found["passed"]) == (1, False)
    errors = {tool: total["errors"] for tool, total in found["totals"].items()}
    assert errors == {"memcheck": 514, "racecheck": 2, "synccheck": 32, "initcheck": 2}
    assert found["totals"]["racecheck"]["warnings"] == 2
    out = capsys.readouterr().out
    assert "257 errors" in out
    assert "persistent on smoke[0], initcheck: Uninitialized __global__ memory read of size 4 bytes at unset(float *)+0x50\n" in out


def test_errors_count_whatever_became_of_the_program(tmp_path: Path) -> None:
    code, found = sanitize(tmp_path, "say(BROKEN[tool]); print('terminate called'); sys.exit(134)", *ONE, "tool=memcheck")
    cell = found["cells"][0]
    assert (code, cell["outcome"], cell["errors"], cell["calls"]) == (1, "errors", 257, 0)
    assert cell["reason"] == "the program gave no answer, and the tool ended with code 134: terminate called"


WARNED = CLEAN.replace("CLEAN[tool]", "CLEAN[tool].replace('0 hazards', '1 hazard').replace('0 warnings', '1 warning')")


@pytest.mark.parametrize("code", [0, 86])
def test_a_warning_is_told_and_is_no_error(tmp_path: Path, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    done, found = sanitize(tmp_path, f"{WARNED}; sys.exit({code})", *ONE, "tool=racecheck")
    assert (done, found["totals"]["racecheck"]["warnings"], found["totals"]["racecheck"]["errors"]) == (0, 2, 0)
    assert "racecheck: 0 errors, 2 warnings on 2 cells" in capsys.readouterr().out


COMPLAINS = "say(CLEAN[tool].replace('\\n', '\\n========= Internal Sanitizer Error: no memory\\n', 1)); answer()"


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("say(CLEAN[tool])", "the program gave no answer, and the tool ended with code 0"),
        ("say(CLEAN[tool]); print('Killed', flush=True); os.kill(os.getpid(), 9)", "and the tool was killed with SIGKILL: Killed"),
        ("answer()", "the tool wrote nothing"),
        ("say('nonsense'); answer()", "the tool's log begins 0 times"),
        ("say(NO_CUDA); sys.exit(1)", "1 was expected: Error: Target application terminated before first instrumented API call"),
        ("say(CLEAN[tool]); answer(calls=1)", "the program made 1 of 2 calls"),
        ("say(CLEAN[tool]); answer(reason='while binding: no'); sys.exit(3)", "while binding: no"),
        ("say(CLEAN[tool]); answer(); sys.exit(86)", "the tool sums up no error and ends with code 86"),
        ("say(CLEAN[tool]); answer(); sys.exit(7)", "then the tool ended with code 7"),
        ("say(CLEAN[tool]); open(job['answer'], 'w').write('[]')", "the program gave no answer"),
        ("say(CLEAN[tool]); answer(calls='2')", "the program gave no answer"),
        (COMPLAINS, "the tool says: Internal Sanitizer Error: no memory"),
    ],
)  # fmt: skip
def test_what_is_unchecked_and_never_zero_errors(tmp_path: Path, behaviour: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = sanitize(tmp_path, behaviour, *ONE, "tool=memcheck")
    cell = found["cells"][0]
    assert (code, cell["outcome"], cell["errors"], cell["warnings"]) == (1, "unchecked", None, None)
    assert reason in cell["reason"]
    assert found["totals"]["memcheck"]["unchecked"] == 2
    assert "memcheck: 0 errors, 0 warnings on 0 cells, 2 cells unchecked" in capsys.readouterr().out


def test_a_program_that_hangs_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    child = "child = subprocess.Popen(['sleep', '600'], start_new_session=True)"
    note = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    code, found = sanitize(tmp_path, f"{child}; {note}; time.sleep(600)", *ONE, "tool=memcheck", "shape=smoke", "--timeout=1.5")
    assert code == 1
    assert "it came to no end within 1.5 s; --timeout SECONDS gives it more" in found["cells"][0]["reason"]
    assert gone(int((tmp_path / "pid").read_text()))


def gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_checked(tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    first = "say(CLEAN[tool]); answer()"
    then = f"os.kill({os.getpid()}, {int(number)}); time.sleep(600)"
    code, found = sanitize(tmp_path, f"{first} if tool == 'memcheck' else None\nif tool != 'memcheck':\n    {then}", *ONE)
    assert (code, found["interrupted"], found["passed"]) == (1, True, False)
    assert [cell["outcome"] for cell in found["cells"]] == ["clean"] + ["unchecked"] * 7
    assert {cell["reason"] for cell in found["cells"][1:]} == {"the run was interrupted"}
    assert "mkframe: interrupted; what was checked until then is in the result" in capsys.readouterr().err


ALLOCATES = """
if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
    say(CLEAN[tool]); answer(calls=0, capture_failed=True, reason="while binding and capturing: it allocates"); sys.exit(3)
say(CLEAN[tool]); answer()
"""


def test_a_graph_that_allocates_is_captured_with_the_caching_allocator_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = sanitize(tmp_path, ALLOCATES, "engine=persistent-graph", "shape=smoke", "tool=memcheck")
    assert (code, {cell["allocator"] for cell in found["cells"]}) == (0, {"caching"})
    assert "persistent-graph: with torch's caching allocator" in capsys.readouterr().out


def test_an_error_is_not_hidden_by_the_other_allocator(tmp_path: Path) -> None:
    broken = ALLOCATES.replace("say(CLEAN[tool])", "say(BROKEN[tool])", 1)
    code, found = sanitize(tmp_path, broken, "engine=persistent-graph", "shape=smoke", "tool=memcheck")
    assert (code, found["cells"][0]["outcome"], found["cells"][0]["allocator"]) == (1, "errors", "exact")


def test_a_source_that_changes_meanwhile_is_no_clean_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = sanitize(tmp_path, "say(CLEAN[tool]); answer(sources={'engine.py': tool})")
    assert (code, found["passed"], found["sources_that_changed"]) == (1, False, ["engine.py"])
    assert "engine.py was changed while the checks ran" in capsys.readouterr().out


def test_several_at_a_time_keep_their_order(tmp_path: Path) -> None:
    code, found = sanitize(tmp_path, CLEAN, *ONE, "--jobs", "4")
    assert code == 0
    assert [(cell["case"], cell["tool"]) for cell in found["cells"]] == [(case, tool) for case in (0, 1) for tool in TOOLS]


def test_the_result_has_a_place_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool = fake_sanitizer(tmp_path, CLEAN)
    assert sanitize_command.main([*ONE, "tool=memcheck", f"--sanitizer={tool}"]) == 0
    (path,) = Path("outputs/sanitize").glob("*.json")
    assert f"result: {path}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tool=valgrind"], "there is no 'valgrind'; give one or more of memcheck, racecheck, synccheck, initcheck"),
        (["tool="], "there is no ''"),
        (["--timeout", "soon"], "--timeout takes seconds above 0, not 'soon'"),
        (["--jobs", "9"], "--jobs takes a number from 1 to 8, not '9'"),
        (["--jobs=1.5"], "--jobs takes a number from 1 to 8"),
        (["--output"], "--output takes the name of a file"),
        (["--sanitizer", "no-such-program"], "--sanitizer no-such-program: there is no such program"),
    ],
)
def test_usage(words: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("(", r"\(")):
        sanitize_command.main([*ONE, *words])


def test_no_tool_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    with pytest.raises(UsageError, match=r"compute-sanitizer is not there: .*CUDA toolkit.*--sanitizer PROGRAM"):
        sanitize_command.main([*ONE])


def test_the_tool_is_found_in_path_and_in_cuda_home(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tool = fake_sanitizer(tmp_path / "bin", CLEAN)
    for environ in ({"PATH": str(tool.parent)}, {"PATH": "", "CUDA_HOME": str(tmp_path)}):
        found = find(None, environ)
        assert (found.path, found.version, found.pads) == (str(tool), "2025.1.0.0", True)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (VERSION, "2025.1.0.0"),
        ("NVIDIA (R) Compute Sanitizer, Version 2024.3.0.0 (public-release)\n", "2024.3.0.0"),
        ("another tool\n", None),
    ],
)
def test_versions(tmp_path: Path, said: str, version: str | None) -> None:
    tool = fake_sanitizer(tmp_path, CLEAN, version=said, help="none")
    if version is None:
        with pytest.raises(UnreadableError, match="does not name a version of Compute Sanitizer, but says: another tool"):
            find(str(tool))
    else:
        assert (find(str(tool)).version, find(str(tool)).pads) == (version, False)


def test_without_a_gpu_there_is_nothing_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize_command, "device_for", lambda config, registry: Resolved(device=cpu()))
    with pytest.raises(DeviceError, match="sanitize checks CUDA kernels and needs a GPU"):
        sanitize_command.main([*ONE])


def test_engines_that_cannot_run_there_are_nothing_to_check() -> None:
    with pytest.raises(SelectionError, match=r"nothing to check: careful on smoke\[0\]: runs on cpu only"):
        sanitize_command.main(["engine=careful", "shape=smoke", CPU_ONLY])


PASS_ON = "code = run_program(); say(CLEAN[tool]); sys.exit(code)"


def program(folder: Path, root: Path, **changed: Any) -> process.Ended:
    """The real program, on the CPU, under a tool that looks at nothing."""
    job = Job(
        workload="residual_mlp",
        precision="fp16",
        device_kind="cpu",
        engine="persistent",
        graph=False,
        options={},
        case={"rows": 2, "channels": 4, "hidden": 8, "depth": 1},
        seed=7,
        answer="",
        path=tuple(sys.path),
    )
    tool = find(str(fake_sanitizer(folder, PASS_ON)))
    return process.run_under(tool, "memcheck", replace(job, **changed), 300.0, threading.Event(), None, True)


def test_the_program_binds_calls_and_compares(tmp_path: Path, root: Path) -> None:
    ended = program(tmp_path, root)
    assert ended.answer is not None, ended.complaint
    assert (ended.code, ended.answer.calls, ended.answer.reason) == (0, 2, None)
    assert "mkframe/check/cell.py" in ended.answer.sources
    assert any("residual_mlp" in file for file in ended.answer.sources)


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("raise-error-at-bind", "while binding: "),
        ("leave-at-bind", "while binding: SystemExit"),
        ("no-such-engine", "while loading plugins: "),
    ],
)
def test_the_program_says_why_it_did_not_finish(tmp_path: Path, root: Path, engine: str, reason: str) -> None:
    ended = program(tmp_path, root, engine=engine, plugin_paths=(str(root / "tests/cheats/faulty"),))
    assert ended.answer is not None, ended.complaint
    assert (ended.code, ended.answer.calls) == (3, 0)
    assert ended.answer.reason is not None
    assert ended.answer.reason.startswith(reason)
    assert judged(ended, "memcheck", 300.0)[0] is Outcome.UNCHECKED


@pytest.mark.parametrize(("engine", "calls", "variant"), [("zeros", 0, "base"), ("stale", 1, "fresh")])
def test_wrong_outputs_were_not_checked(tmp_path: Path, root: Path, engine: str, calls: int, variant: str) -> None:
    ended = program(tmp_path, root, engine=engine, plugin_paths=(str(root / "tests/cheats/cheating"),))
    assert ended.answer is not None, ended.complaint
    assert (ended.code, ended.answer.calls) == (3, calls)
    assert ended.answer.reason is not None
    assert ended.answer.reason.startswith(f"while comparing output {variant}: ")
    assert judged(ended, "memcheck", 300.0)[0] is Outcome.UNCHECKED


@pytest.mark.parametrize("engine", ["leave-at-once-at-bind", "crash-at-bind"])
def test_a_program_that_dies_was_not_checked(tmp_path: Path, root: Path, engine: str) -> None:
    ended = program(tmp_path, root, engine=engine, plugin_paths=(str(root / "tests/cheats/faulty"),))
    assert ended.answer is None
    outcome, findings, reason = judged(ended, "memcheck", 300.0)
    assert (outcome, findings) == (Outcome.UNCHECKED, None)
    assert reason is not None
    assert reason.startswith("the program gave no answer, and the tool ended with code ")


def test_half_an_answer_is_none(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    assert read_answer(path) is None
    for text in ("", "{", '{"calls": 2}', '{"calls": true, "reason": 1, "capture_failed": 0, "sources": []}'):
        path.write_text(text)
        assert read_answer(path) is None


def test_the_runner_needs_no_gpu_of_its_own(tmp_path: Path) -> None:
    """A plan without cells that can run gives a result that has not passed."""
    from mkframe.config.one_job import one_job
    from mkframe.plan.build import build_plan
    from mkframe.plugin.loader import load_registry

    registry = load_registry((CPU_ONLY.removeprefix("plugin_path="),))
    plan = build_plan(one_job(["engine=careful", "shape=smoke"], "sanitize", registry), registry, GPU)
    tool = find(str(fake_sanitizer(tmp_path, CLEAN)))
    result = Runner(plan, tool, TOOLS, limit_s=1.0, jobs=1, tell=lambda done, count, check: None).run()
    assert (result.passed, result.checks) == (False, ())
    assert Outcome.CLEAN not in {check.outcome for check in result.checks}
