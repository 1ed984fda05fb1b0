"""run_hydra: what is composed, selected, claimed, and in which order; sweeps."""

import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
import yaml
from plan_fakes import make_registry

from mkframe.cli.main import COMMANDS
from mkframe.config import patience
from mkframe.config.app import JobResult, SweepJob, run_hydra
from mkframe.errors import ConfigError, RunError
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import Config, DeviceKind, Select


@dataclass
class Session:
    """Runs command lines and keeps what the callbacks saw."""

    registry: Registry = field(default_factory=make_registry)
    configs: list[Config] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    swept: list[tuple[Path, tuple[SweepJob, ...]]] = field(default_factory=list)
    results: Sequence[JobResult | Exception] = ()
    out: str = ""
    err: str = ""

    def run(self, *argv: str, plugin_paths: Sequence[str] = ()) -> int:
        self.configs, self.folders, self.swept = [], [], []
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run_hydra(
                argv, self.registry, prepare=self._prepare, job=self._job, finish_sweep=self._finish, plugin_paths=plugin_paths
            )
        self.out, self.err = out.getvalue(), err.getvalue()
        return code

    def _prepare(self, config: Config) -> Config:
        assert not self.folders, "every job is prepared before the first one runs"
        self.configs.append(config)
        return config

    def _job(self, config: Config, folder: Path) -> JobResult:
        assert folder.is_dir()
        assert folder.is_absolute()
        self.folders.append(folder)
        end = self.results[len(self.folders) - 1] if self.results else JobResult(exit_code=0, report="report.json")
        if isinstance(end, BaseException):
            raise end
        return end

    def _finish(self, root: Path, jobs: tuple[SweepJob, ...]) -> None:
        self.swept.append((root, jobs))

    @property
    def config(self) -> Config:
        (config,) = self.configs
        return config


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(patience, "WAIT_S", 3600.0)  # a slow machine is no matter here
    return Session()


def test_defaults_come_from_the_files_and_the_workload(session: Session) -> None:
    assert session.run() == 0
    config = session.config
    assert config.workload.id == "residual_mlp"
    assert list(config.engine) == ["quick"]
    assert config.engine["quick"].options == {"tile": 16, "mode": "careful", "checked": True, "ratio": 0.5}
    assert list(config.shape) == ["smoke"]
    assert config.precision.id == "fp16"
    assert config.device.kind is DeviceKind.AUTO
    assert (config.timing.rounds, config.timing.samples_per_round, config.timing.processes, config.timing.warmups) == (6, 200, 3, 20)
    assert config.timing.hold == "auto"
    assert (config.energy.protocol.value, config.targets.id, config.out) == ("none", "h200", None)
    assert session.err == ""


def test_another_workload_brings_its_own_defaults_and_sets(session: Session) -> None:
    assert session.run("workload=toy") == 0
    assert list(session.config.engine) == ["toy-engine"]
    assert session.config.shape == {"smoke": {"seed": None, "cases": [{"rows": 3, "length": 4}]}}
    assert session.config.precision.id == "fp32"


def test_a_set_of_the_workload_wins_over_a_file_of_that_name(session: Session) -> None:
    assert session.run("shape=[long,smoke]", "workload=toy", "shape.smoke.seed=5") == 0
    assert list(session.config.shape) == ["long", "smoke"]
    assert session.config.shape["smoke"] == {"seed": 5, "cases": [{"rows": 3, "length": 4}]}
    assert session.run("shape=smoke") == 0
    assert set(session.config.shape["smoke"]["cases"][0]) == {"rows", "channels", "hidden"}


def test_a_workload_with_own_sets_gets_a_grid_of_its_own_axes(session: Session) -> None:
    assert session.run("workload=toy", "shape=grid", "shape.grid.length=[2,4]") == 0
    assert session.config.shape["grid"] == {"seed": None, "rows": 3, "length": [2, 4]}


def test_selection_keeps_its_order_and_takes_options(session: Session) -> None:
    assert session.run("engine=[host,quick,base]", "engine.quick.options.tile=32", "engine.quick.options.mode=fast") == 0
    assert list(session.config.engine) == ["host", "quick", "base"]
    assert session.config.engine["quick"].options["tile"] == 32
    assert session.run("engine=[quick-graph,quick]", "engine.quick-graph.options.tile=8") == 0
    assert [node.options["tile"] for node in session.config.engine.values()] == [8, 16]


