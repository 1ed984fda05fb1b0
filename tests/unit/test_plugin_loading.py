"""Whatever a plugin does wrong when it is loaded is one line that names it, and hurts nobody else."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mkframe.errors import PluginError, SelectionError, UsageError
from mkframe.plugin import probe
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import LoadFailure, Registry

ENGINE = """
from dataclasses import dataclass, field
from mkframe.plugin import Cost, Defaults, Engine, Launches, Role, TensorSpec, Tolerance, Workload

class Mine(Engine):
    id = "mine"
    workload = "residual_mlp"
    {body}
    def bind(self, case, precision, tensors, options):
        raise NotImplementedError

ENGINES = (Mine(),)
"""

WORKLOAD = """
from dataclasses import dataclass
from mkframe.plugin import Cost, Defaults, Role, TensorSpec, Tolerance, Workload

@dataclass(frozen=True, kw_only=True)
class Case:
    rows: int
    def __post_init__(self):
        if self.rows > 99:
            raise ValueError("too many rows")

class Norm(Workload):
    id = "mynorm"
    Case = Case
    precisions = ("fp32",)
    defaults = Defaults(engines=("torch-eager",), shapes=("norm",), precision="fp32")
    shapes = {{"norm": ({{"rows": 3}},)}}
    def tensors(self, case, precision): raise NotImplementedError
    def draw(self, case, seed): raise NotImplementedError
    def reference(self, case, precision, inputs): raise NotImplementedError
    def tolerance(self, precision): return Tolerance(rtol=0.0, atol=0.0)
    def cost(self, case, precision): raise NotImplementedError
    def expression(self, case, precision, tensors): raise NotImplementedError
    {body}

WORKLOADS = (Norm(),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin folder with one engine in it that is sound."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "good.py").write_text(ENGINE.format(body="").replace('"mine"', '"good"'))
    return made


def load(folder: Path, source: str = "", name: str = "bad.py") -> Registry:
    """The registry with one more file; the sound engine is always there."""
    if source:
        (folder / name).write_text(source)
    found = load_registry([str(folder)])
    assert found.engine("residual_mlp", "good").id == "good"
    return found


def failure(found: Registry) -> LoadFailure:
    (one,) = found.failures
    assert one.error.isprintable()
    return one


def test_sound_plugins_load(folder: Path) -> None:
    (folder / "norm.py").write_text(WORKLOAD.format(body=""))
    found = load(folder, ENGINE.format(body=""))
    assert (found.failures, found.ignored) == ((), ())
    assert found.engine("residual_mlp", "mine").id == "mine"
    assert found.workload("mynorm").id == "mynorm"
    assert found.engines["mynorm", "torch-eager"].origin == "built-in"  # the factories see it


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("ENGINES = 5", "ENGINES must be a tuple, not int"),
        ("def ENGINES(): return ()", "ENGINES must be a tuple, not function"),
        ("ENGINES = None", "ENGINES must be a tuple, not NoneType"),
        ("ENGINES = 'mine'", "ENGINES must be a tuple, not str"),
        ("ENGINES = (engine for engine in ())", "ENGINES must be a tuple, not generator"),
        ("class Odd(tuple):\n    def __iter__(self): raise OSError('gone')\nENGINES = Odd()", "OSError: gone"),
        ("class Odd(tuple):\n    def __iter__(self): raise SystemExit(0)\nENGINES = Odd()", "SystemExit: 0"),
        ("ENGINES = (5,)", "ENGINES must hold instances of mkframe.plugin.Engine, not int"),
        ("WORKLOADS = (5,)", "WORKLOADS must hold instances of mkframe.plugin.Workload, not int"),
        ("ENGINE_FACTORIES = (5,)", "ENGINE_FACTORIES must hold functions from a workload to engines, not int"),
        ("ENGINE_FACTORIES = (lambda workload: 5,)", "TypeError: 'int' object is not iterable"),
        ("def make(workload): raise SystemExit\nENGINE_FACTORIES = (make,)", "SystemExit"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("import os\nos._exit(0)", "SystemExit: os._exit(0)"),
        ("from os import _exit\ndef make(workload): _exit(5)\nENGINE_FACTORIES = (make,)", "SystemExit: os._exit(5)"),
        ("raise ValueError('a\\x1b[31m\\nb')", r"ValueError: a\x1b[31m b"),
        ("class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd", "Odd: its message cannot be read"),
        ("def __getattr__(name): raise ZeroDivisionError('no')\nWORKLOADS = ()", "ZeroDivisionError: no"),
    ],
)
def test_what_a_file_lists(folder: Path, source: str, error: str) -> None:
    found = failure(load(folder, source))
    assert (found.id, found.origin, found.error) == ("bad", "folder mine/bad.py", error)


