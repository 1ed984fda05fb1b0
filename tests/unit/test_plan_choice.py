"""`auto` takes a GPU only where a selected engine can use it; a device that is named is taken at its word."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mkframe.model.device import Device
from mkframe.plan import choice
from mkframe.plan.devices import Resolved
from mkframe.plugin.loader import load_registry
from mkframe.settings.nodes import DeviceConfig, DeviceKind, EngineConfig

GPU = Resolved(device=Device(kind="cuda", name="A GPU", memory_bytes=1, uuid="GPU-0", compute_capability="9.0"), note="device: A GPU")
CPU_ONLY = Path(__file__).parents[1] / "cheats" / "careless"  # brings the engine careful


def chosen(monkeypatch: pytest.MonkeyPatch, kind: DeviceKind, *engines: str, plugin_paths: tuple[str, ...] = ()) -> Resolved:
    monkeypatch.setattr(choice, "resolve", lambda config: GPU)
    asked: Any = SimpleNamespace(
        device=DeviceConfig(kind=kind), engine={name: EngineConfig() for name in engines}, workload=SimpleNamespace(id="residual_mlp")
    )
    return choice.device_for(asked, load_registry(plugin_paths))


def test_engines_without_a_cuda_kernel_run_on_the_cpu_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, DeviceKind.AUTO, "careful", plugin_paths=(str(CPU_ONLY),))
    assert found.device.kind == "cpu"
    assert found.note is not None
    assert found.note.endswith("because no CUDA kernel exists yet for careful")


def test_one_engine_that_can_use_the_gpu_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, DeviceKind.AUTO, "persistent", "torch-cublas") == GPU


def test_a_device_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, DeviceKind.CUDA, "persistent") == GPU
