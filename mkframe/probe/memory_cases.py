"""DRAM bandwidth: reads, writes and copies of several sizes, rotating over sets that do not fit into L2 together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkframe.model.device_card import MemoryModel, MemoryRate
from mkframe.model.device_card import Operation as Kind
from mkframe.probe import fit
from mkframe.probe.gpu import U32, U64, Gpu, GpuFacts, Launch, Memcpy, Memset, Operation, ProbeFault, Slice, Words
from mkframe.probe.rounds import Slope

TILE = 16 * 1024
_LARGEST_UNIT = 64 * 2**20
_SIZES = (1.0, 3.5, 16.0)
_COLD = 5  # times L2
_BLOCK = 256
_REPLAYS = 3
_BYTE = 0x5A
_SEED = 12345
_WINDOW = 2**18  # words


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryCase:
    """One way to move one footprint. `check` is how its contents are judged."""

    kind: Kind
    method: str
    bytes: int
    sets: int
    captured: bool = True

    @property
    def name(self) -> str:
        return f"{self.kind} {self.bytes} bytes, {self.method}"

    @property
    def moved_bytes(self) -> int:
        return self.bytes * (2 if self.kind is Kind.COPY else 1)

    def slope(self, facts: GpuFacts) -> Slope:
        more = min(max(_LARGEST_UNIT * 64 // self.bytes, 8), 64)
        few = max(4, more // 4)
        passes = tuple(operation(self, facts, index % self.sets) for index in range(few + more))
        return Slope(name=self.name, short=passes[:few], long=passes, units=more, replays=_REPLAYS, captured=self.captured)


BULK, LOADS, STORES, MEMSET = "bulk copies to shared memory", "16-byte loads", "16-byte stores", "memset node"
CALLS, NODE, LOADS_STORES = "memcpy calls", "memcpy node", "16-byte loads and stores"


def sizes(facts: GpuFacts) -> tuple[tuple[int, int], ...]:
    """(bytes, sets): 64 MiB, 3.5 and 16 times as much on a board of 8 GiB and more, less on a smaller one. The sets of a size are
    at least 5 times L2 together, so that no pass finds its data there."""
    unit = min(_LARGEST_UNIT, 2 ** ((facts.memory_bytes // 128).bit_length() - 1))
    return tuple((int(unit * factor), max(2, -(-_COLD * facts.l2_bytes // int(unit * factor)))) for factor in _SIZES)


def buffer_bytes(gpu: Gpu) -> dict[str, int]:
    largest = max(size * sets for size, sets in sizes(gpu.facts))
    return {"source": largest, "target": largest, "sum": 8}


def memory_cases(gpu: Gpu) -> tuple[MemoryCase, ...]:
    return tuple(_cases(gpu.facts))


def _cases(facts: GpuFacts) -> Iterator[MemoryCase]:
    for size, sets in sizes(facts):
        if facts.clusters:
            yield MemoryCase(kind=Kind.READ, method=BULK, bytes=size, sets=sets)
        yield MemoryCase(kind=Kind.READ, method=LOADS, bytes=size, sets=sets)
        yield MemoryCase(kind=Kind.WRITE, method=STORES, bytes=size, sets=sets)
        yield MemoryCase(kind=Kind.WRITE, method=MEMSET, bytes=size, sets=sets)
        yield MemoryCase(kind=Kind.COPY, method=CALLS, bytes=size, sets=sets, captured=False)
        yield MemoryCase(kind=Kind.COPY, method=NODE, bytes=size, sets=sets)
        yield MemoryCase(kind=Kind.COPY, method=LOADS_STORES, bytes=size, sets=sets)


def ring_stages(facts: GpuFacts, wanted: int) -> int:
    """Stages of the bulk-copy ring that fit into a block's shared memory, each with its 8-byte barrier."""
    return min(wanted, facts.shared_bytes_per_block // (TILE + 8))


def ring(facts: GpuFacts, source: Slice, bytes: int, stages: int, same: bool, passes: int, check: bool) -> Launch:
    stages = ring_stages(facts, stages)
    arguments = (source, U64(bytes), U32(TILE), U32(stages), U32(int(same)), U32(passes), U32(int(check)), Slice("sum"))
    return Launch(kernel="ring", grid=facts.multiprocessors, block=32, shared_bytes=stages * (TILE + 8), arguments=arguments)


def operation(case: MemoryCase, facts: GpuFacts, set: int, check: bool = False) -> Operation:
    """One pass over one set."""
    source, target, items = Slice("source", set * case.bytes), Slice("target", set * case.bytes), case.bytes // 16
    match case.method:
        case method if method == BULK:
            return ring(facts, source, case.bytes, 8, same=False, passes=1, check=check)
        case method if method == LOADS:
            arguments = (source, U64(items), U32(0), U32(1), U32(int(check)), Slice("sum"))
            return Launch(kernel="read_dram", grid=items // (8 * _BLOCK), block=_BLOCK, arguments=arguments)
        case method if method == STORES:
            return Launch(kernel="write", grid=items // (4 * _BLOCK), block=_BLOCK, arguments=(target, U32(_SEED)))
        case method if method == LOADS_STORES:
            return Launch(kernel="copy", grid=items // (4 * _BLOCK), block=_BLOCK, arguments=(source, target))
        case method if method == MEMSET:
            return Memset(target=target, byte=_BYTE, bytes=case.bytes)
    return Memcpy(target=target, source=source, bytes=case.bytes)


def check_memory(gpu: Gpu, cases: Sequence[MemoryCase]) -> None:
    """Sums what was read, compares what was copied, recomputes what was written. Raises ProbeFault."""
    for case in cases:
        last = case.sets - 1
        chain = gpu.chain((operation(case, gpu.facts, last, check=True),), case.captured)
        gpu.fill("sum", 0)
        if case.kind is not Kind.READ:
            gpu.fill("target", 0)
        gpu.run(chain)
        if case.kind is Kind.READ:
            check_sum(
                gpu, case.name, gpu.sum_words(Slice("source", last * case.bytes), case.bytes // 4), bits=64 if case.method == BULK else 32
            )
        elif case.kind is Kind.COPY:
            wrong = gpu.differing_words(Slice("source", last * case.bytes), Slice("target", last * case.bytes), case.bytes // 4)
            if wrong:
                raise ProbeFault(f"{case.name}: {wrong} words differ from their source")
        else:
            _check_written(gpu, case, last)


def check_sum(gpu: Gpu, name: str, expected: int, bits: int) -> None:
    """Compares the sum that a reading kernel left with the expected one, modulo 2^bits. Raises ProbeFault."""
    low, high = (int(word) for word in gpu.words(Slice("sum"), 2))
    found = low | high << 32
    if found != expected % 2**bits:
        raise ProbeFault(f"{name}: the sum of the words read is {found}, not {expected % 2**bits}")


def _check_written(gpu: Gpu, case: MemoryCase, set: int) -> None:
    """The first, the middle and the last MiB; everything where that is less."""
    total = case.bytes // 4
    for start in dict.fromkeys((0, max(0, total // 2 - _WINDOW // 2), max(0, total - _WINDOW))):
        count = min(_WINDOW, total - start)
        found = gpu.words(Slice("target", set * case.bytes + 4 * start), count)
        wrong = int(np.count_nonzero(found != written(case.method, start, count)))
        if wrong:
            raise ProbeFault(f"{case.name}: {wrong} of {count} words from {start} on are wrong")


def written(method: str, start: int, count: int) -> Words:
    """Words [start, start + count) of what a write must leave. `start` and `count` are multiples of 4."""
    if method == MEMSET:
        return np.full(count, int.from_bytes(bytes([_BYTE]) * 4, "little"), np.uint32)
    item = np.arange(start // 4, (start + count) // 4, dtype=np.uint64)
    x = ((item * np.uint64(2654435761) + np.uint64(_SEED)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return np.stack([x, x ^ np.uint32(0x55AA1234), ~x, x >> np.uint32(3)], axis=1).ravel()


def memory_rates(cases: Sequence[MemoryCase], found: Mapping[str, list[float]]) -> tuple[MemoryRate, ...]:
    return tuple(
        MemoryRate(
            operation=case.kind,
            method=case.method,
            bytes=case.bytes,
            moved_bytes=case.moved_bytes,
            sets=case.sets,
            time=fit.times(found[case.name]),
            rate=fit.rates(case.moved_bytes, found[case.name]),
        )
        for case in cases
    )


def memory_models(rates: Sequence[MemoryRate]) -> tuple[MemoryModel, ...]:
    """A line for every operation and method that has one."""
    lines = {
        key: [(rate.moved_bytes, rate.time.median_us) for rate in rates if (rate.operation, rate.method) == key]
        for key in dict.fromkeys((rate.operation, rate.method) for rate in rates)
    }
    found = (fit.memory_model(kind, method, points) for (kind, method), points in lines.items())
    return tuple(model for model in found if model is not None)
