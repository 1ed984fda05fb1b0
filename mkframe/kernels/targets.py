"""Architectures that kernels can be compiled for, and which of them a device runs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mkframe.cuda_driver import check, driver
from mkframe.errors import ConfigError, DeviceError
from mkframe.model.device import Device
from mkframe.model.kernel import Target

_KIB = 1024

SHARED_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "sm_80": 163 * _KIB,
        "sm_86": 99 * _KIB,
        "sm_89": 99 * _KIB,
        "sm_90a": 227 * _KIB,
        "sm_100a": 227 * _KIB,
        "sm_120a": 99 * _KIB,
    }
)
"""Architecture -> shared memory that a block may ask for, bytes (CUDA C++ Programming Guide, technical specifications per compute
capability)."""

_FAMILY = {80: "sm_80", 86: "sm_86", 89: "sm_89"}  # a cubin runs on later devices of its major version
_EXACT = {90: "sm_90a", 100: "sm_100a", 120: "sm_120a"}  # the instructions of sm_NNa exist on that version alone


def target(arch: str, multiprocessors: int | None = None) -> Target:
    """The target of an architecture by its name. Raises ConfigError for one that is not in SHARED_BYTES."""
    if arch not in SHARED_BYTES:
        raise ConfigError(f"device.arch: {arch!r} is not known; there are: {', '.join(SHARED_BYTES)}")
    return Target(arch=arch, multiprocessors=multiprocessors, shared_bytes_per_block=SHARED_BYTES[arch])


def arch_of(compute_capability: str) -> str:
    """The architecture that a device of compute capability "9.0" and the like runs. For an 8.x without kernels of its own that is the
    next lower one (8.7: sm_86), whose cubins it runs too.

    Raises DeviceError for one that runs none of them.
    """
    major, _, minor = compute_capability.partition(".")
    if major.isdecimal() and minor.isdecimal():
        version = 10 * int(major) + int(minor)
        if version in _EXACT:
            return _EXACT[version]
        lower = [known for known in _FAMILY if known <= version < 90]
        if lower:
            return _FAMILY[max(lower)]
    raise DeviceError(
        f"device: no kernel can be compiled for compute capability {compute_capability}; there are architectures for 8.0 to 8.9, "
        "9.0, 10.0 and 12.0"
    )


def target_of(device: Device) -> Target | None:
    """The target of a device that a plan names, for Engine.unsupported; None for a CPU and for a device that runs no architecture here."""
    if device.compute_capability is None:
        return None
    try:
        return target(arch_of(device.compute_capability), None if device.card is None else device.card.multiprocessors)
    except DeviceError:
        return None


def capability_of(arch: str) -> str:
    """The compute capability that an architecture is named after: "9.0" of sm_90a."""
    digits = arch.removeprefix("sm_").rstrip("a")
    return f"{digits[:-1]}.{digits[-1]}"


def current_target(api: Any = None) -> Target:
    """The target of the device of the current CUDA context, with what the driver says of it. `api` stands in for the driver in tests.

    Raises DeviceError as `arch_of` does, RuntimeError without a context.
    """
    cu = driver() if api is None else api
    device = check(cu.cuCtxGetDevice())

    def attribute(name: str) -> int:
        return int(check(cu.cuDeviceGetAttribute(getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device)))

    return Target(
        arch=arch_of(f"{attribute('COMPUTE_CAPABILITY_MAJOR')}.{attribute('COMPUTE_CAPABILITY_MINOR')}"),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        shared_bytes_per_block=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    )
