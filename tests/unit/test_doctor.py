"""The doctor: judgements over planted facts, a driver on paper, limits on time, and the command itself."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from probe_fakes import HOPPER, FakeGpu

from mkframe.cli.doctor_command import show
from mkframe.doctor import gpu_facts, gpus, machine, tools
from mkframe.doctor.child import Ended, run_child
from mkframe.doctor.examine import LIMIT_S, Examination, examinations, examine, measurable
from mkframe.doctor.line import Line, Status, no, ok
from mkframe.plan.devices import TorchBuild
from mkframe.probe import cards
from mkframe.probe.session import probe_gpu

GOOD: dict[str, Any] = {
    "name": HOPPER.name,
    "uuid": HOPPER.uuid,
    "mig": False,
    "ecc": True,
    "persistence": True,
    "sm_mhz": 345,
    "max_sm_mhz": 1980,
    "throttle_reasons": 1,
    "power_limit_w": 700.0,
    "default_power_limit_w": 700.0,
    "temperature_c": 30,
    "memory_used_bytes": 0,
    "processes": [],
    "energy_counter": "updating",
}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def statuses(lines: Sequence[Line]) -> dict[str, Status]:
    return {line.topic: line.status for line in lines}


def test_a_good_board_with_a_card_is_all_ok(home: dict[str, str]) -> None:
    gpu = FakeGpu()
    document = probe_gpu(gpu, rounds=1, now=gpu.now).document()
    cards.save_card(document, cards.card_path(HOPPER.uuid, HOPPER.driver, home))
    lines = list(gpus.driver_lines({"driver": HOPPER.driver, "gpus": [GOOD]}, home))
    assert [line for line in lines if line.status is not Status.OK] == []
    assert len(lines) == 11
    newer = list(gpus.driver_lines({"driver": "999.2", "gpus": [GOOD]}, home))
    (card,) = (line for line in newer if line.topic == "gpu 0: device card")
    assert card.status is Status.WARN
    assert f"of driver {HOPPER.driver}" in card.found


@pytest.mark.parametrize(
    ("change", "topic", "found"),
    [
        ({"mig": True}, "MIG", "on"),
        ({"persistence": False}, "persistence mode", "off"),
        ({"sm_mhz": None}, "clocks", "unreadable"),
        ({"throttle_reasons": None}, "throttling", "unreadable"),
        ({"throttle_reasons": 0x44}, "throttling", "now: power cap, hot (hardware)"),
        ({"throttle_reasons": 0x2}, "throttling", "clocks are forced: application clocks"),
        ({"power_limit_w": 500.0}, "power limit", "500 W, by default 700 W"),
        ({"processes": None}, "processes", "unreadable"),
        ({"processes": [12, 34]}, "processes", "2 (pid 12, 34)"),
        ({"energy_counter": "still"}, "energy counter", "readable, and did not change in 0.5 s"),
        ({"energy_counter": "unreadable"}, "energy counter", "unreadable"),
    ],
)
def test_each_catch_of_a_board_is_a_warning(change: dict[str, Any], topic: str, found: str, home: dict[str, str]) -> None:
    lines = list(gpus.gpu_lines("gpu 0", {**GOOD, **change}, "1", home))
    warned = {line.topic: line.found for line in lines if line.status is Status.WARN}
    assert warned.pop(f"gpu 0: {topic}") == found
    assert set(warned) == {"gpu 0: device card"}


def test_a_board_that_tells_nothing_gives_lines_and_no_fault(home: dict[str, str]) -> None:
    blank = {**dict.fromkeys(GOOD), "name": "x", "uuid": "y", "energy_counter": "unreadable"}
    assert len(list(gpus.gpu_lines("gpu 0", blank, "1", home))) >= 7


class NvmlError(Exception):
    """As pynvml.NVMLError."""


class PaperNvml:
    """pynvml on paper. `energy`: what the counter shows, in order; None where it cannot be read."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    def __init__(self, energy: Sequence[int | None] = (5,), driver: bool = True) -> None:
        self.energy, self.driver, self.reads = energy, driver, 0

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NvmlError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"999.1"

    def nvmlDeviceGetName(self, handle: object) -> bytes:
        return b"Paper"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object) -> int:
        value = self.energy[min(self.reads, len(self.energy) - 1)]
        self.reads += 1
        if value is None:
            raise NvmlError("Not Supported")
        return value

    def __getattr__(self, name: str) -> Any:
        if name in ("nvmlShutdown", "nvmlDeviceGetHandleByIndex"):
            return lambda *arguments: 0
        assert name.startswith("nvmlDeviceGet"), f"the doctor calls {name}, and must only read"

        def refuse(*arguments: object) -> Any:
            raise NvmlError("Not Supported")

        return refuse


