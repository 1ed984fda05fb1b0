"""What the probe asks of a GPU, as data: operations, chains, readings. One class does it on a device, another fakes it in tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mkframe.model.device import ClockReading

Words = NDArray[np.uint32]


class ProbeFault(Exception):
    """A kernel left other data behind than it must: its time means nothing. The message names the case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFacts:
    """Limits of the device, from its driver."""

    name: str
    uuid: str
    driver: str
    compute_capability: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes_per_block: int
    torch: str
    cuda: str | None
    nvrtc: str

    @property
    def clusters(self) -> bool:
        """Clusters, bulk copies and programmatic edges came with 9.0."""
        return float(self.compute_capability) >= 9.0


@dataclass(frozen=True, slots=True)
class Slice:
    """The address `offset` bytes into a buffer of the probe."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class U32:
    value: int


@dataclass(frozen=True, slots=True)
class U64:
    value: int


Argument = Slice | U32 | U64


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One kernel of the probe, launched once, in one dimension."""

    kernel: str
    grid: int
    block: int
    arguments: tuple[Argument, ...] = ()
    shared_bytes: int = 0
    cluster: int = 1
    cooperative: bool = False
    programmatic: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Memcpy:
    """A copy by the driver."""

    target: Slice
    source: Slice
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Memset:
    """A fill with one byte by the driver."""

    target: Slice
    byte: int
    bytes: int


Operation = Launch | Memcpy | Memset


class Chain(Protocol):
    """Operations in order with full edges, ready to be enqueued again and again: a graph, or (not captured) call by call."""

    def enqueue(self) -> None: ...


class Gpu(Protocol):
    """One device with one stream. Every method but `chain` and `resident` waits until the device is done."""

    facts: GpuFacts

    def reserve(self, sizes: Mapping[str, int]) -> None:
        """Allocates buffers by name, filled with random words, in addition to those that exist."""

    def release(self, *buffers: str) -> None:
        """Gives buffers back."""

    def resident(self, launch: Launch) -> int:
        """How many blocks of this launch fit on the device at once; 0 where it cannot run at all."""

    def chain(self, operations: Sequence[Operation], captured: bool = True) -> Chain:
        """Makes a chain, which may run its operations: fill what they change after this."""

    def run(self, chain: Chain) -> None:
        """Runs a chain once."""

    def pair_us(self, short: Chain, long: Chain, replays: int) -> tuple[list[float], list[float]]:
        """Event times of both chains, replayed in turn behind a delay that keeps the host ahead. Raises ProbeFault where the
        host could not be kept ahead."""

    def events_us(self, around: str, held: bool, count: int) -> list[float]:
        """`count` readings of an event pair around "nothing", a "kernel" or a "graph" of one empty kernel."""

    def fill(self, buffer: str, word: int) -> None:
        """Fills a buffer with one 32-bit word."""

    def words(self, at: Slice, count: int) -> Words:
        """A copy of `count` words."""

    def sum_words(self, at: Slice, count: int) -> int:
        """The sum of `count` words, not reduced, computed independently of the probe's kernels."""

    def differing_words(self, one: Slice, other: Slice, count: int) -> int:
        """How many of `count` words differ."""

    def light_work(self, seconds: float) -> None:
        """Light elementwise work. Large products would power-cap the card and slow what follows."""

    def idle(self, seconds: float) -> None:
        """No work."""

    def measured_mhz(self) -> float:
        """The SM clock: clock64 against globaltimer, in a kernel."""

    def reading(self) -> ClockReading:
        """What NVML says now."""