def test_presets(session: Session) -> None:
    assert session.run("engine=[base,all]") == 0
    assert [node.select for node in session.config.engine.values()] == [None, Select.ALL]


@pytest.mark.parametrize("name", ["development", "assessment", "smoke", "deep", "decode", "prefill", "footprint", "ragged"])
def test_every_set_of_the_files_fits_the_workload(session: Session, name: str) -> None:
    assert session.run(f"shape={name}") == 0
    cases = session.config.shape[name]["cases"]
    assert (
        len(cases)
        == {"development": 5, "assessment": 4, "smoke": 2, "deep": 12, "decode": 5, "prefill": 1, "footprint": 1, "ragged": 40}[name]
    )
    assert session.config.shape[name]["seed"] == {"development": 1729, "assessment": 2718, "ragged": 31415}.get(name)


def test_the_ragged_set_is_drawn_as_its_file_says(session: Session) -> None:
    assert session.run("shape=ragged") == 0
    random = Random(20261130)
    drawn = [{"rows": random.randint(1, 5000), "channels": random.randint(1, 256), "hidden": random.randint(1, 256)} for _ in range(40)]
    assert list(session.config.shape["ragged"]["cases"]) == drawn


@pytest.mark.parametrize("name", ["h200", "a100", "rtx3090"])
def test_cards_are_complete(session: Session, name: str) -> None:
    assert session.run(f"device={name}") == 0
    card = session.config.device.card
    assert card is not None
    assert (card.id, session.config.device.kind) == (name, DeviceKind.CUDA)
    assert card.fp16_flops >= card.tf32_flops >= card.fp32_flops > 1e13
    assert card.memory_bytes_per_s > 9e11
    assert card.source


def test_recorded_is_the_recorded_protocol(session: Session) -> None:
    assert session.run("timing=recorded") == 0
    timing = session.config.timing
    assert (timing.rounds, timing.samples_per_round, timing.processes, timing.hold) == (5, 200, 1, False)


def test_targets_are_typed(session: Session) -> None:
    session.run()
    groups = session.config.targets.groups
    assert {group.engine for group in groups} == {"persistent", "streamed", "fused"}
    assert all(case.p50_us > 0 and case.shape for group in groups for case in group.cases)
    assert session.run("targets=none") == 0
    assert session.config.targets.groups == ()


def test_flags_may_stand_anywhere(session: Session) -> None:
    assert session.run("engine=quick", "-m", "timing.rounds=3,6") == 0
    assert [config.timing.rounds for config in session.configs] == [3, 6]


def test_a_run_gets_a_new_folder_and_a_named_one_is_used_once(session: Session, tmp_path: Path) -> None:
    assert session.run() == 0
    (folder,) = session.folders
    assert folder.parent == tmp_path / "outputs"
    assert session.run("out=mine") == 0
    assert session.folders == [tmp_path / "mine"]
    assert session.run("out=mine") == 2
    assert "mine" in session.err
    assert "out=DIR" in session.err
    assert session.run("hydra.run.dir=other") == 0
    assert session.folders == [tmp_path / "other"]


