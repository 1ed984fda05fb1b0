"""Fixtures for every test. Tests run in folders of their own: nothing is written into the checkout or a user's caches."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
CACHES = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]

# No test may fail because a machine is slow. In CI the same examples every time; elsewhere new ones.
settings.register_profile("mkframe", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("mkframe")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is collected, because torch reads some of these when it is imported. A shell that starts the tests in the
    background lets them ignore Ctrl-C, and what they start would do so too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = tempfile.mkdtemp(prefix="mkframe-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    for name in CACHES:
        os.environ[name] = str(Path(folder, name.lower()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not _has_cuda():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is the test's own, and no variable of the person who runs the tests changes what mkframe does."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("MKFRAME_", "HYDRA_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def run_cli(tmp_path: Path) -> RunCli:
    """`run_cli(*arguments, cwd=..., env=..., input=...)` runs `python -m mkframe` as its own process and returns the
    CompletedProcess with text. `env` is added to the environment; None removes a variable. The current folder is the
    test's own unless `cwd` names another."""

    def run(
        *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str | None] | None = None, input: str = "", timeout: float = 600
    ) -> "subprocess.CompletedProcess[str]":
        environment = {name: value for name, value in {**os.environ, **(env or {})}.items() if value is not None}
        command = [sys.executable, "-m", "mkframe", *map(str, arguments)]
        return subprocess.run(
            command, cwd=cwd or tmp_path, env=environment, input=input, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run


@pytest.fixture(scope="session")
def source_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The sources as they are now, without what git ignores, in a folder that is no checkout."""
    target = tmp_path_factory.mktemp("source copy") / "mkframe sources"
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    yield target
    shutil.rmtree(target, ignore_errors=True)
