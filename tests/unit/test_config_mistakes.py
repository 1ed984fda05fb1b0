"""Mistakes of a user: each one line on stderr that says what exists or what to do, exit code 2, and nothing runs."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plan_fakes import CPU, make_registry

from mkframe.config.app import JobResult, run_hydra
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import UnreadableError
from mkframe.model.plan import RunPlan
from mkframe.plan import build_plan
from mkframe.plugin import Engine
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import Config

REGISTRY = make_registry()


def run(*argv: str, registry: Registry = REGISTRY) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command line that is planned for a CPU; running is an error unless it exits 0."""
    out, err = io.StringIO(), io.StringIO()

    def prepare(config: Config) -> RunPlan:
        return build_plan(config, registry, CPU)

    with redirect_stdout(out), redirect_stderr(err):
        code = run_hydra(
            argv,
            registry,
            prepare=prepare,
            job=lambda *_: JobResult(exit_code=0),
            finish_sweep=lambda *_: None,
            tell=lambda _: None,  # how long composing takes is no matter here
        )
    return code, out.getvalue(), err.getvalue()


ENGINES = "all, base, base-graph, baselines, board, board-graph, host, quick, quick-graph, toy-engine"
MISTAKES = {
    # groups and choices
    "unknown engine": (["engine=quik"], ["'quik'", "did you mean quick?", ENGINES]),
    "unknown engine of several": (["engine=[quick,nope]"], ["'nope'", "base-graph"]),
    "internal name as an engine": (["engine=residual_mlp-defaults"], ["there are: all"]),
    "engine that failed to import": (["engine=broken"], ["folder mine/broken.py", "ModuleNotFoundError: No module named 'nowhere'"]),
    "its graph form": (["engine=broken-graph"], ["folder mine/broken.py", "nowhere"]),
    "other unknown engine names the broken one": (["engine=brken"], ["could not be loaded: broken", "mkframe engines"]),
    "engine twice": (["engine=[quick,quick]"], ["quick is selected twice"]),
    "no engine": (["engine=[]"], ["engine: nothing is selected", "quick"]),
    "engine deleted": (["~engine"], ["~engine: a group cannot be left out", "quick"]),
    "engine deleted by name": (["~engine=quick"], ["~engine: a group cannot be left out"]),
    "engine added": (["+engine=base"], ["leave out the +", "'engine=[a,b]'"]),
    "timing added": (["++timing=recorded"], ["leave out the +", "per_call"]),
    "no shape": (["shape=[]"], ["shape: nothing is selected", "development"]),
    "engine of another workload": (["engine=toy-engine"], ["computes toy, not residual_mlp", "quick"]),
    "graph form that does not exist": (["engine=host-graph"], ["'host-graph'", "did you mean"]),
    "unknown shape": (["shape=smoky"], ["did you mean smoke?", "decode"]),
    "unknown workload": (["workload=rms"], ["'rms'", "residual_mlp, toy"]),
    "unknown precision": (["precision=fp8"], ["'fp8'", "bf16, fp16, fp32, tf32"]),
    "unknown device": (["device=h100"], ["'h100'", "a100"]),
    "unknown timing": (["timing=replays"], ["'replays'", "cold, per_call, recorded, replay, unrolled"]),
    "unknown energy": (["energy=nvml"], ["'nvml'", "there are: none"]),
    "a list where one fits": (["timing=[per_call,recorded]"], ["timing: takes one choice", "recorded"]),
    "null for a group": (["shape=null"], ["shape: takes the name of a choice"]),
    "nothing for a group": (["timing="], ["''", "per_call"]),
    "a group's place": (["shape@other=smoke"], ["leave out @other"]),
    "a group that does not exist": (["shapes=smoke"], ["shapes: no such key", "did you mean shape?"]),
    "precision that the workload lacks": (["precision=fp32"], ["residual_mlp does not define fp32", "fp16, bf16"]),
    # keys
    "unknown key": (["timing.round=3"], ["timing.round: no such key", "did you mean rounds?", "samples_per_round"]),
    "unknown top-level key": (["enigne=quick"], ["enigne: no such key", "did you mean engine?"]),
    "rate of nothing": (["device=h200", "device.card.fp16_flops=0.0"], ["device.card.fp16_flops: must be above 0"]),
    "unknown deep key": (["device=h200", "device.card.nme=x"], ["device.card.nme: no such key", "did you mean name?"]),
    "unknown option": (["engine.quick.options.tyle=8"], ["engine.quick.options.tyle: no such key", "did you mean tile?", "ratio"]),
    "option of an engine not selected": (["engine.base.options.tile=8"], ["engine.base is not selected", "quick"]),
    "axis of a grid not selected": (["shape.grid.rows=8"], ["shape.grid is not selected", "smoke"]),
    "key below a value": (["timing.rounds.x=8"], ["timing.rounds is a single value"]),
    "added key": (["+timing.foo=3"], ["timing.foo: no such key", "rounds"]),
    "added key that exists": (["+timing.rounds=3"], ["leave out the +"]),
    "added top-level key": (["+foo.bar=3"], ["foo: no such key", "timing"]),
    "deleted key": (["~timing.rounds"], ["timing.rounds: missing"]),
    "deleted key that does not exist": (["~timing.foo"], ["timing.foo: no such key"]),
    "plugin path too late": (["+plugin_path.x=3"], ["plugin_path"]),
    # types
    "a word for an integer": (["timing.rounds=many"], ["timing.rounds: expected an integer, not 'many'"]),
    "a fraction for an integer": (["timing.rounds=2.5"], ["timing.rounds: expected an integer, not 2.5"]),
    "a float for an integer": (["timing.rounds=2.0"], ["timing.rounds: expected an integer, not 2.0"]),
    "a boolean for an integer": (["timing.rounds=true"], ["timing.rounds: expected an integer, not True"]),
    "null for an integer": (["timing.rounds=null"], ["timing.rounds: expected an integer, not nothing (null)"]),
    "a list for an integer": (["timing.rounds=[3]"], ["timing.rounds: expected an integer, not a list"]),
    "a value for a group": (["engine.quick.options=3"], ["engine.quick.options: expected a group of keys, not 3"]),
    "a word for a choice": (["device.kind=gpu"], ["device.kind: expected one of auto, cpu, cuda, not 'gpu'"]),
    "a word for true or auto": (["timing.hold=maybe"], ["timing.hold: expected true or false or auto, not 'maybe'"]),
    "infinity": (["timing.cell_timeout_s=inf"], ["timing.cell_timeout_s: expected a number, not inf"]),
    "option: word for integer": (["engine.quick.options.tile=wide"], ["engine.quick.options.tile: expected an integer, not 'wide'"]),
    "option: enum": (["engine.quick.options.mode=slow"], ["engine.quick.options.mode: expected one of careful, fast, not 'slow'"]),
    "option: boolean": (["engine.quick.options.checked=1"], ["engine.quick.options.checked: expected true or false, not 1"]),
    "option refused by the engine": (["engine.quick.options.tile=12"], ["engine.quick.options: tile must be a multiple of 8, not 12"]),
    # ranges
    "zero rounds": (["timing.rounds=0"], ["timing.rounds: must be at least 1, not 0"]),
    "negative warm-ups": (["timing.warmups=-1"], ["timing.warmups: must be at least 0, not -1"]),
    "more processes than rounds": (["timing.rounds=2"], ["timing.processes", "at most 2"]),
    "no timeout": (["timing.cell_timeout_s=0"], ["timing.cell_timeout_s: must be from 0.1 to 86400 s (24 h), not 0"]),
    "a timeout below its least": (["timing.cell_timeout_s=0.09"], ["timing.cell_timeout_s: must be from 0.1", "not 0.09"]),
    "a timeout of weeks": (["timing.cell_timeout_s=3000000"], ["timing.cell_timeout_s", "not 3000000"]),
    "hold on a CPU": (["timing.hold=true"], ["timing.hold", "CUDA"]),
    "too many samples": (["timing.samples_per_round=10000000"], ["timing.samples_per_round", "64.0 MiB", "at most"]),
    "a contract changed": (["precision.hidden=float32"], ["precision.hidden: fp16 means float16", "a different contract needs its own id"]),
    "a contract with an unknown dtype": (["precision.id=mine", "precision.hidden=float8"], ["precision.hidden", "float16"]),
    # shapes
    "zero rows": (["shape.smoke.cases=[{rows: 0, channels: 4, hidden: 4}]"], ["shape.smoke.cases[0].rows: must be at least 1, not 0"]),
    "negative rows": (["shape.smoke.cases=[{rows: -3, channels: 4, hidden: 4}]"], ["cases[0].rows: must be at least 1, not -3"]),
    "boolean rows": (["shape.smoke.cases=[{rows: true, channels: 4, hidden: 4}]"], ["cases[0].rows: expected an integer", "True"]),
    "float rows": (["shape.smoke.cases=[{rows: 4.0, channels: 4, hidden: 4}]"], ["cases[0].rows: expected an integer", "4.0"]),
    "unknown axis": (["shape.smoke.cases=[{rows: 1, chanels: 4, hidden: 4}]"], ["cases[0].chanels", "did you mean channels?"]),
    "missing axis": (["shape.smoke.cases=[{rows: 1, channels: 4}]"], ["cases[0]: hidden missing"]),
    "a case twice": (
        ["shape.smoke.cases=[{rows: 1, channels: 4, hidden: 4},{rows: 1, channels: 4, hidden: 4, depth: 1}]"],
        ["cases[1]: the same shape as cases[0]"],
    ),
    "no cases": (["shape.smoke.cases=[]"], ["shape.smoke.cases: is empty"]),
    "a number for cases": (["shape.smoke.cases=3"], ["shape.smoke.cases: expected a list of cases"]),
    "a number for a case": (["shape.smoke.cases=[3]"], ["shape.smoke.cases[0]: expected a case such as {rows: 8"]),
    "assessed on what was tuned on": (
        ["shape=[development,assessment]", "shape.assessment.cases=[{rows: 1, channels: 7, hidden: 13}]"],
        ["{rows: 1, channels: 7, hidden: 13} is in both development and assessment"],
    ),
    "seed": (["shape.smoke.seed=-1"], ["shape.smoke.seed: expected an integer from 0"]),
    "absurd shape": (["shape.smoke.cases=[{rows: 4000000000, channels: 4000000000, hidden: 4}]"], ["needs", "EiB", "this machine has"]),
    "empty axis": (["shape=grid", "shape.grid.rows=[]"], ["shape.grid.rows: is empty"]),
    "every axis left out": (
        ["shape=grid", *(f"shape.grid.{axis}=null" for axis in ("rows", "channels", "hidden"))],
        ["shape.grid: no axis has a value; give one to rows, channels, hidden, as in shape.grid.rows=8"],
    ),
    "a group for a list": (
        ["shape.smoke.cases={rows: 3}"],
        ["shape.smoke.cases: expected a list, not a group of keys", "'shape.smoke.cases=[{...}]'"],
    ),
    "a list for a group": (["engine.quick.options=[1]"], ["engine.quick.options: expected a group of keys, not a list", "tile, mode"]),
    "a list for a group, forced": (["++engine.quick.options=[1]"], ["engine.quick.options: expected a group of keys, not a list"]),
    "an axis twice in a case": (
        ["shape.smoke.cases=[{rows: 1, channels: 4, hidden: 4},{rows: 1, rows: 2, channels: 4, hidden: 4}]"],
        ["shape.smoke.cases: rows stands twice in one {...}"],
    ),
    "zero on an axis": (["shape=grid", "shape.grid.rows=[4,0]"], ["shape.grid.rows[1]: must be at least 1, not 0"]),
    "axis left out": (["shape=grid", "shape.grid.rows=null"], ["shape.grid: rows missing"]),
    "range without an end": (["shape=grid", "shape.grid.rows={start: 1, factor: 2}"], ["shape.grid.rows: a range reads"]),
    "factor 1": (["shape=grid", "shape.grid.rows={start: 1, stop: 8, factor: 1}"], ["shape.grid.rows.factor", "above 1"]),
    "range backwards": (["shape=grid", "shape.grid.rows={start: 8, stop: 1, num: 3}"], ["stop (1) is below start (8)"]),
    "key of a range": (["shape=grid", "shape.grid.rows={start: 8, stop: 9, step: 3}"], ["shape.grid.rows.step: no such key"]),
    "huge grid": (
        ["shape=grid", *(f"shape.grid.{axis}={{start: 1, stop: 1000000, num: 1000}}" for axis in ("rows", "channels", "hidden"))],
        ["cases; this selection has room for 100,000"],
    ),
    "unknown axis of a grid": (["shape=grid", "+shape.grid.width=8"], ["shape.grid.width: residual_mlp has no axis width"]),
    "a case that the workload refuses": (
        ["workload=toy", "shape.smoke.cases=[{rows: 1, length: 3}]"],
        ["shape.smoke.cases[0]: length must be even"],
    ),
    # the command line
    "list without brackets": (["engine=quick,base"], ["'engine=[quick,base]'", "-m"]),
    "values without -m": (["timing.rounds=3,4"], ["add -m"]),
    "range without -m": (["timing.rounds=range(3,5)"], ["add -m"]),
    "bracket missing": (["engine=[quick"], ["a bracket is missing", "'engine=[a,b]'"]),
    "not an override": (["persistent"], ["'persistent' is no override and no command", "KEY=VALUE"]),
    "no key": (["=3"], ["'=3' is no override"]),
    "special characters": (["out=a=b"], ["out=a=b: cannot be read", "quote"]),
    "two dots": (["timing..rounds=1"], ["timing..rounds: is no key", "joined by single dots"]),
    "a blank before the =": (["timing.rounds =7"], ["timing.rounds : is no key"]),
    "an item in brackets": (
        ["shape.smoke.cases[0].rows=3"],
        ["shape.smoke.cases[0].rows: an item of a list is written with a dot: shape.smoke.cases.0.rows=3"],
    ),
    "letters beyond ASCII": (["ключ=1"], ["ключ: is no key", "ASCII"]),
    "out without a value": (["out="], ["out: names no folder", "out=DIR"]),
    "out is blank": (["out='  '"], ["out: names no folder"]),
    "hydra.run.dir without a value": (["hydra.run.dir="], ["hydra.run.dir: names no folder"]),
    "two names for the folder": (["out=A", "hydra.run.dir=B"], ["out and hydra.run.dir both name the folder"]),
    "two names for a sweep's folder": (["-m", "out=A", "hydra.sweep.dir=B"], ["out and hydra.sweep.dir both name the folder"]),
    "out is a device": (["out=/dev/null"], ["cannot write /dev/null: it is a file and no folder", "out=DIR"]),
    "out is a file": ([f"out='{__file__}'"], ["it is a file and no folder", "out=DIR"]),
    "unknown flag": (["--multi"], ["--multi", "did you mean --multirun?"]),
    "unknown flag lists all": (["--xyz"], ["--quiet", "--json", "--multirun", "--config-dir"]),
    "refused flag": (["--experimental-rerun", "x"], ["--experimental-rerun", "repeat its overrides"]),
    "--cfg without a value": (["--cfg"], ["--cfg takes one of job, hydra, all"]),
    "--cfg with a wrong value": (["--cfg", "jobs"], ["--cfg takes one of job, hydra, all, not 'jobs'"]),
    "--config-dir without a folder": (["--config-dir", "nowhere"], ["--config-dir: nowhere is not a folder"]),
    "--config-name without a file": (
        ["--config-name", "nowhere"],
        ["--config-name: no configuration is called 'nowhere'; there are: config\n"],
    ),
    "search path that does not exist": (["hydra.searchpath=[file:///nowhere]"], ["/nowhere", "not available"]),
    "parallel launcher": (["hydra/launcher=joblib"], ["hydra/launcher: only basic is possible", "timings"]),
    "parallel launcher by its class": (["hydra.launcher._target_=joblib.JoblibLauncher"], ["hydra/launcher: only basic is possible"]),
    "other sweeper": (["-m", "hydra/sweeper=optuna"], ["hydra/sweeper: only basic is possible"]),
    "Hydra's keys": (["hydra.foo=1"], ["foo"]),
    "interpolation": (["out=${nowhere}"], ["out: has no value", "nowhere"]),
    "interpolated folder": (["hydra.run.dir=${nowhere}"], ["hydra.run.dir: has no value", "nowhere"]),
    "no value": (["timing.rounds=???"], ["timing.rounds"]),
    "unwritable folder": (["out=/proc/nowhere/x"], ["cannot write /proc/nowhere/x", "out=DIR"]),
    # sweeps
    "endless range": (["-m", "timing.rounds=range(1,1000000000)"], ["timing.rounds", "more than 10,000 jobs"]),
    "endless product": (["-m", "timing.rounds=range(3,1003)", "timing.warmups=range(0,11)"], ["timing.warmups", "more than 10,000 jobs"]),
    "interval": (["-m", "timing.rounds=interval(3,5)"], ["timing.rounds: an interval"]),
    "glob without a match": (["-m", "engine=glob(zzz*)"], ["matches nothing", "quick"]),
    "sweep over Hydra's keys": (["-m", "hydra.job.name=a,b"], ["hydra.job.name", "cannot be swept"]),
    "sweep over out": (["-m", "out=a,b"], ["out: cannot be swept over"]),
    "a bad value in a sweep": (["-m", "engine=quick,nope"], ["'nope'"]),
    "a bad shape in a sweep": (["-m", "shape=grid", "shape.grid.rows=1,0"], ["shape.grid.rows: must be at least 1, not 0"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(name: str, tmp_path: Path) -> None:
    argv, words = MISTAKES[name]
    code, out, err = run(*argv)
    assert code == 2, err
    assert out == ""
    assert err.startswith("mkframe: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    for word in words:
        assert word in err
    for leftover in ("Traceback", "full_key", "HYDRA_FULL_ERROR", "-own-", "_mlp-default,"):
        assert leftover not in err
    assert list(tmp_path.iterdir()) == [], "a mistake leaves nothing behind"


BOMB = b"a0: &a0 [1,2,3,4,5,6,7,8,9]\n" + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12))
FILES = {
    "not YAML": ("shape/mine.yaml", b"a: [1", ["mine.yaml", "line 1"]),
    "not text": ("shape/mine.yaml", b"\xff\xfe", ["cd/shape/mine.yaml: is not UTF-8 text", "0xff at offset 0"]),
    "no place": ("shape/mine.yaml", b"rows: 1\n", ["cd/shape/mine.yaml", "the first line of the file must be: # @package shape.mine"]),
    "aliases of aliases": ("shape/mine.yaml", b"# @package shape.mine\n" + BOMB, ["cd/shape/mine.yaml", "more than 200,000 values"]),
    "an alias inside itself": (
        "shape/mine.yaml",
        b"# @package shape.mine\nrows: &r [*r]\n",
        ["mine.yaml", "*r stands inside what it names"],
    ),
    "very deep": ("shape/mine.yaml", b"# @package shape.mine\nrows: " + b"[" * 5000 + b"]" * 5000, ["mine.yaml", "100 levels deep"]),
    "very deep in block form": (
        "shape/mine.yaml",
        b"# @package shape.mine\n" + b"".join(b" " * n + b"a:\n" for n in range(600)),
        ["nested too deeply"],
    ),
    "very long": ("shape/mine.yaml", b"# @package shape.mine\nrows: [" + b"1," * 210_000 + b"]", ["mine.yaml", "more than 200,000 values"]),
    "a set that names itself": ("shape/mine.yaml", b"defaults: [mine]\n", ["shape/mine.yaml: names itself in its defaults"]),
    "a list": ("shape/mine.yaml", b"- 1\n", ["shape"]),
    "an unknown engine in a preset": ("shape/mine.yaml", b"# @package _global_\ndefaults: [{/engine@e: nope}]\n", ["'nope'", "quick"]),
    "a key that does not exist": ("shape/mine.yaml", b"# @package shape.mine\nfoo: 1\n", ["shape.mine.foo", "rows"]),
    "a key of the report as a name": ("shape/mine.yaml", b"# @package shape.timing\nrows: 1\n", ["shape.timing", "rename"]),
    "a name with capitals": ("shape/mine.yaml", b"# @package shape.Mine\nrows: 1\n", ["shape.Mine", "lower-case"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_in_a_users_file_is_one_line(name: str, tmp_path: Path) -> None:
    path, content, words = FILES[name]
    (tmp_path / "cd" / path).parent.mkdir(parents=True)
    (tmp_path / "cd" / path).write_bytes(content)
    code, _, err = run("--config-dir", "cd", "shape=mine")
    assert (code, err.count("\n")) == (2, 1), err
    for word in words:
        assert word in err


def test_presets_that_name_each_other_are_told_with_their_way(tmp_path: Path) -> None:
    (tmp_path / "cd/engine").mkdir(parents=True)
    (tmp_path / "cd/engine/one.yaml").write_text("defaults: [quick, two]\n")
    (tmp_path / "cd/engine/two.yaml").write_text("defaults: [/engine/one]\n")
    code, _, err = run("--config-dir", "cd", "engine=one")
    assert (code, err.count("\n")) == (2, 1)
    assert "engine/one.yaml -> engine/two.yaml -> engine/one.yaml" in err


def test_aliases_and_presets_within_reason_are_read(tmp_path: Path) -> None:
    (tmp_path / "cd/engine").mkdir(parents=True)
    (tmp_path / "cd/shape").mkdir()
    (tmp_path / "cd/engine/one.yaml").write_text("defaults: [quick, two]\n")
    (tmp_path / "cd/engine/two.yaml").write_text("defaults: [base]\n")
    text = "# @package shape.mine\ncases: [{rows: &n 3, channels: *n, hidden: *n}, {rows: 4, channels: *n, hidden: 7}]\n"
    (tmp_path / "cd/shape/mine.yaml").write_text(text)
    assert run("--config-dir", "cd", "engine=one", "shape=mine")[::2] == (0, "")
    assert run("shape.smoke.cases=[{rows: 1, channels: 4, hidden: 4},{rows: 2, channels: 4, hidden: 4}]")[::2] == (0, "")


def test_a_deleted_current_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UnreadableError, match="the current folder does not exist any more"):
        split_plugin_paths([], {})


def test_plugins_cannot_be_named_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "cd").mkdir()
    (tmp_path / "cd" / "mine.yaml").write_text("defaults: [config, _self_]\nplugin_path: [x]\n")
    code, _, err = run("--config-dir", "cd", "--config-name", "mine")
    assert (code, err.count("\n")) == (2, 1)
    assert "plugin_path: can only be given on the command line" in err


def test_a_default_engine_that_failed_to_load_is_named() -> None:
    registry = make_registry()
    kept = {key: value for key, value in registry.engines.items() if key[1] != "quick"}
    code, _, err = run(registry=Registry(workloads=registry.workloads, engines=kept, failures=registry.failures))
    assert (code, err.count("\n")) == (2, 1)
    assert "'quick'" in err
    assert "could not be loaded: broken" in err


def test_one_id_with_two_kinds_of_options_is_refused() -> None:
    from plan_fakes import Quick

    extra: tuple[Engine, ...] = (Quick("base", workload="toy"),)
    code, _, err = run(registry=make_registry(extra))
    assert code == 2
    assert "engine base has other options in workload toy than in residual_mlp" in err


KEYS = [
    "engine",
    "shape",
    "timing",
    "timing.rounds",
    "engine.quick",
    "engine.quick.options.tile",
    "shape.smoke.cases",
    "hydra.job",
    "x",
    "out",
]
PIECES = [
    "quick",
    "smoke",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "$",
    "${",
    "(",
    ")",
    "'",
    '"',
    "\\",
    " ",
    "1",
    "-1",
    "2.5",
    "null",
    "true",
    "@",
    "/",
    ".",
]
OVERRIDES = st.one_of(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30),
    st.builds(
        "{}{}={}".format, st.sampled_from(["", "+", "++", "~"]), st.sampled_from(KEYS), st.lists(st.sampled_from(PIECES)).map("".join)
    ),
)


@given(OVERRIDES)
@example("engine=[[]]")
@example("engine={}")
@example("++engine=quick")
@example("~=x")
@example("engine.quick.options.tile=${oc.env:HOME}")
@example("shape.smoke.cases=[[1],{a: [b]}]")
@example("timing.rounds=1e999")
@example("timing.rounds=99999999999999999999999999")
@example("hydra=1")
@example("hydra.run=1")
@example("engine.quick=null")
@example("shape.smoke=null")
@example("timing=null")
@example("workload.id=toy")
@example("workload.id=3")
def test_any_override_is_obeyed_or_refused_in_one_line(text: str) -> None:
    if text.startswith("-"):
        return
    code, _, err = run("--cfg", "job", text)
    assert code in (0, 2)
    assert err.count("\n") == (1 if code else 0)
