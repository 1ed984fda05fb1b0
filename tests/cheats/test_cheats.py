"""Engines that lie are rejected for the right reason; engines that break cost their own cell and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SHORT = ("device=cpu", "timing.processes=1", "timing.rounds=2", "timing.samples_per_round=20", "timing.warmups=2", "shape=smoke")
CASE = "shape.smoke.cases=[{rows: 65, channels: 32, hidden: 64}]"

LIES = {
    "doing-nothing": ("incorrect", "poison nan"),
    "stale": ("incorrect", "input negated"),
    "cached-by-pointer": ("incorrect", "input negated"),
    "bound-to-the-first-buffers": ("incorrect", "shifted buffers"),
    "zeros": ("incorrect", "poison nan"),
    "one-row-short": ("incorrect", "poison nan"),
    "half-products": ("incorrect", "poison nan"),
    "nan-filtering": ("incorrect", "poison second"),
    "writing-its-input": ("incorrect", "inputs intact"),
    "negating-only": ("incorrect", "input fresh"),
    "wrong-after-a-while": ("incorrect", "after timing"),
    "another-dictionary": ("incorrect", "poison nan"),
    "another-class": ("rejected", "plain tensors: the engine made y a Lazy"),
    "another-storage": ("rejected", "plain tensors: the engine gave y another storage"),
    "another-storage-later": ("rejected", "plain tensors: the engine gave y another storage"),
    "cached-by-content": ("rejected", "fresh input: a call takes"),
    "skipping-what-is-there": ("rejected", "fresh input: a call takes"),
    "skipping-whatever-the-input": ("rejected", "fresh input: a call takes"),
    "after-a-streak": ("rejected", "fresh input: a call takes"),
    "cached-by-version": ("incorrect", "input negated"),
    "answering-late": ("rejected", "joined: the output is not there when a call has ended"),
    "a-thread-for-each-call": ("rejected", "threads: warm calls left"),
    "stopping-the-clock": ("rejected", "originals: mkframe.timing.cpu.perf_counter_ns is not the function"),
    "another-median": ("rejected", "originals: numpy.median is not the function"),
    "another-body": ("rejected", "originals: mkframe.check.content.suspicious is not the function"),
    "shrinking-on-the-way": ("rejected", "originals: mkframe.run.messages.BlockDone.__init__ is not the function"),
    "packing-its-own-way": ("rejected", "originals: mkframe.run.messages.BlockDone.__reduce_ex__ is not the function"),
    "packing-arrays-its-own-way": ("rejected", "originals: copyreg.dispatch_table[ndarray] is not the function"),
    "slowing-the-others": ("rejected", "originals: torch.mm is not the function"),
    "slowing-the-baseline": ("rejected", "originals: mkframe_plugins.torch_engines.TorchExpression.bind is not the function"),
    "a-clock-for-the-block": ("rejected", "loop clock: the host times of a block add up to"),
    "rewriting-the-readings": ("rejected", "loop clock: the stream times of a block add up to"),
}
HONEST = ("telling-the-truth", "working-hard")

FAULTS = {
    "crash-at-bind": ("crashed", "it was killed by SIGSEGV in string_at (__init__.py:"),
    "crash-at-clock": ("crashed", "crash (faults.py:21), call (faults.py:"),
    "raise-error-at-bind": ("crashed", "ValueError while binding and checking: no such tile"),
    "raise-error-at-clock": ("crashed", "ValueError while timing round 0: no such tile"),
    "leave-at-bind": ("crashed", "SystemExit while binding and checking: 3"),
    "leave-at-clock": ("crashed", "SystemExit while timing round 0: 3"),
    "leave-at-once-at-bind": ("crashed", "it exited with code 7"),
    "leave-at-once-at-clock": ("crashed", "it exited with code 7"),
    "hang-at-bind": ("timeout", "no sign of life for 6 s"),
    "hang-at-clock": ("timeout", "no sign of life for 6 s"),
    "exhaust-at-bind": ("oom", "RuntimeError while binding and checking"),
    "exhaust-at-clock": ("oom", "RuntimeError while timing round 0"),
}


def cells_of(result: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in json.loads(result.stdout)["cells"]:
        found.setdefault(cell["engine"], []).append(cell)
    return found


def test_every_lie_is_caught_where_it_is_told(run_cli: Any) -> None:
    engines = ",".join([HONEST[0], *LIES, HONEST[1]])
    result = run_cli(f"plugin_path={HERE / 'cheating'}", f"engine=[{engines}]", *SHORT, CASE, "--json")
    assert result.returncode == 1, result.stderr
    cells = cells_of(result)
    for engine in HONEST:
        assert all(cell["outcome"] == "passed" and cell["p50_us"] > 0 for cell in cells.pop(engine)), result.stdout
    assert cells.keys() == LIES.keys()
    for engine, (outcome, reason) in LIES.items():
        for cell in cells[engine]:
            assert (cell["outcome"], cell["p50_us"]) == (outcome, None), (engine, cell)
            assert cell["reason"].startswith(reason), (engine, cell)


@pytest.mark.parametrize(
    ("folder", "function"),
    [("clock", "time.perf_counter_ns"), ("statistics", "mkframe.stats.summarize"), ("events", "torch.cuda.streams.Event.elapsed_time")],
)
def test_a_plugin_that_replaces_functions_when_it_is_loaded_ends_the_run(run_cli: Any, folder: str, function: str) -> None:
    result = run_cli(f"plugin_path={HERE / 'at_import' / folder}", "engine=torch-cublas", *SHORT, CASE, "--quiet")
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert f"{function} is not the function that the framework started with" in line
    assert f"folder {folder}" in line


def test_every_fault_costs_its_own_cell(run_cli: Any) -> None:
    engines = ",".join([*FAULTS, "sound"])
    result = run_cli(f"plugin_path={HERE / 'faulty'}", f"engine=[{engines}]", *SHORT, CASE, "timing.cell_timeout_s=6", "--json")
    assert result.returncode == 1, result.stderr
    cells = cells_of(result)
    (sound,) = cells.pop("sound")
    assert sound["outcome"] == "passed", (sound, result.stderr)
    assert "Fatal Python error" not in result.stderr, "where it crashed stands in the reason"
    assert cells.keys() == FAULTS.keys()
    for engine, (outcome, reason) in FAULTS.items():
        (cell,) = cells[engine]
        assert (cell["outcome"], cell["p50_us"]) == (outcome, None), (engine, cell)
        assert reason in cell["reason"], (engine, cell)


CARELESS = {
    "facts-object": ("crashed", "facts must hold JSON types only"),
    "facts-nan": ("crashed", "facts must hold JSON types only"),
    "facts-loop": ("crashed", "facts must hold JSON types only"),
    "surrogate": ("crashed", "RuntimeError while binding and checking: half a character: \\ud800"),
    "unprintable": ("crashed", "Mute while binding and checking: its message cannot be read"),
    "tells-a-path": ("crashed", "No such file or directory: '.../x.cubin'"),
    "missing-source": ("crashed", "source file .../x.cubin cannot be read"),
    "odd-source": ("crashed", "sources() must return a tuple of file names, not int"),
    "binds-nothing": ("crashed", "bind must return Launches, not NoneType"),
    "writes-input-late": ("incorrect", "inputs intact: a timed call wrote x, which is an input"),
    "leaves-a-process": ("rejected", "children: the engine left 2 process(es) running (sleep, sleep)"),
    "leaves-a-fork": ("rejected", "children: the engine left 2 process(es) running (sh, sh)"),
    "other-folder": ("rejected", "process state: the current folder was '"),
    "other-variable": ("rejected", "process state: the variable CARELESS was None and is '1'"),
    "deaf": ("rejected", "process state: the handler of SIGTERM was SIG_DFL and is SIG_IGN"),
    "other-dtype": ("rejected", "process state: the default dtype was torch.float32 and is torch.float64"),
    "flushing": ("rejected", "process state: flushing of denormals was False and is True"),
    "strict-numpy": ("rejected", "process state: numpy's treatment of errors was "),
    "collecting": ("rejected", "process state: a call turned Python's garbage collector on"),
    "late-fork": ("rejected", "children: the engine left 1 process(es) running (sleep)"),
    "fork-that-returns": ("rejected", "children: the engine left 1 process(es) running (python)"),
    "late-daemon": ("rejected", "children: the engine left 1 process(es) running (sleep)"),
}
SOUND = ("careful", "facts-path")


def test_carelessness_costs_its_own_cell_and_leaves_nothing(run_cli: Any, tmp_path: Path) -> None:
    engines = ",".join(["careful", *CARELESS, *SOUND[1:]])
    result = run_cli(f"plugin_path={HERE / 'careless'}", f"engine=[{engines}]", *SHORT, CASE, "--json")
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    cells = cells_of(result)
    for engine, (outcome, reason) in CARELESS.items():
        (cell,) = cells[engine]
        assert (cell["outcome"], cell["p50_us"]) == (outcome, None), cell
        assert reason in cell["reason"], cell
    for engine in SOUND:
        assert cells[engine][0]["outcome"] == "passed", cells[engine]
    (path,) = tmp_path.glob("outputs/*/report.json")
    assert "/srv/" not in path.read_text()
    assert '"cubin": ".../x.cubin"' in path.read_text()
    assert "/srv/" not in (path.parent / "journal.jsonl").read_text()
    left = [item for item in Path("/proc").glob("[0-9]*/cmdline") if b"98765.4321" in _read(item)]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


KILLS_ITSELF = """        import os, pathlib, signal

        met = pathlib.Path("met")
        count = len(met.read_text()) if met.exists() else 0
        if count < TIMES:
            met.write_text("x" * (count + 1))
            os.kill(os.getpid(), signal.SIGKILL)

        tiles = ["""


@pytest.mark.parametrize(("times", "outcome"), [(1, "passed"), (2, "crashed")])
def test_only_a_second_death_from_outside_is_the_fault_of_an_engine(run_cli: Any, tmp_path: Path, times: int, outcome: str) -> None:
    (tmp_path / "mine").mkdir()
    engine = (HERE.parents[1] / "docs/examples/my_engine.py").read_text()
    changed = engine.replace("        tiles = [", KILLS_ITSELF.replace("TIMES", str(times)), 1).replace('"my-engine"', '"killed"')
    (tmp_path / "mine/killed.py").write_text(changed)
    result = run_cli("plugin_path=mine", "engine=[killed,torch-cublas]", *SHORT, CASE, "--json", "out=run")
    cells = cells_of(result)
    assert [cell["outcome"] for cell in cells["killed"]] == [outcome], result.stderr
    assert [cell["outcome"] for cell in cells["torch-cublas"]] == ["passed"]
    assert (tmp_path / "met").read_text() == "x" * times
    if outcome == "crashed":
        assert "it was killed by SIGKILL" in cells["killed"][0]["reason"]
    hellos = [line for line in (tmp_path / "run/journal.jsonl").read_text().splitlines() if line.startswith('{"event":"Hello"')]
    assert len(hellos) == times + 1
