"""What a compiled kernel's key depends on, and what it does not."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mkframe.errors import KernelError
from mkframe.kernels import key
from mkframe.kernels.key import key_of
from mkframe.kernels.sources import kernel_sources, source_files
from mkframe.model.kernel import Kernel
from mkframe.plugin.folders import open_folders

FILES = {
    "kp/__init__.py": "",
    "kp/deep/__init__.py": "from kp import base",
    "kp/base.py": "BASE = 1",
    "kp/deep/kernel.py": "import cutlass\nfrom .tile import copy\n\ndef trace(config):\n    from kp.deep import late\n    return late",
    "kp/deep/tile.py": "from ..shared import width",
    "kp/shared.py": "def width(): return 8",
    "kp/deep/late.py": "import os, numpy",
    "kp/deep/unrelated.py": "import kp.deep.kernel",
    "alone.py": "import beside, os, json",
    "beside.py": "x = 1",
}


@dataclass(frozen=True)
class Config:
    width: int = 1
    name: str = "a"
    flag: bool = False


def kernel(**changes: object) -> Kernel:
    plain = {"module": "kp.deep.kernel", "config": Config(), "shared_bytes": 0, "block": 128, "name": "k"}
    return Kernel(**(plain | changes))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(key, "compiler", lambda: ("nvidia-cutlass-dsl 4.8.1", "cu12"))
    yield tmp_path
    assert not {"kp", "cutlass", "alone", "beside"} & set(sys.modules)  # nothing of it was imported


def test_sources_are_what_the_kernel_imports_out_of_its_package(folder: Path) -> None:
    assert source_files("kp.deep.kernel") == {
        name: folder / file
        for name, file in {
            "kp": "kp/__init__.py",
            "kp.base": "kp/base.py",
            "kp.deep": "kp/deep/__init__.py",
            "kp.deep.kernel": "kp/deep/kernel.py",
            "kp.deep.late": "kp/deep/late.py",
            "kp.deep.tile": "kp/deep/tile.py",
            "kp.shared": "kp/shared.py",
        }.items()
    }
    assert sorted(source_files("alone")) == ["alone", "beside"]
    names = ["kp/base.py", "kp/deep/__init__.py", "kp/deep/kernel.py", "kp/deep/late.py", "kp/deep/tile.py", "kp/shared.py"]
    assert kernel_sources("kp.deep.kernel") == tuple(str(folder / name) for name in names)  # kp/__init__.py is empty


@pytest.mark.parametrize(
    ("file", "changes"),
    [("kp/deep/kernel.py", True), ("kp/shared.py", True), ("kp/__init__.py", True), ("kp/deep/unrelated.py", False), ("alone.py", False)],
)
def test_a_source_that_it_is_made_of_changes_the_key(folder: Path, file: str, changes: bool) -> None:
    before = key_of(kernel(), "sm_90a")
    assert before == key_of(kernel(), "sm_90a")
    (folder / file).write_text(f"{FILES[file]}\n# edited\n", encoding="utf-8")
    assert (key_of(kernel(), "sm_90a") != before) is changes


@pytest.mark.parametrize(
    "change",
    [
        {"config": Config(width=2)},
        {"config": Config(name="b")},
        {"config": Config(flag=True)},
        {"module": "kp.deep.tile"},
        {"shared_bytes": 1},
        {"block": 64},
        {"cluster": 2},
    ],
)
def test_what_it_is_compiled_from_changes_the_key(change: dict[str, object]) -> None:
    assert key_of(kernel(**change), "sm_90a") != key_of(kernel(), "sm_90a")


def test_what_is_only_said_of_it_does_not() -> None:
    assert key_of(kernel(name="other", expects=("mma.sync",)), "sm_90a") == key_of(kernel(), "sm_90a")


def test_architecture_and_compiler_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {key_of(kernel(), "sm_90a"), key_of(kernel(), "sm_80")}
    monkeypatch.setattr(key, "compiler", lambda: ("nvidia-cutlass-dsl 4.8.2", "cu12"))
    keys.add(key_of(kernel(), "sm_90a"))
    monkeypatch.setattr(key, "compiler", lambda: ("nvidia-cutlass-dsl 4.8.2", "cu13"))
    keys.add(key_of(kernel(), "sm_90a"))
    assert len(keys) == 4


def test_a_kernel_in_a_plugin_folder_is_found(folder: Path) -> None:
    (folder / "plug").mkdir()
    (folder / "plug" / "mine.py").write_text("", encoding="utf-8")
    (folder / "plug" / "kernels").mkdir()
    (folder / "plug" / "kernels" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "plug" / "kernels" / "fast.py").write_text("from ..mine import x", encoding="utf-8")
    (found,) = open_folders([str(folder / "plug")])  # kernels is no plugin
    package = found.module.rpartition(".")[0]  # type: ignore[union-attr]
    names = source_files(f"{package}.kernels.fast")
    assert sorted(name.removeprefix(package) for name in names) == [".kernels", ".kernels.fast", ".mine"]


@pytest.mark.parametrize(
    ("prepare", "module", "message"),
    [
        (lambda folder: None, "kp.deep.none", "kernel module kp.deep.none is not there"),
        (lambda folder: None, "none", "kernel module none is not there"),
        (lambda folder: None, "sys", "kernel module sys is not there"),
        (lambda folder: folder.joinpath("alone.py").write_text("def", encoding="utf-8"), "alone", "kernel module alone cannot be parsed"),
        (lambda folder: folder.joinpath("alone.py").write_bytes(b"x\0"), "alone", "kernel module alone cannot be parsed"),
    ],
)
def test_a_module_without_source_is_one_error(folder: Path, prepare: Callable[[Path], object], module: str, message: str) -> None:
    prepare(folder)
    with pytest.raises(KernelError, match=message):
        key_of(kernel(module=module), "sm_90a")
