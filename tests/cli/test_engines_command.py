"""`mkframe engines` and stdout, with plugins that say odd things."""

import json
from pathlib import Path
from typing import Any

import pytest

ENGINE = """
from mkframe.plugin import Engine

print("printed at import")

class {name}(Engine):
    id = "{name}".lower()
    workload = "residual_mlp"
    {body}
    def bind(self, case, precision, tensors, options):
        raise NotImplementedError

ENGINES = ({name}(),)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    return made


def write(folder: Path, name: str, body: str) -> None:
    (folder / f"{name.lower()}.py").write_text(ENGINE.format(name=name, body=body))


def lines(text: str, word: str) -> str:
    (line,) = [line for line in text.splitlines() if word in line]
    return line


def test_what_plugins_say_is_printed_as_it_is(run_cli: Any, folder: Path) -> None:
    write(folder, "Mark", "limits = '[/x] sm_90 [sm_90a] :smile: \\x1b[31m'")
    write(folder, "Fail", "def unsupported(self, *a): raise ZeroDivisionError('oops')")
    write(folder, "Bad", "limits = 5")
    (folder / "helper.py").write_text("x = 1")
    result = run_cli("engines", f"plugin_path={folder}")
    assert result.returncode == 0, result.stderr
    assert r"[/x] sm_90 [sm_90a] :smile: \x1b[31m" in lines(result.stdout, "sm_90")
    assert "failed: ZeroDivisionError: oops" in lines(result.stdout, "mine/fail.py")
    assert lines(result.stdout, "bad.py") == "not loaded: bad (folder mine/bad.py): engine bad: limits must be a text, not 5"
    assert lines(result.stdout, "helper.py").startswith("not loaded: helper (folder mine/helper.py): brings nothing: ")


def test_json_is_all_that_stdout_holds(run_cli: Any, folder: Path) -> None:
    write(folder, "Fail", "def unsupported(self, *a): print('asked'); raise SystemExit")
    (folder / "helper.py").write_text("x = 1")
    result = run_cli("engines", "--format", "json", f"plugin_path={folder}")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    row = next(row for row in document["engines"] if row["engine"] == "fail")
    assert row["unavailable"] == "failed: SystemExit"
    assert (document["failures"], [one["id"] for one in document["ignored"]]) == ([], ["helper"])
    assert {"printed at import", "asked"} <= set(result.stderr.splitlines())


def test_the_shown_configuration_holds_nothing_of_a_plugin(run_cli: Any, folder: Path) -> None:
    write(folder, "Loud", "")
    loud = run_cli(f"plugin_path={folder}", "device=cpu", "--cfg", "job")
    assert loud.returncode == 0, loud.stderr
    assert "printed at import" not in loud.stdout
    assert "printed at import" in loud.stderr


def test_a_workload_that_takes_no_small_case_is_asked_about_one_of_its_own(run_cli: Any, folder: Path, root: Path) -> None:
    source = (root / "docs/examples/rmsnorm.py").read_text()
    picky = source.replace(
        "    channels: int\n", "    channels: int\n\n    def __post_init__(self):\n        assert self.rows in (3, 64)\n"
    )
    assert picky != source
    (folder / "picky.py").write_text(picky)
    result = run_cli("engines", "--format", "json", f"plugin_path={folder}")
    assert result.returncode == 0, result.stderr
    rows = [row for row in json.loads(result.stdout)["engines"] if row["workload"] == "rmsnorm"]
    assert [row["unavailable"] for row in rows if row["engine"] == "torch-eager"] == [None]
