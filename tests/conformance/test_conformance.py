"""For every requirement an engine that breaks it, and honest engines that pass them all."""

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.cli import conformance_command
from mkframe.conformance import cells, questions, traces
from mkframe.conformance.bench import Bench
from mkframe.conformance.messages import Broken, CaseOf, NotAsked, Setup
from mkframe.conformance.requirements import REQUIREMENTS, Finding, Phase, Result
from mkframe.conformance.runner import Runner
from mkframe.conformance.shapes import small_cases, wide_cases
from mkframe.errors import UsageError
from mkframe.model.device import Device
from mkframe.plugin.loader import load_registry

PLUGINS = Path(__file__).parent / "plugins"
CHEATS = str(PLUGINS / "cheats")
CPU = Device(kind="cpu", name="a CPU", memory_bytes=2**33, threads=2)
CHECKS: dict[str, Any] = {**questions.CHECKS, **cells.CHECKS}

LISTED = ({"rows": 2, "columns": 6}, {"rows": 40, "columns": 4}, {"rows": 100, "columns": 100})


def setup(engine: str) -> Setup:
    workload = load_registry([CHEATS]).workload("scaling")
    generated = [{"rows": case.rows, "columns": case.columns} for case in small_cases(workload, 12)]
    return Setup(
        engine=engine,
        workload="scaling",
        plugin_paths=(CHEATS,),
        precisions=("fp32",),
        devices=(CPU,),
        cases=(
            *(CaseOf(label=f"listed[{i}]", seed=7, values=values, generated=False) for i, values in enumerate(LISTED)),
            *(CaseOf(label=f"generated[{i}]", seed=i, values=values, generated=True) for i, values in enumerate(generated)),
        ),
    )


def asked(engine: str) -> dict[str, tuple[str, str]]:
    """Every requirement but the traces, in this process: name -> (result, reason)."""
    bench = Bench(setup(engine), lambda doing: None)
    found: dict[str, tuple[str, str]] = {}
    for requirement in REQUIREMENTS:
        if requirement.phase is Phase.TRACES or requirement.name == "light import":  # torch is here already
            continue
        if any(found[name][0] != "pass" for name in requirement.needs):
            found[requirement.name] = ("skip", "needs another")
            continue
        try:
            found[requirement.name] = ("pass", CHECKS[requirement.name](bench))
        except Broken as error:
            found[requirement.name] = ("fail", str(error))
        except NotAsked as error:
            found[requirement.name] = ("skip", str(error))
        except Exception as error:
            found[requirement.name] = ("fail", f"{type(error).__name__}: {error}")
    return found


def failed(found: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: reason for name, (result, reason) in found.items() if result == "fail"}


@pytest.mark.parametrize("engine", ["honest", "noisy", "tidy", "leaving-nothing", "torch-eager"])
def test_an_honest_engine_passes_everything(engine: str) -> None:
    found = asked(engine)
    assert {name: found[name] for name in found if found[name][0] != "pass"} == {
        "graph capture": ("skip", "no cell can run here: needs a CUDA device")
    }


