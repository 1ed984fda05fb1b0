"""L2 to the SMs: slices of their own, or all the same data in step (requests for one line are merged on the way)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mkframe.model.device_card import CacheRate, Pattern
from mkframe.probe import fit
from mkframe.probe.gpu import U32, U64, Gpu, GpuFacts, Launch, Slice
from mkframe.probe.memory_cases import TILE, check_sum, ring
from mkframe.probe.rounds import Slope

_SHARE = 0.6  # of L2: the footprint must stay there whole
_SPREAD = 4  # between the two footprints
_STAGES = {Pattern.DISTINCT: 4, Pattern.SAME: 12}
_PASSES = {Pattern.DISTINCT: (20, 120), Pattern.SAME: (1, 3)}
_REPLAYS = 3
_UNROLLED = 4  # stream.cu: read_l2
BULK, LOADS = "bulk copies to shared memory", "16-byte loads"


@dataclass(frozen=True, kw_only=True, slots=True)
class L2Case:
    """All SMs read `bytes`, each its own slice or each everything."""

    pattern: Pattern
    method: str
    bytes: int
    units: int

    @property
    def name(self) -> str:
        return f"L2 {self.pattern} {self.bytes} bytes, {self.method}"

    @property
    def moved_bytes(self) -> int:
        return self.bytes * (self.units if self.pattern is Pattern.SAME else 1)

    def launch(self, facts: GpuFacts, passes: int, check: bool = False) -> Launch:
        same = self.pattern is Pattern.SAME
        if self.method == BULK:
            return ring(facts, Slice("source"), self.bytes, _STAGES[self.pattern], same=same, passes=passes, check=check)
        slab_items = self.bytes // 16 // self.units
        arguments = (Slice("source"), U64(self.bytes // 16), U32(int(same)), U32(passes), U32(int(check)), Slice("sum"))
        return Launch(kernel="read_l2", grid=self.units, block=min(1024, slab_items // _UNROLLED), arguments=arguments)

    def slope(self, facts: GpuFacts) -> Slope:
        """One launch that makes few passes, and one that makes more: the first pass, from DRAM, is in both."""
        few, more = _PASSES[self.pattern]
        return Slope(
            name=self.name,
            short=(self.launch(facts, few),),
            long=(self.launch(facts, more),),
            units=more - few,
            replays=_REPLAYS,
        )


def l2_cases(gpu: Gpu) -> tuple[L2Case, ...]:
    return tuple(_cases(gpu.facts))


def footprints(facts: GpuFacts) -> tuple[int, ...]:
    """Whole tiles for every SM, a power of two each: as much as 0.6 of L2 holds, and a quarter of that. None where L2 is too small."""
    tiles = int(facts.l2_bytes * _SHARE) // (facts.multiprocessors * TILE)
    most = 2 ** (tiles.bit_length() - 1) if tiles else 0
    return tuple(count * facts.multiprocessors * TILE for count in (most // _SPREAD, most) if count)


def _cases(facts: GpuFacts) -> Iterator[L2Case]:
    for bytes in footprints(facts):
        for pattern in Pattern:
            if facts.clusters:
                yield L2Case(pattern=pattern, method=BULK, bytes=bytes, units=facts.multiprocessors)
            yield L2Case(pattern=pattern, method=LOADS, bytes=bytes, units=facts.multiprocessors)


def check_l2(gpu: Gpu, cases: Sequence[L2Case]) -> None:
    """Sums what all SMs read in two passes. Raises ProbeFault."""
    for case in cases:
        chain = gpu.chain((case.launch(gpu.facts, passes=2, check=True),))
        gpu.fill("sum", 0)
        gpu.run(chain)
        once = gpu.sum_words(Slice("source"), case.bytes // 4)
        readers = case.units if case.pattern is Pattern.SAME else 1
        check_sum(gpu, case.name, 2 * readers * once, bits=64 if case.method == BULK else 32)


def l2_rates(cases: Sequence[L2Case], found: Mapping[str, list[float]]) -> tuple[CacheRate, ...]:
    return tuple(
        CacheRate(
            pattern=case.pattern,
            method=case.method,
            bytes=case.bytes,
            moved_bytes=case.moved_bytes,
            time=fit.times(found[case.name]),
            rate=fit.rates(case.moved_bytes, found[case.name]),
        )
        for case in cases
    )
