"""The documented examples, end to end, as a third party uses them: from a folder, and from an installed package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SHORT = ("device=cpu", "timing.processes=1", "timing.rounds=2", "timing.samples_per_round=10", "timing.warmups=2")


@pytest.fixture
def folder(tmp_path: Path, root: Path) -> Path:
    """The examples in a folder that has nothing to do with the checkout."""
    return Path(shutil.copytree(root / "docs/examples", tmp_path / "a folder of mine"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site folder with an installed package that brings both examples by entry points."""
    source = tmp_path_factory.mktemp("source")
    examples = Path(__file__).resolve().parents[2] / "docs/examples"
    (source / "my_kernels").mkdir()
    (source / "my_kernels/__init__.py").touch()
    for name in ("my_engine.py", "rmsnorm.py"):
        shutil.copy(examples / name, source / "my_kernels" / name)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "my-kernels"\nversion = "1.0"\n'
        '[project.entry-points."mkframe.engines"]\nmine = "my_kernels.my_engine"\n'
        '[project.entry-points."mkframe.workloads"]\nnorm = "my_kernels.rmsnorm"\n'
        '[tool.setuptools]\npackages = ["my_kernels"]\n'
    )
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([*command, str(source)], check=True, capture_output=True)
    return target


def report(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("outputs/*/report.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def check_engine(document: dict[str, Any], source: str) -> None:
    cells = document["mkframe"]["cells"]
    assert [(cell["engine"], cell["outcome"]) for cell in cells] == [("my-engine", "passed"), ("torch-cublas", "passed")] * 2
    assert cells[0]["options"] == {"tile_rows": 5}
    assert source in document["source_sha256"]


def check_workload(document: dict[str, Any], source: str) -> None:
    assert document["mkframe"]["workload"] == "rmsnorm"
    outcomes = {(cell["engine"], cell["outcome"]) for cell in document["mkframe"]["cells"]}
    compiled = ("torch-compile", "passed" if shutil.which("g++") or shutil.which("clang++") else "unsupported")
    graphs = {("torch-eager-graph", "unsupported"), ("torch-compile-graph", "unsupported")}
    assert outcomes == {("torch-eager", "passed"), compiled} | graphs
    assert [case["shape"] for case in document["norm"]] == [{"rows": 3, "channels": 5}, {"rows": 64, "channels": 1024}]
    assert source in document["source_sha256"]


ENGINE = ("engine=[my-engine,torch-cublas]", "engine.my-engine.options.tile_rows=5", "shape=smoke")
WORKLOAD = ("workload=rmsnorm", "engine=all")


def test_an_engine_in_a_folder(run_cli: Any, folder: Path, tmp_path: Path) -> None:
    result = run_cli(f"plugin_path={folder}", *ENGINE, *SHORT)
    assert result.returncode == 0, result.stderr
    check_engine(report(tmp_path), "a folder of mine/my_engine.py")


def test_a_workload_in_a_folder(run_cli: Any, folder: Path, tmp_path: Path) -> None:
    result = run_cli(*WORKLOAD, *SHORT, env={"MKFRAME_PLUGIN_PATH": str(folder)})
    assert result.returncode == 0, result.stderr
    check_workload(report(tmp_path), "a folder of mine/rmsnorm.py")


def test_a_workload_takes_its_own_defaults(run_cli: Any, folder: Path, tmp_path: Path) -> None:
    result = run_cli(f"plugin_path={folder}", "workload=rmsnorm", *SHORT)
    assert result.returncode == 0, result.stderr
    document = report(tmp_path)
    assert document["precision"].startswith("FP32 ")
    assert list(document["norm"][0]["engines"]) == ["torch-eager"]


def test_an_engine_from_an_installed_package(run_cli: Any, site: Path, tmp_path: Path) -> None:
    result = run_cli(*ENGINE, *SHORT, env={"PYTHONPATH": str(site)})
    assert result.returncode == 0, result.stderr
    check_engine(report(tmp_path), "my_kernels/my_engine.py")


def test_a_workload_from_an_installed_package(run_cli: Any, site: Path, tmp_path: Path) -> None:
    result = run_cli(*WORKLOAD, *SHORT, env={"PYTHONPATH": str(site)})
    assert result.returncode == 0, result.stderr
    check_workload(report(tmp_path), "my_kernels/rmsnorm.py")


def test_engines_lists_third_parties_and_what_failed(run_cli: Any, folder: Path) -> None:
    (folder / "broken.py").write_text("import no_such_module_at_all\n")
    result = run_cli("engines", "--format", "json", f"plugin_path={folder}")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    mine = next(row for row in document["engines"] if row["engine"] == "my-engine")
    assert (mine["workload"], mine["origin"], mine["unavailable"]) == ("residual_mlp", "folder a folder of mine/my_engine.py", None)
    (failure,) = document["failures"]
    assert failure["id"] == "broken"
    assert "no_such_module_at_all" in failure["error"]


def test_asking_for_a_plugin_that_failed_tells_why(run_cli: Any, folder: Path) -> None:
    (folder / "broken.py").write_text("import no_such_module_at_all\n")
    result = run_cli(f"plugin_path={folder}", "engine=broken", *SHORT)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "no_such_module_at_all" in result.stderr


def test_two_plugins_that_claim_one_id_are_both_named(run_cli: Any, folder: Path) -> None:
    shutil.copy(folder / "my_engine.py", folder / "copy_of_it.py")
    result = run_cli(f"plugin_path={folder}", "engine=my-engine", *SHORT)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "my_engine.py" in result.stderr
    assert "copy_of_it.py" in result.stderr


def test_a_workload_that_cannot_tell_right_from_wrong_gets_no_numbers(run_cli: Any, folder: Path, tmp_path: Path) -> None:
    source = (folder / "rmsnorm.py").read_text()
    (folder / "rmsnorm.py").write_text(source.replace("Tolerance(rtol=1e-5, atol=1e-6)", "Tolerance(rtol=1e5, atol=1e6)"))
    result = run_cli(f"plugin_path={folder}", "workload=rmsnorm", *SHORT)
    assert result.returncode == 1
    for case in report(tmp_path)["norm"]:
        assert case["engines"] == {"torch-eager": {"passed": False, "replay_changed_input": False}}
    assert {cell["outcome"] for cell in report(tmp_path)["mkframe"]["cells"]} == {"rejected"}
