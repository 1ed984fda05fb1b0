"""CUDA devices as NVML lists them, narrowed by CUDA_VISIBLE_DEVICES as the CUDA runtime does it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from mkframe.errors import DeviceError
from mkframe.model.device import Device


class CudaUnavailable(Exception):
    """Why no CUDA device can be used: one clause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """One device of the driver. `index` is NVML's, in the order of the PCI bus."""

    index: int
    uuid: str
    name: str
    memory_bytes: int
    compute_capability: str
    driver: str

    def answers_to(self, uuid: str) -> bool:
        """Whether a UUID, or the beginning of one, with or without `GPU-`, means this board."""
        wanted = uuid.lower()
        return bool(wanted) and (self.uuid.lower().startswith(wanted) or self.uuid.lower().removeprefix("gpu-").startswith(wanted))

    def device(self) -> Device:
        return Device(
            kind="cuda",
            name=self.name,
            memory_bytes=self.memory_bytes,
            index=self.index,
            uuid=self.uuid,
            compute_capability=self.compute_capability,
            driver=self.driver,
        )


@contextmanager
def nvml(module: Any = None) -> Iterator[Any]:
    """An initialised NVML module; `module` stands for pynvml in tests. Raises CudaUnavailable."""
    if module is None:
        module = _pynvml()
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        raise CudaUnavailable(f"the NVIDIA driver does not answer ({error})") from error
    try:
        yield module
    except module.NVMLError as error:
        raise CudaUnavailable(f"the NVIDIA driver failed ({error})") from error
    finally:
        with suppress(module.NVMLError):
            module.nvmlShutdown()


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise CudaUnavailable("nvidia-ml-py is not installed") from error
    return pynvml


def visible_boards(module: Any, environ: Mapping[str, str]) -> tuple[Board, ...]:
    """The devices that a CUDA program started here would see, in its order. Raises DeviceError where that is ambiguous.

    CUDA_VISIBLE_DEVICES lists indices or UUID prefixes; what follows the first entry that does not exist is invisible;
    an empty list, or one that names a device twice, shows none.
    """
    boards = _boards(module)
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return boards
    entries = [entry.strip() for entry in listed.split(",")]
    _check_order(entries, boards, environ)
    visible: list[Board] = []
    for entry in entries:
        board = _entry(module, entry, boards)
        if board is None:
            break
        visible.append(board)
    return tuple(visible) if len({board.uuid for board in visible}) == len(visible) else ()


def _entry(module: Any, entry: str, boards: tuple[Board, ...]) -> Board | None:
    if entry.isdecimal():
        return boards[int(entry)] if int(entry) < len(boards) else None
    if entry.startswith("MIG-"):
        return _mig_instance(module, entry)
    matching = [board for board in boards if entry.startswith("GPU-") and board.answers_to(entry)]
    return matching[0] if len(matching) == 1 else None


def _check_order(entries: list[str], boards: tuple[Board, ...], environ: Mapping[str, str]) -> None:
    """CUDA counts the fastest device first unless told otherwise, NVML follows the bus: with unlike boards the indices differ."""
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({board.name for board in boards}) < 2:
        return
    if any(entry.isdecimal() for entry in entries):
        raise DeviceError(
            "CUDA_VISIBLE_DEVICES holds indices on a machine with unlike boards, where CUDA and the driver count differently; "
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID or list UUIDs"
        )


def _boards(module: Any) -> tuple[Board, ...]:
    driver = _text(module.nvmlSystemGetDriverVersion())
    return tuple(_board(module, module.nvmlDeviceGetHandleByIndex(index), index, driver) for index in range(module.nvmlDeviceGetCount()))


def _board(module: Any, handle: Any, index: int, driver: str) -> Board:
    major, minor = module.nvmlDeviceGetCudaComputeCapability(handle)
    return Board(
        index=index,
        uuid=_text(module.nvmlDeviceGetUUID(handle)),
        name=_text(module.nvmlDeviceGetName(handle)),
        memory_bytes=int(module.nvmlDeviceGetMemoryInfo(handle).total),
        compute_capability=f"{major}.{minor}",
        driver=driver,
    )


def _mig_instance(module: Any, uuid: str) -> Board | None:
    """A part of a board that is split already; we never split one."""
    try:
        handle = module.nvmlDeviceGetHandleByUUID(uuid)
        parent = module.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    except module.NVMLError:
        return None
    whole = _board(module, parent, int(module.nvmlDeviceGetIndex(parent)), _text(module.nvmlSystemGetDriverVersion()))
    return Board(
        index=whole.index,
        uuid=_text(module.nvmlDeviceGetUUID(handle)),
        name=_text(module.nvmlDeviceGetName(handle)),
        memory_bytes=int(module.nvmlDeviceGetMemoryInfo(handle).total),
        compute_capability=whole.compute_capability,
        driver=whole.driver,
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