def test_nothing_of_hydra_is_written(session: Session, tmp_path: Path) -> None:
    session.run("out=mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["journal.jsonl"]


def test_a_job_error_is_one_line_and_its_exit_code(session: Session) -> None:
    session.results = [JobResult(exit_code=1, error="two\nlines")]
    assert session.run() == 1
    assert session.err == "mkframe: two lines\n"
    session.results = [RunError("nothing left")]
    assert session.run() == 1
    assert session.err == "mkframe: nothing left\n"


def test_a_sweep_runs_every_job_and_reports_each_failure(session: Session, tmp_path: Path) -> None:
    session.results = [
        JobResult(exit_code=0, report="report.json"),
        RunError("worker died"),
        ValueError("odd"),
        JobResult(exit_code=1, report="report.json", error="a cell failed"),
    ]
    assert session.run("-m", "engine=quick,base", "shape=smoke,development", "out=swept") == 1
    ((root, jobs),) = session.swept
    assert root == tmp_path / "swept"
    assert [job.folder for job in jobs] == ["0", "1", "2", "3"]
    assert [job.overrides[:2] for job in jobs] == [
        ("engine=quick", "shape=smoke"),
        ("engine=quick", "shape=development"),
        ("engine=base", "shape=smoke"),
        ("engine=base", "shape=development"),
    ]
    assert [job.result.exit_code for job in jobs] == [0, 1, 1, 1]
    assert [job.result.report for job in jobs] == ["report.json", None, None, "report.json"]
    lines = session.err.splitlines()
    assert len(lines) == 3
    for line, reason in zip(lines, ["worker died", "ValueError: odd", "a cell failed"], strict=True):
        assert reason in line
    assert "engine=quick shape=development" in lines[0]


def test_a_sweep_over_workloads_takes_each_ones_defaults(session: Session) -> None:
    assert session.run("-m", "workload=residual_mlp,toy") == 0
    assert [list(config.engine) for config in session.configs] == [["quick"], ["toy-engine"]]


def test_a_sweep_over_a_grid_axis(session: Session) -> None:
    assert session.run("-m", "shape=grid", "shape.grid.rows=1,8") == 0
    assert [config.shape["grid"]["rows"] for config in session.configs] == [1, 8]


def test_a_glob_shows_no_internal_node(session: Session) -> None:
    assert session.run("-m", "workload=toy", "shape=glob(*)") == 0
    names = [next(iter(config.shape)) for config in session.configs]
    assert not [name for name in names if "own" in name or "default" in name]
    assert {"smoke", "long", "grid"} <= set(names)


def test_a_bad_value_stops_a_sweep_before_any_job(session: Session) -> None:
    assert session.run("-m", "timing.rounds=3,three") == 2
    assert session.folders == []
    assert session.swept == []


def test_a_failing_preparation_stops_a_sweep_before_any_job() -> None:
    def prepare(config: Config) -> Config:
        if config.timing.rounds == 4:
            raise ConfigError("no four")
        return config

    ran: list[Path] = []

    def job(_: Config, folder: Path) -> JobResult:
        ran.append(folder)
        return JobResult(exit_code=0)

    code = run_hydra(["-m", "timing.rounds=3,4"], make_registry(), prepare=prepare, job=job, finish_sweep=lambda *_: None)
    assert (code, ran) == (2, [])
    assert not Path("outputs").exists()


def test_an_interrupted_sweep_still_writes_its_index(session: Session) -> None:
    session.results = [JobResult(exit_code=0), KeyboardInterrupt()]  # type: ignore[list-item]
    with pytest.raises(KeyboardInterrupt):
        session.run("-m", "timing.rounds=3,4,5")
    ((_, jobs),) = session.swept
    assert len(jobs) == 1


def test_a_sweep_whose_last_started_job_came_through_is_no_success_when_others_were_not_started(session: Session) -> None:
    session.results = [JobResult(exit_code=0, interrupted=True)]
    assert session.run("-m", "timing.rounds=3,4") == 1
    ((_, jobs),) = session.swept
    assert len(jobs) == 1


def test_who_waits_is_told_what_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAIT_S", 0.0)
    told: list[str] = []
    arrived = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        arrived.set()

    def prepare(config: Config) -> Config:
        assert arrived.wait(60)
        return config

    done = {"job": lambda *_: JobResult(exit_code=0), "finish_sweep": lambda *_: None}
    assert run_hydra(["-m", "timing.rounds=3,4,5"], make_registry(), prepare=prepare, tell=tell, **done) == 0
    assert len(told) == 1
    assert told[0].startswith("composing and planning 3 jobs")


def test_who_does_not_wait_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "WAIT_S", 3600.0)
    told: list[str] = []
    before = set(threading.enumerate())  # other tests of this process may have left some
    with patience.tell_if_slow(told.append, "x"):
        pass
    assert told == []
    assert set(threading.enumerate()) <= before


