"""One run per GPU: an operating-system lock keyed by the GPU's UUID, which ends with the process that holds it."""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mkframe.errors import DeviceError
from mkframe.model.device import Device

_FOLDER = "mkframe-locks"
_POLL_S = 0.2


@contextmanager
def device_lock(device: Device, wait_s: float, tell: Callable[[str], None]) -> Iterator[None]:
    """Holds a GPU for this process; a CPU has no lock. Waits up to `wait_s` seconds for another run to end, and says so.

    Raises DeviceError where the GPU is still taken then. All users of a machine share the locks.
    """
    if device.uuid is None:
        yield
        return
    descriptor = _open(device.uuid)
    try:
        _take(descriptor, device, wait_s, tell)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open(uuid: str) -> int:
    """The lock file, writable for everybody: whoever runs next may be another user."""
    folder = Path(tempfile.gettempdir()) / _FOLDER
    before = os.umask(0)
    try:
        folder.mkdir(mode=0o1777, exist_ok=True)
        return os.open(folder / f"{uuid}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise DeviceError(f"device: cannot open the lock of GPU {uuid} in {folder}: {error.strerror}; make that folder writable") from error
    finally:
        os.umask(before)


def _take(descriptor: int, device: Device, wait_s: float, tell: Callable[[str], None]) -> None:
    deadline = time.monotonic() + wait_s
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown"
        else:
            return
        if time.monotonic() >= deadline:
            raise DeviceError(
                f"device: {device.name} ({device.uuid}) is taken by another run (process {holder}); "
                "wait for it with device.wait_s=SECONDS, or use another device"
            )
        if not told:
            told = True
            tell(f"device: waiting up to {wait_s:g} s for the run of process {holder} on {device.name}")
        time.sleep(_POLL_S)
