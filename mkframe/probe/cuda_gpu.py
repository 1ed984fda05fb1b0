"""The probe's GPU on a CUDA device: torch owns memory, stream, events and graphs, NVRTC the kernels."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, perf_counter_ns, sleep
from typing import Any

import numpy as np
import torch

from mkframe.errors import DeviceError
from mkframe.graph import nvrtc
from mkframe.graph.capture import capture
from mkframe.graph.driver import check, driver
from mkframe.graph.launch import callable_of
from mkframe.model.device import ClockReading
from mkframe.plugin.launches import KernelNode, Launches
from mkframe.probe import compile, fit
from mkframe.probe.gpu import U32, Chain, GpuFacts, Launch, Memcpy, Operation, ProbeFault, Slice, Words
from mkframe.timing.clocks import NvmlClocks

_CLOCK_NS = 300_000
_FIRST_DELAY_NS = 200_000
_LONGEST_DELAY_NS = 100_000_000
_TRIES = 8
_CHUNK = 2**24  # words that are summed or compared at a time


class _CudaChain:
    """`delay_ns`: how long a delay in front must be for the host to stay ahead, as learned so far."""

    def __init__(self, enqueue: Callable[[], None]) -> None:
        self.enqueue = enqueue
        self.delay_ns = _FIRST_DELAY_NS


class CudaGpu:
    """The device that torch sees as number 0. `uuid` and `driver` come from NVML. Raises DeviceError where torch cannot use it,
    RunError where the kernels cannot be compiled."""

    def __init__(self, uuid: str, driver_version: str) -> None:
        if not torch.cuda.is_available():
            raise DeviceError(f"device: torch {torch.__version__} cannot use CUDA here; install a CUDA build of torch")
        torch.cuda.set_device(0)
        torch.ones(1, device="cuda").add_(1)  # makes the context, which the driver's calls need
        self._stream = torch.cuda.Stream()
        properties = torch.cuda.get_device_properties(0)
        self.facts = GpuFacts(
            name=properties.name,
            uuid=uuid,
            driver=driver_version,
            compute_capability=f"{properties.major}.{properties.minor}",
            multiprocessors=properties.multi_processor_count,
            memory_bytes=properties.total_memory,
            l2_bytes=_attribute("L2_CACHE_SIZE"),
            shared_bytes_per_block=_attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            torch=str(torch.__version__),
            cuda=torch.version.cuda,
            nvrtc=nvrtc.version(),
        )
        cu = driver()
        architecture = f"sm_{properties.major}{properties.minor}"
        self._modules = [check(cu.cuModuleLoadData(compile.compiled(name, architecture))) for name in compile.SOURCES]
        self._functions: dict[str, Any] = {}
        self._buffers: dict[str, torch.Tensor] = {}
        self._events: list[torch.cuda.Event] = []
        self._clocks = NvmlClocks(uuid)
        self._work = torch.ones(1 << 18, device="cuda")
        self.reserve({"clock": 16})
        empty = Launch(kernel="empty", grid=1, block=32)
        self._around: dict[str, _CudaChain] = {
            "nothing": _CudaChain(lambda: None),
            "kernel": self.chain((empty,), captured=False),
            "graph": self.chain((empty,)),
        }

    def reserve(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            words = torch.empty(-(-size // 4), dtype=torch.int32, device="cuda")
            self._buffers[name] = words.random_(-(2**31), 2**31)
        torch.cuda.synchronize()

    def release(self, *buffers: str) -> None:
        for name in buffers:
            del self._buffers[name]
        torch.cuda.empty_cache()

    def resident(self, launch: Launch) -> int:
        cu, function = driver(), self._function(launch.kernel)
        if launch.cluster == 1:
            status, blocks = cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, launch.block, launch.shared_bytes)
            return int(blocks) * self.facts.multiprocessors if int(status) == 0 else 0
        config, size = cu.CUlaunchConfig(), cu.CUlaunchAttribute()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block, 1, 1
        config.sharedMemBytes = launch.shared_bytes
        size.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size.value.clusterDim.x, size.value.clusterDim.y, size.value.clusterDim.z = launch.cluster, 1, 1
        config.attrs, config.numAttrs = [size], 1
        status, clusters = cu.cuOccupancyMaxActiveClusters(function, config)
        return int(clusters) * launch.cluster if int(status) == 0 else 0

    def chain(self, operations: Sequence[Operation], captured: bool = True) -> _CudaChain:
        calls = {operation: self._call(operation) for operation in dict.fromkeys(operations)}
        ordered = [calls[operation] for operation in operations]

        def enqueue() -> None:
            for call in ordered:
                call()

        return _CudaChain(capture(enqueue, self._stream, read=False).replay if captured else enqueue)

    def run(self, chain: Chain) -> None:
        with torch.cuda.stream(self._stream):
            chain.enqueue()
        self._stream.synchronize()

    def pair_us(self, short: Chain, long: Chain, replays: int) -> tuple[list[float], list[float]]:
        assert isinstance(short, _CudaChain) and isinstance(long, _CudaChain)
        spans = self._spans([short, long] * replays, long)
        return spans[0::2], spans[1::2]

    def events_us(self, around: str, held: bool, count: int) -> list[float]:
        chain = self._around[around]
        if held:
            return self._spans([chain] * count, chain)
        found = []
        start, stop = self._event(0), self._event(1)
        with torch.cuda.stream(self._stream):
            for _ in range(count):
                start.record(self._stream)
                chain.enqueue()
                stop.record(self._stream)
                stop.synchronize()
                found.append(start.elapsed_time(stop) * 1e3)
        return found

    def _spans(self, chains: Sequence[_CudaChain], learner: _CudaChain) -> list[float]:
        """An event pair around each chain, all enqueued before the device reaches the first: else once more, with a longer delay."""
        pairs = [(self._event(2 * index), self._event(2 * index + 1)) for index in range(len(chains))]
        for _ in range(_TRIES):
            begin = perf_counter_ns()
            with torch.cuda.stream(self._stream):
                self._launch_now(Launch(kernel="delay", grid=1, block=1), (learner.delay_ns, ctypes.c_uint64))
                for (start, stop), chain in zip(pairs, chains, strict=True):
                    start.record(self._stream)
                    chain.enqueue()
                    stop.record(self._stream)
            late = pairs[0][0].query()
            elapsed_ns = perf_counter_ns() - begin
            self._stream.synchronize()
            if not late:
                return [start.elapsed_time(stop) * 1e3 for start, stop in pairs]
            learner.delay_ns = min(max(2 * learner.delay_ns, int(1.5 * elapsed_ns)), _LONGEST_DELAY_NS)
        raise ProbeFault(f"the host needs more than {learner.delay_ns / 1e6:g} ms to enqueue one measurement; is the machine busy?")

    def fill(self, buffer: str, word: int) -> None:
        self._buffers[buffer].fill_(int(np.uint32(word).astype(np.int32)))
        torch.cuda.synchronize()

    def words(self, at: Slice, count: int) -> Words:
        return self._view(at, count).cpu().numpy().view(np.uint32)

    def sum_words(self, at: Slice, count: int) -> int:
        chunks = self._view(at, count).split(_CHUNK)
        return sum(int((chunk.to(torch.int64) & 0xFFFFFFFF).sum()) for chunk in chunks)

    def differing_words(self, one: Slice, other: Slice, count: int) -> int:
        pairs = zip(self._view(one, count).split(_CHUNK), self._view(other, count).split(_CHUNK), strict=True)
        return sum(int(torch.count_nonzero(a != b)) for a, b in pairs)

    def light_work(self, seconds: float) -> None:
        end = monotonic() + seconds
        with torch.cuda.stream(self._stream):
            while monotonic() < end:
                for _ in range(50):
                    self._work.mul_(1.0)
                self._stream.synchronize()

    def idle(self, seconds: float) -> None:
        self._stream.synchronize()
        sleep(seconds)

    def measured_mhz(self) -> float:
        with torch.cuda.stream(self._stream):
            self._launch_now(Launch(kernel="clock_rate", grid=1, block=1, arguments=(Slice("clock"),)), (_CLOCK_NS, ctypes.c_uint64))
        self._stream.synchronize()
        cycles, nanoseconds = self.words(Slice("clock"), 4).view(np.uint64)
        return fit.mhz(int(cycles), int(nanoseconds))

    def reading(self) -> ClockReading:
        return self._clocks.read()

    def _launch_now(self, launch: Launch, *extra: tuple[int, Any]) -> None:
        callable_of(Launches(nodes=(self._node(launch, extra),)))()

    def _call(self, operation: Operation) -> Callable[[], None]:
        if isinstance(operation, Launch):
            return callable_of(Launches(nodes=(self._node(operation),)))
        cu, target = driver(), self._address(operation.target)
        if isinstance(operation, Memcpy):
            source, size = self._address(operation.source), operation.bytes
            return lambda: check(cu.cuMemcpyDtoDAsync(target, source, size, torch.cuda.current_stream().cuda_stream))
        byte, size = operation.byte, operation.bytes
        return lambda: check(cu.cuMemsetD8Async(target, byte, size, torch.cuda.current_stream().cuda_stream))

    def _node(self, launch: Launch, extra: tuple[tuple[int, Any], ...] = ()) -> KernelNode:
        arguments = [
            (self._address(one), ctypes.c_uint64)
            if isinstance(one, Slice)
            else (one.value, ctypes.c_uint32 if isinstance(one, U32) else ctypes.c_uint64)
            for one in launch.arguments
        ]
        return KernelNode(
            function=int(self._function(launch.kernel)),
            grid=(launch.grid, 1, 1),
            block=(launch.block, 1, 1),
            cluster=(launch.cluster, 1, 1),
            shared_bytes=launch.shared_bytes,
            cooperative=launch.cooperative,
            programmatic=launch.programmatic,
            arguments=(*arguments, *extra),
            name=launch.kernel,
        )

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            cu = driver()
            for module in self._modules:
                status, function = cu.cuModuleGetFunction(module, name.encode())
                if int(status) == 0:
                    most = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    check(cu.cuFuncSetAttribute(function, most, self.facts.shared_bytes_per_block))
                    self._functions[name] = function
                    break
            else:
                raise DeviceError(f"device probe: this device has no kernel {name}")
        return self._functions[name]

    def _address(self, at: Slice) -> int:
        return self._buffers[at.buffer].data_ptr() + at.offset

    def _view(self, at: Slice, count: int) -> torch.Tensor:
        assert at.offset % 4 == 0, "words are aligned"
        return self._buffers[at.buffer][at.offset // 4 : at.offset // 4 + count]

    def _event(self, index: int) -> torch.cuda.Event:
        while len(self._events) <= index:
            self._events.append(torch.cuda.Event(enable_timing=True))
        return self._events[index]


def _attribute(name: str) -> int:
    cu = driver()
    attribute = getattr(cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(check(cu.cuDeviceGetAttribute(attribute, check(cu.cuCtxGetDevice()))))
