"""The wheel: built offline from the sources as they are, unpacked into an empty folder, used from an unrelated one."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def run(command: list[str], *, cwd: Path, **variables: str) -> str:
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(source_copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(source_copy)]
    run(build, cwd=folder, MKFRAME_SOURCE_COMMIT=COMMIT, MKFRAME_SOURCE_DIRTY="0")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel lies in; everything that it needs comes from the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("an installation") / "packages"
    run([*PIP, "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)], cwd=folder.parent)
    return folder


def python(installed: Path, *arguments: str, **variables: str) -> str:
    """Runs Python with the installation first on its path, in a folder that has nothing to do with the sources."""
    elsewhere = installed.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return run([sys.executable, *arguments], cwd=elsewhere, PYTHONPATH=str(installed), **variables)


def test_every_source_and_data_file_is_in_the_wheel(wheel: Path, source_copy: Path) -> None:
    expected = set()
    for name, folder, suffixes in (
        ("mkframe", "mkframe", {".py", ".typed", ".cu"}),
        ("mkframe_plugins", "plugins", {".py", ".typed"}),
        ("mkframe_conf", "conf", {".py", ".yaml"}),
        ("mkframe_schemas", "schemas", {".py", ".json"}),
    ):
        found = {path for path in (source_copy / folder).rglob("*") if path.suffix in suffixes}
        assert found, folder
        expected |= {f"{name}/{path.relative_to(source_copy / folder).as_posix()}" for path in found}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == expected | {"mkframe/_stamp.py"}


def test_a_second_build_forgets_what_was_deleted(source_copy: Path, tmp_path: Path) -> None:
    """setuptools keeps its build folder between builds."""
    extra = source_copy / "mkframe" / "deleted_later.py"
    build = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", str(tmp_path)]
    names = []
    for exists in (True, False):
        extra.write_text("") if exists else extra.unlink()
        run(build, cwd=source_copy)
        (built,) = tmp_path.glob("*.whl")
        with zipfile.ZipFile(built) as archive:
            names.append("mkframe/deleted_later.py" in archive.namelist())
        built.unlink()
    assert names == [True, False]


def test_packages_configuration_and_schemas_come_from_the_installation(installed: Path) -> None:
    code = """
import importlib.resources, json
import mkframe, mkframe.plugin, mkframe_conf, mkframe_plugins, mkframe_plugins.torch_engines, mkframe_schemas
modules = (mkframe, mkframe_plugins, mkframe_conf, mkframe_schemas)
conf, schemas = importlib.resources.files("mkframe_conf"), importlib.resources.files("mkframe_schemas")
print(json.dumps({
    "files": [module.__file__ for module in modules],
    "config": conf.joinpath("config.yaml").read_text(),
    "device": conf.joinpath("device", "cpu.yaml").read_text(),
    "schema": json.loads(schemas.joinpath("comparison.schema.json").read_text())["$id"],
}))
"""
    answer = json.loads(python(installed, "-c", code))
    assert all(Path(file).is_relative_to(installed) for file in answer["files"]), answer["files"]
    assert answer["config"]
    assert answer["device"]
    assert answer["schema"].startswith("urn:mkframe:schema:comparison:")


def test_the_wheel_knows_its_commit(installed: Path) -> None:
    ask = "import mkframe.stamp as stamp; print(stamp.source_commit(), stamp.source_dirty())"
    assert python(installed, "-c", ask) == f"{COMMIT} False\n"


def test_a_wheel_from_an_unknown_source_carries_no_stamp(source_copy: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MKFRAME_")}
    command = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir", str(tmp_path)]
    subprocess.run(command, cwd=source_copy, env=environment, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        assert "mkframe/_stamp.py" not in archive.namelist()


def test_the_command_line_works_from_an_unrelated_folder(installed: Path, root: Path) -> None:
    report = root / "tests" / "data" / "valid" / "residual-mlp-rtx3090.json"
    assert "residual-mlp-rtx3090.json" in python(installed, "-m", "mkframe", "validate", "--format", "json", str(report))
    listed = python(installed, "-m", "mkframe", "engines")
    assert "residual_mlp" in listed
    assert "built-in" in listed


def test_the_metadata_says_what_is_needed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
        (points,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/entry_points.txt"))
    assert "\nRequires-Python: <3.14,>=3.11\n" in metadata
    assert "\nRequires-Dist: omegaconf<2.4,>=2.3.1\n" in metadata
    assert "mkframe = mkframe.cli.main:entry" in points
