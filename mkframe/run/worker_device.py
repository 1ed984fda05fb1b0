"""The worker's side of a device: torch on it, a stream, clocks, and the sampler of the timing protocol."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from time import monotonic
from typing import Protocol

import torch

from mkframe.errors import DeviceError
from mkframe.graph.carveout import Carveout
from mkframe.model.device import ClockReading
from mkframe.run.messages import Hello, WorkerSetup
from mkframe.timing.clocks import CpuClocks, NvmlClocks
from mkframe.timing.cpu import CpuPerCall
from mkframe.timing.sampler import Sampler

_PACKAGES = ("torch", "numpy", "nvidia-cutlass-dsl", "triton", "nvidia-ml-py", "hydra-core")
_FLOOR_SAMPLES = 200
_WAKE_S = 0.05


class Clocks(Protocol):
    def read(self) -> ClockReading: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerDevice:
    """One device, ready. `stream` and `carveout` are None on a CPU."""

    device: torch.device
    stream: torch.cuda.Stream | None
    sampler: Sampler
    clocks: Clocks
    hello: Hello
    carveout: Carveout | None = None
    wake_s: float = 0.0

    @contextmanager
    def current(self) -> Iterator[None]:
        """Makes the worker's stream torch's current one."""
        if self.stream is None:
            yield
        else:
            with torch.cuda.stream(self.stream):
                yield

    def settle(self) -> None:
        """Waits until the device has done everything. Raises what the device reports."""
        if self.stream is not None:
            torch.cuda.synchronize()

    def wake(self) -> None:
        """Light work for `wake_s` seconds, in case the clocks fell while the host drew inputs and computed references."""
        if self.wake_s > 0:
            spin_up(self.wake_s)

    def healthy(self) -> bool:
        """Whether the device still answers: an illegal access poisons a CUDA context for good."""
        try:
            self.settle()
        except Exception:
            return False
        return True

    def release(self) -> None:
        """Gives cached memory back between cases."""
        if self.stream is not None:
            torch.cuda.empty_cache()


def prepare(setup: WorkerSetup) -> WorkerDevice:
    """Opens the device, spins its clock up and measures the floors. Raises DeviceError where torch cannot use it."""
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    return _prepare_cuda(setup) if setup.device_kind == "cuda" else _prepare_cpu()


def end_compile_workers() -> None:
    """Ends the compile processes of inductor, where it is loaded."""
    pool = sys.modules.get("torch._inductor.async_compile")
    if pool is not None:
        pool.shutdown_compile_workers()


def _prepare_cpu() -> WorkerDevice:
    sampler = CpuPerCall()
    hello = Hello(
        pid=os.getpid(),
        name="cpu",
        multiprocessors=None,
        l2_bytes=None,
        cuda=None,
        threads=torch.get_num_threads(),
        packages=_packages(),
        floors=sampler.floors(_FLOOR_SAMPLES),
        step_ms=sampler.step_ms(),
    )
    return WorkerDevice(device=torch.device("cpu"), stream=None, sampler=sampler, clocks=CpuClocks(), hello=hello)


def _prepare_cuda(setup: WorkerSetup) -> WorkerDevice:
    from mkframe.timing.cuda import CudaSampler

    if not torch.cuda.is_available():
        raise DeviceError(f"device: torch {torch.__version__} cannot use CUDA here; install a CUDA build of torch, or set device=cpu")
    assert setup.device_uuid is not None, "the plan names CUDA devices by UUID"
    torch.cuda.set_device(0)  # CUDA_VISIBLE_DEVICES leaves exactly the one that the plan names
    properties = torch.cuda.get_device_properties(0)
    stream = torch.cuda.Stream()
    spin_up(setup.timing.spin_up_s)
    l2_bytes = int(getattr(properties, "L2_cache_size", 0))
    sampler = CudaSampler(stream, setup.timing, l2_bytes)
    hello = Hello(
        pid=os.getpid(),
        name=properties.name,
        multiprocessors=properties.multi_processor_count,
        l2_bytes=l2_bytes or None,
        cuda=torch.version.cuda,
        threads=None,
        packages=_packages(),
        floors=sampler.floors(_FLOOR_SAMPLES),
        step_ms=sampler.step_ms(),
    )
    return WorkerDevice(
        device=torch.device("cuda", 0),
        stream=stream,
        sampler=sampler,
        clocks=NvmlClocks(setup.device_uuid),
        hello=hello,
        carveout=Carveout(),
        wake_s=min(_WAKE_S, setup.timing.spin_up_s),
    )


def spin_up(seconds: float) -> None:
    """Light elementwise work until the clocks have risen. Large products would power-cap the card and slow what follows."""
    work = torch.ones(1 << 20, device="cuda")
    end = monotonic() + seconds
    while monotonic() < end:
        for _ in range(100):
            work.mul_(1.0)
        torch.cuda.synchronize()


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    found["torch"] = str(torch.__version__)  # a plain str; with the build's local tag, which the metadata may lack
    return found
