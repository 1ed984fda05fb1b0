"""A registry of fakes: workloads and engines that only declare, for the tests of configuration and plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from mkframe.model.device import Device
from mkframe.plugin import Cost, Defaults, Engine, Launches, Role, TensorSpec, Tolerance, Workload
from mkframe.plugin.registry import Loaded, LoadFailure, Registry, freeze

CPU = Device(kind="cpu", name="Fake CPU", memory_bytes=2**36, threads=2)
GPU = Device(kind="cuda", name="Fake GPU", memory_bytes=2**36, index=0, uuid="GPU-1", compute_capability="9.0", driver="1")


@dataclass(frozen=True, kw_only=True, slots=True)
class MlpCase:
    rows: int
    channels: int
    hidden: int
    depth: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyCase:
    rows: int
    length: int

    def __post_init__(self) -> None:
        if self.length % 2:
            raise ValueError("length must be even")


class _Declared(Workload):
    def draw(self, case: Any, seed: int) -> Mapping[str, Any]:
        raise NotImplementedError

    def reference(self, case: Any, precision: Any, inputs: Any) -> Mapping[str, Any]:
        raise NotImplementedError

    def tolerance(self, precision: Any) -> Tolerance:
        return Tolerance(rtol=0.0, atol=0.0)

    def cost(self, case: Any, precision: Any) -> Cost:
        return Cost(bytes=1, flops=1)

    def expression(self, case: Any, precision: Any, tensors: Any) -> None:
        raise NotImplementedError


class FakeMlp(_Declared):
    """Takes its sets from the configuration files."""

    id = "residual_mlp"
    Case = MlpCase
    precisions = ("fp16", "bf16")
    defaults = Defaults(engines=("quick",), shapes=("smoke",), precision="fp16")

    def tensors(self, case: MlpCase, precision: Any) -> Mapping[str, TensorSpec]:
        return {
            "x": TensorSpec(shape=(case.rows, case.channels), dtype=precision.input, role=Role.INPUT),
            "w": TensorSpec(shape=(case.channels, case.hidden), dtype=precision.weight, role=Role.WEIGHT),
            "y": TensorSpec(shape=(case.rows, case.channels), dtype=precision.output, role=Role.OUTPUT),
        }


class FakeToy(_Declared):
    """Brings its own sets, one of them under a name that a file has too."""

    id = "toy"
    Case = ToyCase
    precisions = ("fp32",)
    defaults = Defaults(engines=("toy-engine",), shapes=("smoke",), precision="fp32")
    shapes = {"smoke": ({"rows": 3, "length": 4},), "long": ({"rows": 1, "length": 1000}, {"rows": 2, "length": 1000})}  # noqa: RUF012

    def tensors(self, case: ToyCase, precision: Any) -> Mapping[str, TensorSpec]:
        return {"y": TensorSpec(shape=(case.rows, case.length), dtype="float32", role=Role.OUTPUT)}


class Mode(Enum):
    CAREFUL = "careful"
    FAST = "fast"


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickOptions:
    tile: int = 16
    mode: Mode = Mode.CAREFUL
    checked: bool = True
    ratio: float = 0.5

    def __post_init__(self) -> None:
        if self.tile % 8:
            raise ValueError(f"tile must be a multiple of 8, not {self.tile}")


class FakeEngine(Engine):
    def __init__(self, engine_id: str, workload: str = "residual_mlp", **declared: Any) -> None:
        self.id = engine_id
        self.workload = workload
        for name, value in declared.items():
            setattr(self, name, value)

    def bind(self, case: Any, precision: Any, tensors: Any, options: Any) -> Launches:
        raise NotImplementedError


class Quick(FakeEngine):
    """Supports up to 2000 rows; needs a row of scratch per tile row."""

    Options = QuickOptions

    def unsupported(self, case: Any, precision: Any, device: Device) -> str | None:
        return "more than 2000 rows" if case.rows > 2000 else None

    def scratch(self, case: Any, precision: Any, options: QuickOptions) -> Mapping[str, TensorSpec]:
        return {"h": TensorSpec(shape=(options.tile, case.hidden), dtype="float32", role=Role.SCRATCH)}


def make_registry(extra: tuple[Engine, ...] = (), failures: tuple[LoadFailure, ...] | None = None) -> Registry:
    """Engines: quick (both devices, with options), host (CPU), board (CUDA), base (baseline), toy-engine (of toy)."""
    engines = (
        Quick("quick", precisions=("fp16",)),
        FakeEngine("host", devices=("cpu",)),
        FakeEngine("board", devices=("cuda",)),
        FakeEngine("base", baseline=True, precisions=("fp16", "bf16")),
        FakeEngine("toy-engine", workload="toy", precisions=("fp32",)),
        *extra,
    )
    broken = LoadFailure(id="broken", origin="folder mine/broken.py", error="ModuleNotFoundError: No module named 'nowhere'")
    return freeze(
        {workload.id: Loaded(plugin=workload, origin="built-in", module="fake") for workload in (FakeMlp(), FakeToy())},
        {(engine.workload, engine.id): Loaded(plugin=engine, origin="built-in", module="fake") for engine in engines},
        [broken] if failures is None else list(failures),
    )


def bytes_of(*specs: tuple[tuple[int, ...], str]) -> int:
    """Size of arrays by numpy, independent of TensorSpec."""
    return sum(np.empty(shape, dtype=dtype).nbytes for shape, dtype in specs)