BREACHES = {
    "raising-unsupported": {"unsupported total": "KeyError: 7"},
    "empty-reason": {"unsupported total": "returns ''"},
    "fickle-unsupported": {"unsupported steady": "refused at question"},
    "slow-unsupported": {"unsupported cheap": "ms a question"},
    "numbered-implementation": {"implementation": "returns 3"},
    "missing-source": {"sources": "kernel that is not there.cu"},
    "wrong-default": {"option defaults": "options.tile: expected an integer, not '64'"},
    "refused-default": {"option defaults": "tile must be at least 1"},
    "any-option": {"option types": "options.mode takes []"},
    "scratch-list": {"scratch declared": "returns list"},
    "scratch-taken": {"scratch declared": "has the name of one of the workload's tensors"},
    "scratch-role": {"scratch declared": "has the role input"},
    "scratch-dtype": {"scratch declared": "'float17'"},
    "scratch-shape": {"scratch declared": "has the shape (0.5,)"},
    "scratch-fickle": {"scratch declared": "two answers differ"},
    "kernels-none": {"kernels declared": "kernels() must return a tuple of Kernels, not None"},
    "kernels-raising": {"kernels declared": "block must be an integer from 1 to 1024, not 2000"},
    "kernels-large": {"kernels declared": "sm_80: large takes 200000 bytes of shared memory, there are 166912"},
    "kernels-fickle": {"kernels declared": "two answers differ"},
    "raising-at-bind": {"binds": "ValueError: no such"},
    "raising-when-called": {"binds": "ValueError: no such tile"},
    "wanting-no-grad": {"binds": "put me under no_grad"},
    "returning-nothing": {"binds": "bind() returns NoneType"},
    "wrong-when-large": {"correct shapes": "listed[2] 100x100 in fp32 on cpu: "},
    "wrong-when-prime": {"correct generated": "x48 in fp32 on cpu: "},
    "keeping-nan": {"poison nan": "beyond tolerance"},
    "keeping-the-finite-pattern": {"poison second": "beyond tolerance"},
    "doing-nothing": {"poison nan": "", "poison second": "", "input negated": "", "input fresh": ""},
    "blind-to-negation": {"input negated": "beyond tolerance"},
    "knowing-two-inputs": {"input fresh": "beyond tolerance"},
    "writing-its-weight": {"inputs intact": "it wrote w, which is an input"},
    "serving-the-first-buffers": {"shifted buffers": "beyond tolerance"},
    "tired": {"after timing": "beyond tolerance"},
    "finishing-later": {"joined": "threads: warm calls left 1 thread"},
    "one-too-many": {"in bounds": "it wrote outside of y"},
    "one-before": {"in bounds": "it wrote outside of y"},
    "overrunning-scratch": {"in bounds": "it wrote outside of h"},
    "remembering": {"no state": "the instance's last changed"},
    "remembering-in-a-container": {"no state": "the instance's cases changed"},
    "minding-the-order": {"no state": "generated[1] 1x7 in fp32 on cpu: "},
    "serving-the-last-binding": {"interleaved": "beyond tolerance"},
    "swapping-storage": {"plain tensors": "y is no longer the tensor that it was"},
    "hoarding": {"memory constant": "Python objects of"},
}


@pytest.mark.parametrize("engine", BREACHES)
def test_a_breach_is_found_where_it_is(engine: str) -> None:
    """Exactly these requirements fail, each with its reason; what needs them is skipped."""
    found = failed(asked(engine))
    assert found.keys() == BREACHES[engine].keys(), found
    for name, reason in BREACHES[engine].items():
        assert reason in found[name], (name, found[name])


def test_noise_is_reported_and_not_demanded() -> None:
    assert asked("honest")["determinism"] == ("pass", "two calls gave the same bits on 5 of 5 cells")
    assert asked("noisy")["determinism"] == ("pass", "two calls gave the same bits on 0 of 5 cells")


def findings(setup: Setup, names: Iterable[str], timeout_s: float = 120) -> dict[str, Finding]:
    """In a child process, as the command does it; what the requirements need is taken for granted."""
    chosen = [replace(requirement, needs=()) for requirement in REQUIREMENTS if requirement.name in names]
    told: list[Finding] = []
    with Runner(timeout_s, told.append) as runner:
        runner.ask(setup, chosen)
        assert told == runner.findings
    return {finding.name: finding for finding in told}


LEFT = {
    "leaving-nothing": None,
    "leaving-a-thread": ("no threads", "the set of Python threads was"),
    "leaving-threads-at-every-call": ("no threads", "threads more after warm calls"),
    "leaving-a-process": ("no children", "child process(es): python"),
    "leaving-a-process-late": ("no children", "child process(es): python"),
    "leaving-a-daemon": ("no children", "child process(es): python"),
    "leaving-a-numpy-switch": ("process state", "numpy's treatment of errors was"),
    "leaving-torch-threads": ("torch state", "the number of threads was"),
    "leaving-grad-mode": ("torch state", "grad mode was True and is False"),
    "leaving-tf32": ("torch state", "the precision of float32 products was 'highest' and is 'high'"),
    "leaving-determinism": ("torch state", "deterministic algorithms was"),
    "leaving-a-handler": ("process state", "the handler of SIGUSR1 was"),
    "leaving-the-folder": ("process state", "the current folder was"),
    "leaving-a-variable": ("process state", "the variable LEFT_BEHIND was None and is '1'"),
    "printing": ("silent", "it prints 'hello"),
    "printing-natively": ("silent", "it prints 'from native code"),
    "complaining": ("silent", "it prints 'hm"),
}