@pytest.mark.parametrize(
    ("body", "who", "error"),
    [
        ("id = property(lambda self: 1 / 0)", "bad", "id of Mine cannot be read: ZeroDivisionError: division by zero"),
        ("id = 'Mine'", "Mine", "engine Mine: its id must be lower-case"),
        ("precisions = property(lambda self: 1 / 0)", "mine", "precisions of Mine cannot be read"),
        ("limits = property(lambda self: exit(4))", "mine", "SystemExit: 4"),
        ("limits = property(lambda self: __import__('os')._exit(4))", "mine", "SystemExit: os._exit(4)"),
        ("limits = 5", "mine", "engine mine: limits must be a text, not 5"),
        ("baseline = 'yes'", "mine", "engine mine: baseline must be True or False, not 'yes'"),
        ("overlaps = 1", "mine", "engine mine: overlaps must be True or False, not 1"),
        ("devices = ['cpu']", "mine", "mine: devices must be a tuple out of cpu, cuda"),
        ("precisions = ({},)", "mine", "mine: precisions must be a tuple out of"),
        ("unsupported = None", "mine", "engine mine: unsupported must take 3 arguments"),
        ("def scratch(self): return {}", "mine", "engine mine: scratch must take 3 arguments"),
        ("def implementation(self): return ''", "mine", "engine mine: implementation must take 1 arguments"),
        ("sources = ('a.cu',)", "mine", "engine mine: sources must take 0 arguments"),
        ("Options = 5", "mine", "engine mine: Options must be a dataclass"),
        (
            "@dataclass\n    class Options:\n        x: int = field(default_factory=lambda: 1 // 0)",
            "mine",
            "engine mine: option x has no default: ZeroDivisionError",
        ),
    ],
)
def test_what_an_engine_declares(folder: Path, body: str, who: str, error: str) -> None:
    found = failure(load(folder, ENGINE.format(body=body)))
    assert (found.id, found.origin) == (who, "folder mine/bad.py")
    assert found.error.startswith(error)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("precisions = property(lambda self: 1 / 0)", "precisions of Norm cannot be read: ZeroDivisionError: division by zero"),
        ("Case = int", "workload mynorm: Case must be a frozen dataclass of integers"),
        ("shapes = 5", "workload mynorm: shapes must map names to lists of cases, not 5"),
        ("shapes = {'norm': 5}", "workload mynorm: shapes['norm'] must be a list of cases, not 5"),
        ("shapes = {'norm': ()}", "workload mynorm: shapes['norm'] must be a list of cases"),
        ("shapes = {'a/b': ({'rows': 3},)}", "workload mynorm: shapes['a/b']: a set's name is"),
        ("shapes = {'norm': (5,)}", "workload mynorm: shapes['norm'][0] must be a dictionary of rows"),
        ("shapes = {'norm': ({'rows': 3}, {})}", "workload mynorm: shapes['norm'][1] must be a dictionary of rows"),
        ("shapes = {'norm': ({'rows': 3, 'x': 1},)}", "workload mynorm: shapes['norm'][0] must be a dictionary of rows"),
        ("shapes = {'norm': ({'rows': 3.0},)}", "workload mynorm: shapes['norm'][0]: rows must be an int, not 3.0"),
        ("shapes = {'norm': ({'rows': 100},)}", "workload mynorm: shapes['norm'][0] is refused by Case: ValueError: too many rows"),
        (
            "defaults = Defaults(engines='torch-eager', shapes=('norm',), precision='fp32')",
            "workload mynorm: defaults.engines must be a tuple",
        ),
        (
            "defaults = Defaults(engines=('torch-eager',), shapes=(5,), precision='fp32')",
            "workload mynorm: defaults.shapes must be a tuple",
        ),
        ("eager_id = 5", "workload mynorm: eager_id must be the id of an engine, not 5"),
        ("def cost(self): pass", "workload mynorm: cost must take 2 arguments"),
        ("def tolerance(self, precision): return 0.1", "workload mynorm: tolerance(fp32) must return a Tolerance, not 0.1"),
        (
            "def tolerance(self, precision): return Tolerance(rtol=-1.0, atol=0.0)",
            "workload mynorm: tolerance(fp32) failed: ValueError: rtol must be a finite number of at least 0, not -1.0",
        ),
        (
            "def tolerance(self, precision): return Tolerance(rtol=0.0, atol=float('nan'))",
            "workload mynorm: tolerance(fp32) failed: ValueError: atol must be a finite number of at least 0, not nan",
        ),
    ],
)
def test_what_a_workload_declares(folder: Path, body: str, error: str) -> None:
    found = failure(load(folder, WORKLOAD.format(body=body)))
    assert (found.id, found.origin) == ("mynorm", "folder mine/bad.py")
    assert found.error.startswith(error)


