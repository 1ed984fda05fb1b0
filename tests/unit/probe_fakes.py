"""A GPU that exists on paper: it does what the probe's kernels do, word by word, and says how long it planted for each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mkframe.model.device import ClockReading
from mkframe.probe.gpu import U32, U64, GpuFacts, Launch, Memcpy, Memset, Operation, Slice, Words

HOPPER = GpuFacts(
    name="Paper 9000",
    uuid="GPU-00000000-1111-2222-3333-444444444444",
    driver="999.1",
    compute_capability="9.0",
    multiprocessors=4,
    memory_bytes=128 * 2**20,
    l2_bytes=2**20,
    shared_bytes_per_block=227 * 1024,
    torch="2.13.0",
    cuda="13.0",
    nvrtc="13.0",
)
LATENCY_US = 1.85
RATE = {"ring": 4.6e12, "read_dram": 4.5e12, "write": 4.7e12, "memset": 4.4e12, "copy": 3.9e12, "memcpy": 4.2e12}
L2_RATE = {"ring": 24e12, "read_l2": 9e12}
STEP_US = {"block": 0.19, "cluster": 0.58, "grid": 0.99}
BARE_US = {"block": 0.011, "cluster": 0.18, "grid": 0.85}
TOUCH_US = (0.73, 0.90, 1.09, 1.10)
EVENT_US = {"nothing": 1.312, "kernel": 2.4, "graph": 2.56}
HOST_US = 3.0
TICK_US = 0.032
INTERCEPT_US = 2.8


@dataclass(frozen=True)
class FakeChain:
    operations: tuple[Operation, ...]

    def enqueue(self) -> None:
        raise AssertionError("the probe leaves it to the GPU to enqueue a chain")


@dataclass
class FakeGpu:
    """`broken` names a kernel (or "memcpy", "memset") that leaves its last word, or block, wrong. `still` takes no time for it."""

    facts: GpuFacts = HOPPER
    broken: str = ""
    still: str = ""
    buffers: dict[str, Words] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    now_s: float = 0.0
    work_s: float = 0.0

    def reserve(self, sizes: Mapping[str, int]) -> None:
        generator = np.random.default_rng(7)
        for name, size in sizes.items():
            self.buffers[name] = generator.integers(0, 2**32, size // 4, dtype=np.uint32)

    def release(self, *buffers: str) -> None:
        for name in buffers:
            del self.buffers[name]

    def resident(self, launch: Launch) -> int:
        per_sm = min(2048 // launch.block, 233472 // (launch.shared_bytes + 1024))
        blocks = per_sm * self.facts.multiprocessors
        return 0 if launch.cluster > 8 else blocks // launch.cluster * launch.cluster

    def chain(self, operations: Sequence[Operation], captured: bool = True) -> FakeChain:
        chain = FakeChain(tuple(operations))
        if captured:  # as a capture on a device does, whose call is run before it
            self.run(chain)
        return chain

    def run(self, chain: FakeChain) -> None:
        for operation in chain.operations:
            self._execute(operation)

    def pair_us(self, short: FakeChain, long: FakeChain, replays: int) -> tuple[list[float], list[float]]:
        return [self._chain_us(short)] * replays, [self._chain_us(long)] * replays

    def events_us(self, around: str, held: bool, count: int) -> list[float]:
        return [round((EVENT_US[around] + (0 if held else HOST_US)) / TICK_US) * TICK_US] * count

    def fill(self, buffer: str, word: int) -> None:
        self.buffers[buffer][:] = word

    def words(self, at: Slice, count: int) -> Words:
        return self._view(at, count).copy()

    def sum_words(self, at: Slice, count: int) -> int:
        return int(self._view(at, count).sum(dtype=np.uint64))

    def differing_words(self, one: Slice, other: Slice, count: int) -> int:
        return int(np.count_nonzero(self._view(one, count) != self._view(other, count)))

    def light_work(self, seconds: float) -> None:
        self.now_s += seconds
        self.work_s += seconds

    def idle(self, seconds: float) -> None:
        self.now_s += seconds
        self.work_s = 0.0

    def measured_mhz(self) -> float:
        return 345.0 if self.work_s < 0.2 else 1980.0

    def reading(self) -> ClockReading:
        return ClockReading(
            sm_clock_mhz=self.measured_mhz(), memory_clock_mhz=3201.0, temperature_c=40.0, power_w=300 + self.work_s, throttle_reasons=4
        )

    def now(self) -> float:
        return self.now_s

    # ------------------------------------------------------------ time

    def _chain_us(self, chain: FakeChain) -> float:
        return INTERCEPT_US + sum(self._cost_us(operation) for operation in chain.operations)

    def _cost_us(self, operation: Operation) -> float:
        name = _name(operation)
        if name == self.still:
            return 0.0
        if not isinstance(operation, Launch):
            return LATENCY_US + operation.bytes * (2 if name == "memcpy" else 1) / RATE[name] * 1e6
        numbers = [argument.value for argument in operation.arguments if isinstance(argument, U32 | U64)]
        kind, _, scope = name.partition("_")
        if kind == "empty":
            return empty_us(operation.grid, operation.cluster, operation.cooperative, operation.programmatic)
        if kind == "touch":
            return TOUCH_US[numbers[0]] - (0.37 if operation.programmatic else 0)
        if kind == "exchange":
            return 0.9 + numbers[0] * STEP_US[scope]
        if kind == "barrier":
            return 0.6 + numbers[0] * BARE_US[scope]
        if name == "write" or name == "copy":
            return LATENCY_US + operation.grid * operation.block * 64 * (2 if name == "copy" else 1) / RATE[name] * 1e6
        return self._read_us(operation, name, numbers)

    def _read_us(self, operation: Launch, name: str, numbers: list[int]) -> float:
        size, same, passes = (numbers[0], numbers[3], numbers[4]) if name == "ring" else (16 * numbers[0], numbers[1], numbers[2])
        moved = size * (operation.grid if same else 1) * passes
        if name == "read_dram" or (passes == 1 and not same):
            return LATENCY_US + moved / RATE[name] * 1e6
        return moved / L2_RATE[name] * 1e6

    # ------------------------------------------------------------ what kernels do

    def _execute(self, operation: Operation) -> None:
        name = _name(operation)
        self.ran.add(name)
        if isinstance(operation, Memset):
            target = self._view(operation.target, operation.bytes // 4)
            target[:] = operation.byte * 0x01010101
            self._spoil(name, target)
        elif isinstance(operation, Memcpy):
            target = self._view(operation.target, operation.bytes // 4)
            target[:] = self._view(operation.source, operation.bytes // 4)
            self._spoil(name, target)
        else:
            self._kernel(operation, name)

    def _kernel(self, launch: Launch, name: str) -> None:
        threads = launch.grid * launch.block
        slices = [argument for argument in launch.arguments if isinstance(argument, Slice)]
        numbers = [argument.value for argument in launch.arguments if isinstance(argument, U32 | U64)]
        kind, _, scope = name.partition("_")
        if kind == "touch":
            p, q = self._view(slices[0], threads), self._view(slices[1], threads)
            if numbers[0] == 1:
                q[:] = np.arange(threads, dtype=np.uint32) ^ np.uint32(0x5EED1234)
            if numbers[0] == 3:
                p += np.uint32(1)
            self._spoil(name, q if numbers[0] == 1 else p)
        elif kind == "exchange":
            assert scope != "grid" or launch.cooperative
            assert numbers[1] == {"block": 1, "cluster": launch.cluster, "grid": launch.grid}[scope]
            p = self._view(slices[0], threads)
            p += np.uint32(numbers[0] + 1)
            self._spoil(name, p)
        elif kind == "barrier":
            done = self._view(slices[1], launch.grid)
            done[:] = numbers[0]
            self._spoil(name, done)
        elif name == "write":
            target = self._view(slices[0], threads * 16)
            x = (np.arange(threads * 4, dtype=np.uint32) * np.uint32(2654435761)) + np.uint32(numbers[0])
            target.reshape(-1, 4)[:] = np.stack([x, x ^ np.uint32(0x55AA1234), np.invert(x), x >> np.uint32(3)], axis=1)
            self._spoil(name, target)
        elif name == "copy":
            target = self._view(slices[1], threads * 16)
            target[:] = self._view(slices[0], threads * 16)
            self._spoil(name, target)
        elif name in ("ring", "read_dram", "read_l2"):
            self._read(launch, name, slices, numbers)

    def _read(self, launch: Launch, name: str, slices: list[Slice], numbers: list[int]) -> None:
        ring = name == "ring"
        size, same, passes, check = (numbers[0], *numbers[3:6]) if ring else (16 * numbers[0], *numbers[1:4])
        if ring:
            assert launch.shared_bytes == numbers[2] * (numbers[1] + 8) <= self.facts.shared_bytes_per_block
            assert size % numbers[1] == 0
        else:
            unrolled = {"read_dram": 8, "read_l2": 4}[name]
            slab = numbers[0] if same else numbers[0] // launch.grid
            assert slab % (unrolled * launch.block) == 0
        data = self._view(slices[0], size // 4)
        total = int(data.sum(dtype=np.uint64)) * passes * (launch.grid if same else 1)
        if name == self.broken:
            total -= int(data[-1])
        if check:
            words = self._view(slices[1], 2)
            before = int(words[0]) | int(words[1]) << 32
            after = (before + total) % 2**64 if ring else (before + total) % 2**32
            words[:] = after & 0xFFFFFFFF, after >> 32

    def _spoil(self, name: str, left: Words) -> None:
        if name == self.broken:
            left[-1:] -= np.uint32(1)

    def _view(self, at: Slice, count: int) -> Words:
        found = self.buffers[at.buffer][at.offset // 4 : at.offset // 4 + count]
        assert found.size == count, f"{count} words from {at} on lie outside of the buffer"
        return found


def empty_us(grid: int, cluster: int, cooperative: bool, programmatic: bool) -> float:
    return 0.5 + 0.001 * grid + 0.01 * cluster + 0.25 * cooperative - 0.06 * programmatic


def _name(operation: Operation) -> str:
    if isinstance(operation, Launch):
        return operation.kernel.removesuffix("_programmatic")
    return "memcpy" if isinstance(operation, Memcpy) else "memset"
