"""One run per GPU: a second one is refused at once, or waits and says so; a CPU is nobody's."""

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from mkframe.errors import DeviceError
from mkframe.model.device import Device
from mkframe.run.device_lock import device_lock

GPU = Device(kind="cuda", name="A GPU", memory_bytes=1, uuid="GPU-0123")


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def hold(folder: str, seconds: float, held: Any) -> None:
    tempfile.tempdir = folder
    with device_lock(GPU, 0.0, print):
        held.set()
        time.sleep(seconds)


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    """Starts a process that holds the lock for some seconds."""
    context = multiprocessing.get_context("spawn")
    started: list[Any] = []

    def start(seconds: float) -> Any:
        held = context.Event()
        process = context.Process(target=hold, args=(str(tmp_path), seconds, held))
        process.start()
        started.append(process)
        assert held.wait(60)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


def test_a_taken_gpu_is_refused_at_once(holder: Any) -> None:
    process = holder(60)
    with pytest.raises(DeviceError, match=rf"taken by another run \(process {process.pid}\).*device.wait_s"), device_lock(GPU, 0.0, print):
        pass


def test_waiting_ends_when_the_other_run_does(holder: Any) -> None:
    holder(0.5)
    told: list[str] = []
    with device_lock(GPU, 60.0, told.append):
        pass
    assert len(told) == 1
    assert "waiting up to 60 s" in told[0]


def test_the_lock_ends_with_its_process(holder: Any) -> None:
    process = holder(60)
    process.kill()
    process.join()
    with device_lock(GPU, 5.0, print):
        pass


def test_another_gpu_and_a_cpu_are_free(holder: Any) -> None:
    holder(60)
    for device in (Device(kind="cuda", name="B", memory_bytes=1, uuid="GPU-4567"), Device(kind="cpu", name="C", memory_bytes=1)):
        with device_lock(device, 0.0, print):
            pass


def test_an_unusable_lock_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "mkframe-locks").touch()
    with pytest.raises(DeviceError, match="cannot open the lock"), device_lock(GPU, 0.0, print):
        pass