@pytest.mark.parametrize("engine", LEFT)
def test_what_is_left_behind_is_found(engine: str) -> None:
    found = findings(setup(engine), traces.CHECKS)
    broken = {name: finding.reason for name, finding in found.items() if finding.result is Result.FAIL}
    if LEFT[engine] is None:
        assert broken == {}
        return
    name, reason = LEFT[engine]  # type: ignore[misc]
    assert broken.keys() == {name}, broken
    assert reason in broken[name]
    deadline = time.monotonic() + 60
    while any(b"sleep(98765.5)" in _read(item) for item in Path("/proc").glob("[0-9]*/cmdline")):
        assert time.monotonic() < deadline, "a process is still there"
        time.sleep(0.01)  # a process that was killed takes a moment to go


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def test_a_crash_costs_its_own_requirements() -> None:
    """The engine takes the process with it in its 61st call; what needs fewer calls is asked all the same, in new processes."""
    found = findings(setup("crashing-after-a-while"), ("correct shapes", "after timing", "interleaved", "memory constant", "determinism"))
    assert {name: finding.result.value for name, finding in found.items()} == {
        "correct shapes": "pass",
        "after timing": "fail",
        "interleaved": "pass",
        "memory constant": "fail",
        "determinism": "pass",
    }
    assert found["after timing"].reason == "listed[0] 2x6 in fp32 on cpu: the process was killed by SIGSEGV"


