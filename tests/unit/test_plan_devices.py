"""Devices, with a fake NVML: what is visible, what is picked, what is refused."""

import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mkframe.config.device_cards import shipped_card
from mkframe.errors import ConfigError, DeviceError
from mkframe.model.device import Device, DeviceCard
from mkframe.plan.devices import TorchBuild, cpu, installed_torch, resolve
from mkframe.settings.nodes import DeviceConfig, DeviceKind

H200, RTX = "NVIDIA H200", "NVIDIA GeForce RTX 3090"
CUDA_TORCH, CPU_TORCH = TorchBuild(version="2.13.0", cuda="13.0"), TorchBuild(version="2.13.0+cpu", cuda=None)


class NvmlError(Exception):
    pass


@dataclass
class FakeNvml:
    """The part of pynvml that is used. `boards` are (name, UUID, capability); texts are bytes, as older versions give them."""

    boards: list[tuple[str, str, tuple[int, int]]]
    fails: str = ""
    open_sessions: int = 0
    calls: list[str] = field(default_factory=list)
    NVMLError: type[Exception] = NvmlError

    def nvmlInit(self) -> None:
        self._call("nvmlInit")
        self.open_sessions += 1

    def nvmlShutdown(self) -> None:
        self.open_sessions -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        self._call("nvmlSystemGetDriverVersion")
        return b"580.1"

    def nvmlDeviceGetCount(self) -> int:
        self._call("nvmlDeviceGetCount")
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != "MIG-7":
            raise NvmlError("not found")
        return uuid

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: str) -> int:
        return 0

    def nvmlDeviceGetIndex(self, handle: int) -> int:
        return handle

    def nvmlDeviceGetName(self, handle: int | str) -> bytes | str:
        return "NVIDIA H200 MIG 1g.18gb" if isinstance(handle, str) else self.boards[handle][0].encode()

    def nvmlDeviceGetUUID(self, handle: int | str) -> bytes | str:
        return handle if isinstance(handle, str) else self.boards[handle][1].encode()

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return self.boards[handle][2]

    def nvmlDeviceGetMemoryInfo(self, handle: int | str) -> Any:
        return SimpleNamespace(total=18 * 2**30 if isinstance(handle, str) else 2**37)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fails:
            raise NvmlError("driver not loaded")


def two(**more: Any) -> FakeNvml:
    return FakeNvml([(H200, "GPU-aaaa-1", (9, 0)), (H200, "GPU-aabb-2", (9, 0))], **more)


def mixed() -> FakeNvml:
    return FakeNvml([(RTX, "GPU-cccc-3", (8, 6)), (H200, "GPU-aaaa-1", (9, 0))])


def device(kind: str, nvml: FakeNvml, torch: TorchBuild = CUDA_TORCH, environ: dict[str, str] | None = None, **keys: Any) -> Device:
    config = DeviceConfig(kind=DeviceKind(kind), **keys)
    return resolve(config, environ=environ or {}, driver=nvml, torch=torch).device


def card(name: str = H200, capability: str = "9.0") -> DeviceCard:
    return DeviceCard(
        id="h200",
        name=name,
        compute_capability=capability,
        multiprocessors=132,
        memory_bytes_per_s=1.0,
        fp16_flops=1.0,
        tf32_flops=1.0,
        fp32_flops=1.0,
        source="a sheet",
    )


def test_auto_takes_the_first_visible_board_and_says_so() -> None:
    nvml = two()
    resolved = resolve(DeviceConfig(kind=DeviceKind.AUTO), environ={}, driver=nvml, torch=CUDA_TORCH)
    assert resolved.note == "device: NVIDIA H200"
    assert resolved.device == Device(
        kind="cuda",
        name=H200,
        memory_bytes=2**37,
        index=0,
        uuid="GPU-aaaa-1",
        compute_capability="9.0",
        driver="580.1",
        card=shipped_card(H200, "9.0"),
    )
    assert nvml.open_sessions == 0