def test_a_single_run_tells_on_stderr_where_nobody_listens(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    class AtOnce(threading.Timer):
        def start(self) -> None:
            self.function(*self.args)

        def join(self, timeout: float | None = None) -> None:
            pass

    monkeypatch.setattr(threading, "Timer", AtOnce)
    assert session.run("timing.rounds=3") == 0
    assert session.err == "mkframe: composing the configuration; nothing runs yet\n"


def test_the_index_gets_no_folders(session: Session, tmp_path: Path) -> None:
    away = tmp_path / "swept"
    (away / "1").mkdir(parents=True)
    assert session.run("-m", "timing.rounds=3,4", f"out={away}", "hydra.sweep.subdir=${hydra.job.num}", "hydra.searchpath=[]") == 1
    ((_, jobs),) = session.swept
    assert [job.overrides for job in jobs] == [("timing.rounds=3",), ("timing.rounds=4",)]
    assert [job.result.error for job in jobs] == [None, "1 holds a run already; name another folder with out=DIR"]
    assert f"out={away}" in session.err
    assert f"{away / '1'} holds a run already" in session.err
    assert session.run("-m", "timing.rounds=3", f"hydra.sweep.dir={tmp_path / 'other'}") == 0
    ((root, jobs),) = session.swept
    assert root == tmp_path / "other"
    assert jobs[0].overrides == ("timing.rounds=3",)


def test_two_sweeps_never_share_a_folder(session: Session) -> None:
    assert session.run("-m", "timing.rounds=3,4", "out=swept") == 0
    assert session.run("-m", "timing.rounds=3,4", "out=swept") == 2
    assert session.folders == []


def test_jobs_with_the_same_subfolder_are_refused_one_by_one(session: Session) -> None:
    assert session.run("-m", "timing.rounds=3,4", "hydra.sweep.subdir=same") == 1
    ((_, jobs),) = session.swept
    assert [job.result.exit_code for job in jobs] == [0, 2]


@pytest.mark.parametrize("subdir", ["../outside", "/tmp/outside", "."])
def test_a_job_stays_inside_its_sweep(session: Session, subdir: str) -> None:
    assert session.run("-m", "timing.rounds=3", f"hydra.sweep.subdir={subdir}") == 1
    assert session.folders == []
    assert "inside the sweep" in session.err


def test_subfolders_by_overrides(session: Session) -> None:
    assert session.run("-m", "timing.rounds=3,4", "hydra.sweep.subdir=${hydra.job.override_dirname}") == 0
    assert [folder.name for folder in session.folders] == ["timing.rounds=3", "timing.rounds=4"]


def test_cfg_shows_the_checked_configuration(session: Session) -> None:
    assert session.run("--cfg", "job", "engine=quick", "engine.quick.options.tile=8", "timing.rounds=9", plugin_paths=["/plugins"]) == 0
    shown = yaml.safe_load(session.out)
    assert shown["engine"]["quick"]["options"]["tile"] == 8
    assert shown["timing"]["rounds"] == 9
    assert shown["plugin_path"] == ["/plugins"]
    assert "hydra" not in shown
    assert session.configs == []
    assert session.run("--cfg", "all", "-m", "timing.rounds=3,4") == 0
    assert [document["timing"]["rounds"] for document in yaml.safe_load_all(session.out)] == [3, 4]


def test_help_lists_choices_and_nothing_internal(session: Session) -> None:
    assert session.run("--help") == 0
    for word in ("quick-graph", "board", "residual_mlp", "per_call", "rtx3090", "--config-dir", "--quiet", "--json", "resume=RUN_FOLDER"):
        assert word in session.out
    listed = re.search(r"^commands:\n((?:  .+\n)+)", session.out, re.MULTILINE)
    assert listed is not None
    assert {line.split()[0] for line in listed[1].splitlines()} == set(COMMANDS)
    assert "-default" not in session.out
    assert "-own-" not in session.out


def test_hydra_shows_its_own(session: Session) -> None:
    assert session.run("--hydra-help") == 0
    assert "hydra.cc" in session.out


def test_a_users_folder_adds_choices_and_sweeps(session: Session, tmp_path: Path) -> None:
    for name, text in {
        "engine/pair.yaml": "defaults: [base, host]\n",
        "timing/short.yaml": "defaults: [per_call]\nrounds: 3\n",
        "mine.yaml": "defaults: [config, {override timing: short}, _self_]\nhydra: {sweeper: {params: {timing.warmups: '1,2'}}}\n",
    }.items():
        path = tmp_path / "cd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert session.run("--config-dir", "cd", "engine=pair", "timing=short") == 0
    assert list(session.config.engine) == ["base", "host"]
    assert session.config.timing.rounds == 3
    assert session.config.timing.samples_per_round == 200
    assert session.run("-cd", "cd", "-cn", "mine", "-m") == 0
    assert [(config.timing.rounds, config.timing.warmups) for config in session.configs] == [(3, 1), (3, 2)]


def test_registries_do_not_leak_into_one_another(session: Session) -> None:
    session.run("engine=quick")
    empty = Session(registry=make_registry(failures=()))
    assert empty.run("engine=broken") == 2
    assert "could not be loaded" not in empty.err


def test_importing_the_plan_and_the_entry_costs_neither_hydra_nor_torch() -> None:
    code = "import sys, json, mkframe.config.app, mkframe.plan, mkframe.config.plugin_paths; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"hydra", "omegaconf", "torch", "pynvml"} & set(json.loads(done.stdout))