def command(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, str]]]:
    code = conformance_command.main([*words, "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is (code == 0)
    assert [row["name"] for row in document["requirements"]] == [requirement.name for requirement in REQUIREMENTS]
    return code, document["requirements"]


@pytest.mark.parametrize(
    ("folder", "engine", "name", "reason"),
    [
        ("import_error", "missing", "loads", "folder import_error/missing.py: ModuleNotFoundError: No module named"),
        ("import_error", "not-there-at-all", "loads", "no engine is called 'not-there-at-all', and folder import_error/"),
        ("import_error", "breach", "loads", "engine breach: option stages needs a default"),
        ("import_crash", "crash", "loads", "folder import_crash/crash.py: it kills the process with SIGSEGV when it is imported"),
        ("import_hang", "hang", "loads", "no sign of life for 8 s"),
        ("cheats", "wrong-default", "option defaults", "expected an integer"),
    ],
)
def test_a_plugin_that_cannot_be_used_fails_and_nothing_else_is_asked(
    folder: str, engine: str, name: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, rows = command(f"plugin_path={PLUGINS / folder}", f"engine={engine}", "--timeout", "8", capsys=capsys)
    assert code == 1
    broken = {row["name"]: row["reason"] for row in rows if row["result"] == "fail"}
    assert broken.keys() == {name}
    assert reason in broken[name]
    assert all(
        row["result"] == "skip" for row in rows if row["name"] in {item.name for item in REQUIREMENTS if item.phase is not Phase.PLUGIN}
    )


def test_an_early_import_of_torch_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(Setup(engine="heavy", workload=None, plugin_paths=(str(PLUGINS / "import_torch"),)), ("loads", "light import"))
    assert found["loads"].result is Result.PASS
    assert found["light import"].result is Result.FAIL
    assert "import it in bind()" in found["light import"].reason


def test_the_documented_engine_passes_everything(run_cli: Any, root: Path, tmp_path: Path) -> None:
    """The whole command, as a third party would type it, with text for people."""
    shutil.copy(root / "docs" / "examples" / "my_engine.py", tmp_path)
    done = run_cli("conformance", f"plugin_path={tmp_path}", "engine=my-engine", "engine.my-engine.options.tile_rows=8")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition("  ")[2].partition(":")[0] for line in lines[:-1]] == [requirement.name for requirement in REQUIREMENTS]
    assert [line for line in lines[:-1] if not line.startswith("pass  ")] == [
        "skip  graph capture: no cell can run here: needs a CUDA device"
    ] or os.environ.get("CUDA_VISIBLE_DEVICES")
    assert lines[-1].startswith("my-engine: ")
    assert "0 failed" in lines[-1]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give engine=ENGINE once"),
        (["engine=a", "engine=b"], "give engine=ENGINE once"),
        (["engine=[a,b]"], "conformance tests one engine, not '[a,b]'"),
        (["engine=all"], "conformance tests one engine, not 'all'"),
        (["engine=persistent-graph"], "give engine=persistent"),
        (["engine=persistnt"], "no engine is called 'persistnt'; did you mean persistent?"),
        (["engine=torch-compile", f"plugin_path={CHEATS}"], "engine torch-compile computes residual_mlp and scaling; say which: workload="),
        (["engine=honest", "plugin_path=/nowhere"], "plugin_path: /nowhere is not a folder"),
        (["engine=persistent", "--timeout", "soon"], "--timeout takes seconds above 0"),
        (["engine=persistent", "--timeout=0"], "--timeout takes seconds above 0"),
        (["engine=persistent", "--format", "xml"], "--format takes text or json"),
        (["engine=persistent", "precision=tf32"], "share fp16, bf16, fp32, not tf32"),
        (["engine=persistent", "-m"], "takes no -m"),
        (["engine=persistent", "shape=nowhere"], "nowhere"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        conformance_command.main(words)
    assert message in str(refused.value)
    assert refused.value.exit_code == 2


def test_the_list_names_every_requirement(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance_command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20].strip() for line in lines] == [requirement.name for requirement in REQUIREMENTS]
    assert conformance_command.main(["--list", "--format=json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == [requirement.name for requirement in REQUIREMENTS]
    assert conformance_command.main(["--help"]) == 0


def test_every_requirement_has_a_check_and_a_place_in_the_documentation(root: Path) -> None:
    assert [requirement.name for requirement in REQUIREMENTS] == [*questions.CHECKS, *cells.CHECKS, *traces.CHECKS]
    page = (root / "docs" / "conformance.md").read_text(encoding="utf-8")
    for requirement in REQUIREMENTS:
        assert f"| `{requirement.name}` |" in page
    names = {requirement.name for requirement in REQUIREMENTS}
    assert all(set(requirement.needs) <= names - {requirement.name} for requirement in REQUIREMENTS)


def test_every_requirement_is_broken_by_some_engine() -> None:
    broken = {name for breach in BREACHES.values() for name in breach} | {left[0] for left in LEFT.values() if left is not None}
    by_others = {"loads", "light import"}  # plugins of their own folders
    never = {"determinism", "graph capture"}  # reported only; tests/gpu/test_conformance_cuda.py
    assert broken | by_others | never == {requirement.name for requirement in REQUIREMENTS}


def test_the_checks_of_a_run_are_among_the_requirements(root: Path) -> None:
    """What check/cell.py calls its checks is what this list calls them."""
    source = (root / "mkframe" / "check" / "cell.py").read_text(encoding="utf-8")
    for name in ("inputs intact", "shifted buffers", "after timing"):
        assert f'"{name}"' in source
    from mkframe.check.buffers import PATTERNS
    from mkframe.check.case_data import FRESH, NEGATED

    run = {*(f"poison {pattern}" for pattern in PATTERNS), f"input {NEGATED}", f"input {FRESH}"}
    assert run <= set(cells.CHECKS)


def every_case() -> Iterator[Any]:
    workload = load_registry().workload("residual_mlp")
    yield from wide_cases(workload, 200)


def test_generated_cases_are_odd_and_always_the_same() -> None:
    workload = load_registry().workload("residual_mlp")
    cases = small_cases(workload, 12)
    assert cases == small_cases(workload, 12)
    assert len(set(cases)) == 12
    assert (cases[0].rows, cases[0].channels, cases[0].hidden) == (1, 1, 1)
    assert any(case.rows == 1 and case.channels > 1 for case in cases)
    assert any(case.hidden % 2 and case.hidden > 1 for case in cases)
    assert max(case.rows * case.channels * case.hidden * case.depth for case in cases) <= 67**3 * 3
    wide = list(every_case())
    assert len(set(wide)) == 200
    assert max(case.rows for case in wide) == 2**31 - 1
    assert set(cases[:4]) <= set(wide)


@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_any_seed_gives_cases(seed: int, count: int) -> None:
    workload = load_registry().workload("residual_mlp")
    assert 1 <= len(small_cases(workload, count, seed)) <= count


@pytest.mark.parametrize("words", [("shape=nope",), ("precision=nope",), ("engine.torch-cublas.options.nope=1",), ("nope=1",)])
def test_a_mistake_in_the_words_is_told_before_anything_is_asked(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="nope"):
        conformance_command.main(["engine=torch-cublas", *words])
    assert capsys.readouterr().out == ""