def test_asking_for_what_failed_tells_why(folder: Path) -> None:
    found = load(folder, ENGINE.format(body="limits = 5"))
    with pytest.raises(PluginError, match=r"^mine \(folder mine/bad\.py\) could not be loaded: engine mine: limits"):
        found.engine("residual_mlp", "mine")


def test_two_claims_of_one_id_are_still_refused(folder: Path) -> None:
    with pytest.raises(
        PluginError, match=r"engine good of residual_mlp is claimed twice: by folder mine/bad\.py and by folder mine/good\.py"
    ):
        load(folder, (folder / "good.py").read_text())


def test_nothing_that_a_plugin_prints_reaches_stdout(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = "import os\nprint('printed')\nos.write(1, b'written')\nos.system('echo a child')\nENGINES = ()"
    load(folder, source)
    print("afterwards")
    out, err = capfd.readouterr()
    assert out == "afterwards\n"
    assert all(word in err for word in ("printed", "written", "a child"))


def things(folder: Path) -> None:
    (folder / "e.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "nowhere.py").symlink_to("gone.py")
    (folder / "a.b.py").write_text("ENGINES = ()")
    (folder / "pk").mkdir()
    (folder / "pk/__init__.py").write_text("1 / 0")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path must be short
        try:
            bound.bind("sock.py")
        finally:
            os.chdir(here)


def test_what_is_called_like_a_plugin_and_is_none(folder: Path) -> None:
    things(folder)
    assert {one.origin: one.error for one in load(folder).failures} == {
        "folder mine/e.py": "is a folder, not a file",
        "folder mine/pipe.py": "is a named pipe, not a file",
        "folder mine/sock.py": "is a socket, not a file",
        "folder mine/loop.py": "is a symbolic link that leads to no file",
        "folder mine/nowhere.py": "is a symbolic link that leads to no file",
        "folder mine/a.b.py": "cannot be imported: there is a dot in its name; rename it",
        "folder mine/pk/__init__.py": "ZeroDivisionError: division by zero",
    }


def test_a_file_that_brings_nothing_is_told_and_no_failure(folder: Path) -> None:
    for name in ("_private.py", ".hidden.py", "notes.txt"):
        (folder / name).write_text("1 / 0")
    (folder / "data").mkdir()
    found = load(folder, "ENGINE = ()", "my helper-é.py")
    assert found.failures == ()
    (one,) = found.ignored
    reason = "brings nothing: it has none of WORKLOADS, ENGINES, ENGINE_FACTORIES"
    assert (one.id, one.origin, one.error) == ("my helper-é", "folder mine/my helper-é.py", reason)
    with pytest.raises(SelectionError, match="no engine"):
        found.engine("residual_mlp", "helper")


def test_a_package_goes_before_a_module_of_its_name(folder: Path) -> None:
    (folder / "pk").mkdir()
    (folder / "pk/__init__.py").write_text(ENGINE.format(body=""))
    found = load(folder, "1 / 0", "pk.py")
    assert found.failures == ()
    assert found.engines["residual_mlp", "mine"].origin == "folder mine/pk/__init__.py"


@pytest.mark.parametrize("name", ["absent", "file.txt", "loop", "nul\0byte"])
def test_a_path_that_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").touch()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=r"^plugin_path: .*; name a folder") as caught:
        load_registry([str(tmp_path / name)])
    assert str(caught.value).isprintable()


def test_leaving_works_in_children_and_again_afterwards() -> None:
    program = (
        "import os\n"
        "from mkframe.plugin.asking import asking\n"
        "with asking():\n"
        "    from os import _exit\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        _exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert os._exit is not _exit\n"
        "_exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (9, "")


@pytest.mark.parametrize("words", [("engine=leaver",), ("plan", "engine=leaver"), ("engines",)])
def test_a_plugin_that_leaves_at_import_is_one_error_and_no_silence(words: tuple[str, ...], folder: Path, run_cli: Any) -> None:
    (folder / "leaver.py").write_text("import os\nos._exit(0)\n")
    result = run_cli(*words, f"plugin_path={folder}")
    told = "leaver (folder mine/leaver.py) could not be loaded: SystemExit: os._exit(0)"
    if words == ("engines",):
        assert (result.returncode, "os._exit(0)" in result.stdout) == (0, True)
    else:
        assert (result.returncode, result.stderr.count("\n"), told in result.stderr) == (2, 1, True), result.stderr


FATAL = {
    "crash": ("import ctypes\nctypes.string_at(0)\n", "it kills the process with SIGSEGV when it is imported"),
    "kill": ("import os\nos.kill(os.getpid(), 9)\n", "it kills the process with SIGKILL when it is imported"),
    "exit-in-c": ("import ctypes\nctypes.CDLL(None)._exit(5)\n", "it ends the process with code 5 when it is imported"),
    "fork": ("import os\nos.fork()\nENGINES = ()\n", "it forks the process when it is imported"),
    "fork-in-c": ("import ctypes\nctypes.CDLL(None).fork()\nENGINES = ()\n", "it forks the process when it is imported"),
    "exit-handler": (
        "import atexit, os\natexit.register(lambda: os._exit(7))\nENGINES = ()\n",
        "it ends the process with code 7 when the program ends",
    ),
}


@pytest.mark.parametrize("kind", FATAL)
def test_what_a_process_does_not_survive_is_one_failure_that_disturbs_nobody(kind: str, folder: Path) -> None:
    text, told = FATAL[kind]
    (folder / "a_good.py").write_text("ENGINES = ()\n")
    (folder / "fatal.py").write_text(text)
    (folder / "z_bad.py").write_text("1 / 0\n")
    registry = load_registry([str(folder)])
    assert [(failure.id, failure.error) for failure in registry.failures] == [
        ("fatal", told),
        ("z_bad", "ZeroDivisionError: division by zero"),
    ]
    assert registry.engine_ids("residual_mlp")
    (module,) = registry.unsafe
    assert module not in sys.modules
    again = load_registry([str(folder)], unsafe=registry.unsafe)
    assert again.failures == registry.failures


def test_every_fatal_plugin_is_found_beside_the_others(folder: Path) -> None:
    for kind, (text, _) in FATAL.items():
        (folder / f"{kind.replace('-', '_')}.py").write_text(text)
    found = {failure.id.replace("_", "-"): failure.error for failure in load_registry([str(folder)]).failures}
    assert found == {kind: told for kind, (_, told) in FATAL.items()}


def test_a_plugin_that_hangs_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIMIT_S", 5.0)
    (folder / "hanging.py").write_text("import threading\nthreading.Event().wait()\n")
    (failure,) = load_registry([str(folder)]).failures
    assert failure.error == "it does not come to an end within 5 s when it is imported"


def test_the_built_in_plugins_need_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.subprocess, "Popen", None)
    monkeypatch.setattr("mkframe.plugin.loader.entry_points", lambda group: ())
    assert load_registry().failures == ()


def test_a_run_goes_on_beside_a_fatal_plugin(folder: Path, run_cli: Any) -> None:
    (folder / "fatal.py").write_text(FATAL["crash"][0])
    short = ("device=cpu", "shape=smoke", "timing.processes=1", "timing.rounds=1", "timing.samples_per_round=5", "--quiet")
    done = run_cli(f"plugin_path={folder}", "engine=torch-cublas", *short)
    assert (done.returncode, done.stderr) == (0, "")
    refused = run_cli(f"plugin_path={folder}", "engine=fatal", *short)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "fatal (folder mine/fatal.py) could not be loaded: it kills the process with SIGSEGV when it is imported" in refused.stderr