@pytest.mark.parametrize(("energy", "state"), [((5, 5, 9), "updating"), ((5,), "still"), ((None,), "unreadable")])
def test_facts_come_from_the_driver_and_what_it_refuses_is_null(energy: Sequence[int | None], state: str) -> None:
    facts = gpu_facts.gather(PaperNvml(energy), wait_s=0.05)
    (gpu,) = facts["gpus"]
    assert (facts["driver"], gpu["name"], gpu["energy_counter"]) == ("999.1", "Paper", state)
    assert gpu["mig"] is None
    assert gpu.keys() == GOOD.keys()


def test_no_driver_and_no_board_stop_cuda_alone(home: dict[str, str]) -> None:
    for facts in (gpu_facts.gather(PaperNvml(driver=False)), {"driver": "1", "gpus": []}):
        (line,) = gpus.driver_lines(facts, home)
        assert (line.status, line.stops) == (Status.NO, ("cuda",))
        assert line.advice


def test_torch_decides_what_can_be_measured() -> None:
    assert measurable(machine.torch_lines(None)) == ()
    assert measurable(machine.torch_lines(TorchBuild(version="2.13.0+cpu", cuda=None))) == ("cpu",)
    assert measurable(machine.torch_lines(TorchBuild(version="2.13.0", cuda="13.0"))) == ("cpu", "cuda")


@pytest.mark.parametrize(("version", "status"), [((3, 10, 1), "warn"), ((3, 11, 0), "ok"), ((3, 13, 9), "ok"), ((3, 14, 0), "warn")])
def test_python(version: tuple[int, ...], status: str) -> None:
    assert [line.status for line in machine.python_lines(version)] == [status]


@pytest.mark.parametrize(("cores", "load", "status"), [(8, 0.1, "ok"), (8, 5.0, "warn"), (1, 0.0, "warn")])
def test_cores(cores: int, load: float, status: str) -> None:
    assert [line.status for line in machine.core_lines(cores, load)] == [status]


def test_what_the_kernel_tells_is_read_from_its_files(tmp_path: Path) -> None:
    assert statuses(list(machine.governor_lines(tmp_path))) == {"cpu frequency": Status.OK}
    for core, governor in enumerate(("performance", "powersave")):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
        (line,) = machine.governor_lines(tmp_path)
        assert (line.status, line.found) == ((Status.OK, "governor performance"), (Status.WARN, "governor performance, powersave"))[core]
    source = tmp_path / "current_clocksource"
    for text, status in (("tsc\n", Status.OK), ("hpet\n", Status.WARN), ("", Status.WARN)):
        source.write_text(text)
        assert [line.status for line in machine.clock_source_lines(source)] == [status]
    assert [line.found for line in machine.rapl_lines(tmp_path)] == ["the kernel shows none (usual in a virtual machine)"]
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "energy_uj").write_text("12\n")
    assert [line.found for line in machine.rapl_lines(tmp_path)] == ["1 of 1 zones readable"]
    (zone / "energy_uj").write_text("")
    assert [line.status for line in machine.rapl_lines(tmp_path)] == [Status.NO]


def test_the_output_folder_need_not_exist_and_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / "a" / "b"
    assert measurable(machine.disk_lines(wanted)) == ("cpu", "cuda")
    assert not wanted.parent.exists()
    usage = machine.shutil.disk_usage(tmp_path)
    for free, status in ((2**29, Status.WARN), (2**20, Status.NO)):
        monkeypatch.setattr(machine.shutil, "disk_usage", lambda path, free=free: usage._replace(free=free))
        assert [line.status for line in machine.disk_lines(wanted)] == [status]
    (tmp_path / "file").write_text("")
    assert measurable(machine.disk_lines(tmp_path / "file" / "x")) == ()


