"""The device that NVML names is the one that torch uses."""

import pytest

from mkframe.plan import resolve
from mkframe.settings.nodes import DeviceConfig, DeviceKind

pytestmark = pytest.mark.gpu


def test_the_resolved_device_is_torchs_first() -> None:
    import torch

    device = resolve(DeviceConfig(kind=DeviceKind.AUTO)).device
    properties = torch.cuda.get_device_properties(0)
    assert device.kind == "cuda"
    assert device.name == properties.name
    assert device.compute_capability == f"{properties.major}.{properties.minor}"
    assert device.uuid == f"GPU-{properties.uuid}"
    assert device.memory_bytes >= properties.total_memory