@pytest.mark.parametrize(
    ("nvml", "torch", "environ", "reason"),
    [
        (two(), CPU_TORCH, {}, "2.13.0+cpu) is built for CPUs"),
        (two(fails="nvmlInit"), CUDA_TORCH, {}, "driver not loaded"),
        (two(fails="nvmlDeviceGetCount"), CUDA_TORCH, {}, "driver not loaded"),
        (FakeNvml([]), CUDA_TORCH, {}, "no CUDA device is visible"),
        (two(), CUDA_TORCH, {"CUDA_VISIBLE_DEVICES": ""}, "CUDA_VISIBLE_DEVICES hides all"),
        (two(), CUDA_TORCH, {"CUDA_VISIBLE_DEVICES": "-1"}, "CUDA_VISIBLE_DEVICES hides all"),
        (two(), CUDA_TORCH, {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, "CUDA_VISIBLE_DEVICES hides all"),
    ],
)
def test_without_a_usable_board_auto_takes_the_cpu_and_cuda_refuses(
    nvml: FakeNvml, torch: TorchBuild, environ: dict[str, str], reason: str
) -> None:
    resolved = resolve(DeviceConfig(kind=DeviceKind.AUTO), environ=environ, driver=nvml, torch=torch)
    assert resolved.device == cpu()
    assert resolved.note is not None
    assert reason in resolved.note
    with pytest.raises(DeviceError) as caught:
        device("cuda", nvml, torch, environ)
    assert reason in str(caught.value)
    assert "device=cpu" in str(caught.value)
    assert nvml.open_sessions == 0


def test_a_cpu_build_of_torch_is_known_without_asking_the_driver() -> None:
    nvml = two()
    resolve(DeviceConfig(kind=DeviceKind.AUTO), environ={}, driver=nvml, torch=CPU_TORCH)
    assert nvml.calls == []


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        ("0,1", ["GPU-aaaa-1", "GPU-aabb-2"]),
        ("1,0", ["GPU-aabb-2", "GPU-aaaa-1"]),
        (" 1 ", ["GPU-aabb-2"]),
        ("1,7,0", ["GPU-aabb-2"]),
        ("1,,0", ["GPU-aabb-2"]),
        ("GPU-aabb", ["GPU-aabb-2"]),
        ("GPU-aabb-2,0", ["GPU-aabb-2", "GPU-aaaa-1"]),
        ("GPU-aa", []),
        ("aabb", []),
        ("0,0", []),
        ("MIG-7", ["MIG-7"]),
        ("MIG-8", []),
    ],
)
def test_visible_devices(visible: str, uuids: list[str]) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": visible}
    seen = []
    for index in range(3):
        try:
            seen.append(device("cuda", two(), environ=environ, index=index).uuid)
        except DeviceError:
            break
    assert seen == uuids


def test_a_part_of_a_split_board_keeps_its_own_memory() -> None:
    part = device("cuda", two(), environ={"CUDA_VISIBLE_DEVICES": "MIG-7"})
    assert (part.name, part.memory_bytes, part.compute_capability) == ("NVIDIA H200 MIG 1g.18gb", 18 * 2**30, "9.0")


def test_unlike_boards_make_indices_ambiguous() -> None:
    with pytest.raises(DeviceError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        device("auto", mixed(), environ={"CUDA_VISIBLE_DEVICES": "1"})
    assert device("auto", mixed(), environ={"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).name == H200
    assert device("auto", mixed(), environ={"CUDA_VISIBLE_DEVICES": "GPU-aaaa"}).name == H200


@pytest.mark.parametrize("uuid", ["GPU-aabb-2", "GPU-aab", "aabb", "AABB-2"])
def test_a_board_by_uuid(uuid: str) -> None:
    assert device("cuda", two(), uuid=uuid).index == 1


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"index": 2}, ["device.index: there is no device 2", "0: NVIDIA H200 (GPU-aaaa-1), 1: NVIDIA H200 (GPU-aabb-2)"]),
        ({"uuid": "GPU-ffff"}, ["device.uuid: no visible device has the UUID GPU-ffff", "GPU-aabb-2"]),
        ({"uuid": "GPU-aa"}, ["device.uuid: several visible devices have the UUID GPU-aa"]),
        ({"uuid": ""}, ["device.uuid: no visible device"]),
    ],
)
def test_a_board_that_does_not_exist(keys: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(DeviceError) as caught:
        device("cuda", two(), **keys)
    for word in words:
        assert word in str(caught.value)


def test_contradicting_keys() -> None:
    with pytest.raises(ConfigError, match=r"device\.index: must be at least 0, not -1"):
        device("cuda", two(), index=-1)
    with pytest.raises(ConfigError, match="not both"):
        device("cuda", two(), index=0, uuid="GPU-aaaa")
    for kind in ("cpu", "auto"):
        with pytest.raises(ConfigError, match="use device=cuda"):
            device(kind, two(), index=0)


def test_a_card_must_match() -> None:
    assert device("cuda", two(), card=card()).card == card()
    for wrong in (card(name="NVIDIA H200 NVL"), card(capability="8.0")):
        with pytest.raises(DeviceError, match=r"^device=h200: expects .* and this is NVIDIA H200 \(compute capability 9\.0\)"):
            device("cuda", two(), card=wrong)


@pytest.mark.parametrize("kind", ["auto", "cuda"])
def test_the_card_of_a_device_is_found_by_its_name_and_capability(kind: str) -> None:
    found = device(kind, two()).card
    assert found is not None
    assert (found.id, found.name, found.compute_capability, found.memory_bytes_per_s) == ("h200", H200, "9.0", 4.8e12)
    for name, capability in ((f"{H200} NVL", (9, 0)), (H200, (8, 0)), (H200.lower(), (9, 0))):
        assert device(kind, FakeNvml([(name, "GPU-1", capability)])).card is None
    assert device("cuda", two(), environ={"CUDA_VISIBLE_DEVICES": "MIG-7"}).card is None


def test_the_cpu_is_this_machine() -> None:
    found = device("cpu", two(fails="nvmlInit"))
    assert (found.kind, found.uuid, found.index, found.compute_capability) == ("cpu", None, None, None)
    assert found.threads == len(os.sched_getaffinity(0))
    assert found.memory_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert found.name.strip() == found.name != ""


def test_the_installed_torch_is_read_without_importing_it() -> None:
    import torch

    build = installed_torch()
    assert build is not None
    assert (build.version, build.cuda) == (torch.__version__, torch.version.cuda)