def test_a_cache_folder_that_keeps_nothing_is_a_warning(home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [line.status for line in machine.cache_lines(home)] == [Status.OK]
    (tmp_path / "file").write_text("")
    (line,) = machine.cache_lines({"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert (line.status, line.advice, measurable([line])) == (Status.WARN, "make it writable, or set XDG_CACHE_HOME", ("cpu", "cuda"))
    usage = machine.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage._replace(free=2**19))
    assert [line.status for line in machine.cache_lines(home)] == [Status.WARN]


def ended(code: int | None, output: str = "", error: str = "") -> tools.Run:
    return lambda command, timeout_s: Ended(code=code, output=output, error=error)


def found(name: str) -> str:
    return f"/usr/bin/{name}"


def absent(name: str) -> None:
    return None


def test_compilers(tmp_path: Path) -> None:
    def look(run: tools.Run, which: Any = found) -> Line:
        (line,) = tools.compiler_lines(1, run, which, tmp_path)
        return line

    assert look(ended(0), absent).found == "none"
    assert "Python.h is missing" in look(ended(0, "g++ 12\n")).found
    (tmp_path / "Python.h").write_text("")
    assert look(ended(0, "g++ 12\n")).found == "g++ 12; Python.h is there"
    assert look(ended(1, error="x\nno such tool\n")).found == "c++ fails: no such tool"
    release = ended(0, "nvcc: NVIDIA\nCuda compilation tools, release 13.0, V13.0.88\n")
    assert [line.found for line in tools.nvcc_lines(1, release, found)] == ["Cuda compilation tools, release 13.0, V13.0.88"]
    assert [line.status for line in tools.nvcc_lines(1, ended(1), found)] == [Status.WARN]
    assert [line.status for line in tools.nvcc_lines(1, ended(1), absent)] == [Status.OK]


def test_libraries_that_do_not_load_are_a_warning() -> None:
    for look in (tools.nvrtc_lines, tools.cute_lines):
        assert [(line.status, line.found) for line in look(1, ended(0, "13.0\n"))] == [(Status.OK, "13.0")]
        (line,) = look(1, ended(1, error="Traceback\nImportError: no libx"))
        assert line.status is Status.WARN
        assert "no libx" in line.found
        assert line.advice


def test_gpu_facts_that_do_not_arrive_are_a_line(home: dict[str, str]) -> None:
    for run in (ended(None, error="no answer within 8 s"), ended(-11), ended(0, "no json")):
        (line,) = tools.gpu_lines(home, 1, run)
        assert (line.status, line.stops) == (Status.NO, ("cuda",))
    assert len(list(tools.gpu_lines(home, 1, ended(0, json.dumps({"driver": "1", "gpus": [GOOD, GOOD]}))))) == 21


def test_plugins_that_failed_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('half an engine')\n")
    (line,) = tools.plugin_lines((str(tmp_path),), 60)
    assert line.status is Status.WARN
    assert "half an engine" in line.found
    (good,) = tools.plugin_lines((), 60)
    assert good.status is Status.OK
    assert [one.status for one in tools.plugin_lines((), 1, ended(0, ""))] == [Status.WARN]


def test_a_child_that_hangs_is_killed_and_one_that_is_absent_is_said() -> None:
    begin = time.monotonic()
    slow = run_child([sys.executable, "-c", "import time; time.sleep(60)"], 0.5)
    assert (slow.code, slow.last_error) == (None, "no answer within 0.5 s")
    assert time.monotonic() - begin < 30
    assert "cannot be started" in run_child(["/nowhere/at/all"], 1).error
    assert run_child([sys.executable, "-c", "import sys; sys.exit(3)"], 60).last_error == "exit code 3"


def test_an_examination_that_raises_or_hangs_costs_its_own_line() -> None:
    def broken() -> Sequence[Line]:
        raise OSError("a bad\nfile")

    def hanging() -> Sequence[Line]:
        time.sleep(5)
        return [ok("late", "x", "y")]

    lines = examine(
        [
            Examination(topic="broken", look=broken, limit_s=5),
            Examination(topic="late", look=hanging, limit_s=0.2),
            Examination(topic="good", look=lambda: [ok("good", "x", "y")], limit_s=5),
        ]
    )
    assert [(line.topic, line.status) for line in lines] == [("broken", "warn"), ("late", "warn"), ("good", "ok")]
    assert "a bad file" in lines[0].found
    assert "no answer within 0.2 s" in lines[1].found


def test_every_examination_ends_within_ten_seconds(tmp_path: Path) -> None:
    wanted = examinations(tmp_path, (), {})
    assert LIMIT_S < 10
    assert all(0 < one.limit_s <= LIMIT_S for one in wanted)
    assert len({one.topic for one in wanted}) == len(wanted) >= 14


def test_lines_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    show([no("x", "two\nlines", "bad", "do", "cuda")], ())
    assert capsys.readouterr().out.splitlines() == ["no    x  two lines: bad -> do", "This machine can measure: nothing"]


def test_the_command_prints_one_document(run_cli: Any) -> None:
    result = run_cli("doctor", "--format", "json")
    document = json.loads(result.stdout)
    assert result.stderr == ""
    assert result.returncode == 0
    assert "cpu" in document["measurable"]
    topics = {line["topic"] for line in document["lines"]}
    assert topics >= {
        "python",
        "torch",
        "driver",
        "cores",
        "clock source",
        "output folder",
        "NVRTC",
        "CuTe DSL",
        "plugins",
        "cpu: device card",
    }
    assert all(line["status"] in list(Status) and line["found"] and line["means"] for line in document["lines"])


def test_the_command_exits_1_where_nothing_can_be_measured(run_cli: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_cli("doctor", "--out", "file/runs")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.splitlines()[-1] == "This machine can measure: nothing"


def test_wrong_usage_exits_2_with_one_line(run_cli: Any) -> None:
    result = run_cli("doctor", "--fix")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
