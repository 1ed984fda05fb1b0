"""The set-up of scripts/, with a Python whose `venv` and `pip` only write down what they were asked. Fast, and offline."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

# `-m venv` makes a folder whose python is the second script; every other question goes to the real Python.
FAKE_BASE = """#!/usr/bin/env bash
if [ "$2 $3" = "-m venv" ]; then
    echo "venv" >>"$MKFRAME_TEST_LOG"
    mkdir -p "$4/bin" && echo "version = 3.11.0" >"$4/pyvenv.cfg" && cp "$(dirname "$0")/venv-python" "$4/bin/python"
else
    exec "$MKFRAME_TEST_PYTHON" "$@"
fi
"""
FAKE_VENV = """#!/usr/bin/env bash
case " $* " in
    *" pip "*" -r "*) what=lock ;;
    *" pip "*" -e "*) what=project ;;
    *) printf 'ran in %s:' "$PWD"; printf ' <%s>' "$@"; echo; exit "${MKFRAME_TEST_EXIT:-0}" ;;
esac
echo "begin $what" >>"$MKFRAME_TEST_LOG"
echo "noise of pip"
sleep "${MKFRAME_TEST_SLEEP:-0}"
[ -z "${MKFRAME_TEST_FAULT:-}" ] || { echo "$MKFRAME_TEST_FAULT"; exit 1; }
echo "end $what" >>"$MKFRAME_TEST_LOG"
"""
ALL = ["venv", "begin lock", "end lock", "begin project", "end project"]
Completed = subprocess.CompletedProcess[str]


def write_script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """`root`: a folder with scripts/ and what the set-up reads. `fakes`: what comes first on PATH."""

    root: Path
    fakes: Path
    log: Path

    def environment(self, **variables: str) -> dict[str, str]:
        fixed = {
            "PATH": f"{self.fakes}{os.pathsep}{os.environ['PATH']}",
            "MKFRAME_TEST_LOG": str(self.log),
            "MKFRAME_TEST_PYTHON": sys.executable,
        }
        return {**os.environ, **fixed, **variables}

    def bench(self, *arguments: str, cwd: Path | None = None, **variables: str) -> Completed:
        command = [str(self.root / "scripts" / "bench"), *arguments]
        return subprocess.run(command, cwd=cwd, env=self.environment(**variables), capture_output=True, text=True, check=False)

    def start(self, **variables: str) -> subprocess.Popen[str]:
        command = [str(self.root / "scripts" / "bench")]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment(**variables), stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def steps(self) -> list[str]:
        """What was done since the last question."""
        done = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return done


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    target = tmp_path / "a checkout"
    shutil.copytree(root / "scripts", target / "scripts")
    (target / "plugins").mkdir()
    for name in ("requirements.lock", "pyproject.toml", "setup.py"):
        shutil.copy(root / name, target / name)
    write_script(tmp_path / "fakes" / "python3", FAKE_BASE)
    write_script(tmp_path / "fakes" / "venv-python", FAKE_VENV)
    return Checkout(root=target, fakes=tmp_path / "fakes", log=tmp_path / "log")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.02)


def test_the_first_start_sets_up_and_the_second_does_not(checkout: Checkout) -> None:
    first = checkout.bench("engine=a", "shape=[b, c]")
    assert first.returncode == 0, first.stderr
    assert checkout.steps() == ALL
    assert first.stdout.endswith(": <-P> <-m> <mkframe> <engine=a> <shape=[b, c]>\n")
    assert first.stderr == "mkframe: setting up .venv (once; a few minutes and some gigabytes)\n"
    second = checkout.bench()
    assert (second.returncode, second.stderr, checkout.steps()) == (0, "", [])


def test_the_current_folder_stays(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert checkout.bench(cwd=elsewhere).stdout.startswith(f"ran in {elsewhere}:")


@pytest.mark.parametrize("code", [1, 2, 77])
def test_the_exit_code_is_passed_on(checkout: Checkout, code: int) -> None:
    assert checkout.bench(MKFRAME_TEST_EXIT=str(code)).returncode == code


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml", "setup.py"])
def test_a_change_of_what_it_was_made_from_updates_in_place(checkout: Checkout, name: str) -> None:
    checkout.bench()
    checkout.steps()
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    assert checkout.bench().returncode == 0
    assert checkout.steps() == ALL[1:]
    assert checkout.bench().returncode == 0
    assert checkout.steps() == []


@pytest.mark.parametrize("how", ["moved", "its python is gone"])
def test_an_environment_that_cannot_work_is_made_anew(checkout: Checkout, how: str) -> None:
    checkout.bench()
    checkout.steps()
    (checkout.root / ".venv" / "leftover").touch()
    if how == "moved":
        checkout = Checkout(root=checkout.root.rename(checkout.root.with_name("moved")), fakes=checkout.fakes, log=checkout.log)
    else:
        (checkout.root / ".venv" / "bin" / "python").unlink()
    assert checkout.bench().returncode == 0
    assert checkout.steps() == ALL
    assert not (checkout.root / ".venv" / "leftover").exists()


@pytest.mark.parametrize("step", ["begin lock", "begin project"])
def test_a_killed_set_up_is_repaired(checkout: Checkout, step: str) -> None:
    sleep = "60" if step == "begin lock" else "0.5"
    running = checkout.start(MKFRAME_TEST_SLEEP=sleep)
    wait_for(lambda: checkout.log.exists() and step in checkout.log.read_text())
    os.killpg(running.pid, 9)
    running.communicate()
    checkout.steps()
    (checkout.root / ".venv" / "leftover").touch()
    assert checkout.bench().returncode == 0
    assert checkout.steps() == ALL
    assert not (checkout.root / ".venv" / "leftover").exists()


def test_a_killed_update_is_repaired(checkout: Checkout) -> None:
    checkout.bench()
    (checkout.root / "requirements.lock").write_text("")
    checkout.steps()
    running = checkout.start(MKFRAME_TEST_SLEEP="60")
    wait_for(lambda: checkout.log.exists())
    os.killpg(running.pid, 9)
    running.communicate()
    checkout.steps()
    assert checkout.bench().returncode == 0
    assert checkout.steps() == ALL


def test_two_at_once_set_up_once(checkout: Checkout) -> None:
    first = checkout.start(MKFRAME_TEST_SLEEP="0.5")
    wait_for(lambda: checkout.log.exists())
    second = checkout.start(MKFRAME_TEST_SLEEP="0.5")
    assert "another set-up works on .venv" in second.communicate()[1]
    assert "setting up" in first.communicate()[1]
    assert (first.returncode, second.returncode) == (0, 0)
    assert checkout.steps() == ALL


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("ERROR: [Errno 28] No space left on device", "the disk is full"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "the package index cannot be reached"),
        ("ERROR: something else", "see above"),
    ],
)
def test_a_failed_installation_says_why_and_is_repaired(checkout: Checkout, fault: str, reason: str) -> None:
    done = checkout.bench(MKFRAME_TEST_FAULT=fault)
    assert (done.returncode, done.stdout) == (2, "")
    assert "noise of pip" in done.stderr
    assert fault in done.stderr
    assert done.stderr.splitlines()[-1] == f"mkframe: installing requirements.lock failed: {reason}; run this again when that is mended"
    checkout.steps()
    assert checkout.bench().returncode == 0
    assert checkout.steps() == ALL


def test_an_environment_of_somebody_else_is_left_alone(checkout: Checkout) -> None:
    mine = checkout.root / ".venv" / "precious"
    mine.parent.mkdir()
    mine.write_text("keep")
    done = checkout.bench()
    assert done.returncode == 2
    assert "was not made by these scripts" in done.stderr
    assert mine.read_text() == "keep"
    assert checkout.steps() == []


def test_placeholders_and_other_versions_are_passed_over(checkout: Checkout) -> None:
    """A version manager's command that answers for no version, and a Python that is too old."""
    (checkout.fakes / "python3").rename(checkout.fakes / "python3.12")
    write_script(checkout.fakes / "python3", "#!/bin/sh\necho not this one >&2\nexit 127\n")
    write_script(checkout.fakes / "python3.13", "#!/bin/sh\nexit 1\n")
    done = checkout.bench()
    assert (done.returncode, "not this one" in done.stderr) == (0, False)
    assert checkout.steps() == ALL


def test_without_a_python_it_says_what_to_install(checkout: Checkout) -> None:
    for name in ("python3", "python3.13", "python3.12", "python3.11"):
        write_script(checkout.fakes / name, "#!/bin/sh\nexit 1\n")
    done = checkout.bench()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no usable Python 3.11, 3.12 or 3.13" in done.stderr


def test_the_lock_pins_every_line_and_names_no_place(root: Path) -> None:
    lines = [line for line in (root / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    pins = {}
    for line in lines:
        pin, _, marker = line.partition("; ")
        name, equals, version = pin.partition("==")
        assert equals, line
        assert "+" not in version, line
        assert marker in ("", 'sys_platform == "linux"'), line
        pins[name] = version
    assert pins["torch"] == "2.13.0"
    assert not [
        name for name in pins if name == "triton" or (name.startswith("nvidia-") and "cutlass" not in name and name != "nvidia-ml-py")
    ]
