"""The timing protocols on a CUDA device."""

import torch

from mkframe.graph.capture import capture
from mkframe.model.plan import TimingPlan
from mkframe.stats import Samples
from mkframe.timing.events import EventClock, Held
from mkframe.timing.protocols import Divided, Slope, longer_chain
from mkframe.timing.sampler import Allowance, Call, Readable, Subject, Timed

_FLOOR_WARM_UPS = 20
_MOST_CALLS = 4000
_EVICTION_OF_L2 = 4


class CudaSampler:
    """Opens cells for one protocol. `l2_bytes` sizes what an eviction writes and reads."""

    allowance = Allowance(outside_ms=0.2, stream_on_host=False)  # a delay kernel and an eviction are enqueued, clocks read

    def __init__(self, stream: torch.cuda.Stream, plan: TimingPlan, l2_bytes: int) -> None:
        self._plan = plan
        self._clock = EventClock(stream, plan.hold)
        self._evict = _eviction(l2_bytes) if plan.evicts else None

    def open(self, subject: Subject) -> Timed:
        plan, hold = self._plan, self._clock.hold
        if plan.chained:
            assert subject.chain is not None, "the plan lets only graph forms into this protocol"
            short = Held(self._clock, subject.chain(plan.k1))
            k2 = longer_chain(short, plan.k1, subject.sets, plan.slope_us, _MOST_CALLS, plan.warmups)
            return Slope(short, Held(self._clock, subject.chain(k2)), plan.k1, k2, held=hold)
        return self._divided(subject.run)

    def open_twin(self, subject: Subject, timed: Timed) -> Timed | None:
        """Raises RuntimeError where the driver refuses to copy the graph."""
        plan, hold = self._plan, self._clock.hold
        if subject.twin is None:
            return None
        if plan.chained:
            k1, k2 = int(timed.facts["k1"]), int(timed.facts["k2"])
            return Slope(Held(self._clock, subject.twin(k1)), Held(self._clock, subject.twin(k2)), k1, k2, held=hold)
        return self._divided(subject.twin(1))

    def _divided(self, call: Call) -> Divided:
        if self._plan.replays > 1:
            return Divided(Held(self._clock, _repeated(call, self._plan.replays)), self._plan.replays, held=self._clock.hold)
        return Divided(Held(self._clock, call, self._evict), held=self._clock.hold)

    def reading(self, call: Call, before: Call) -> Readable:
        return Held(self._clock, call, before)

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        """The event pair around nothing, around an empty kernel, and around a graph of one; per empty kernel in a chain, by slope."""
        stream = self._clock.stream
        graph = capture(_empty_kernel, stream)
        found: dict[tuple[str, str], Samples] = {}

        def measure(name: str, timed: Timed) -> None:
            with torch.cuda.stream(stream):
                timed.warm_up(_FLOOR_WARM_UPS)
                block = timed.sample(count)
            found[name, "stream"], found[name, "host"] = block.stream_ms, block.host_ms

        for name, call in (("empty-pair", _nothing), ("empty-kernel", _empty_kernel), ("empty-kernel-graph", graph.replay)):
            measure(name, Divided(Held(self._clock, call), held=self._clock.hold))
        measure("empty-kernel-slope", self._empty_slope())
        return found

    def _empty_slope(self) -> Timed:
        k1, k2 = self._plan.k1, self._plan.k1 + 400
        chains = [capture(_repeated(_empty_kernel, k), self._clock.stream, read=False).replay for k in (k1, k2)]
        return Slope(Held(self._clock, chains[0]), Held(self._clock, chains[1]), k1, k2, held=self._clock.hold)

    def step_ms(self) -> float | None:
        """None: the step of events shows in the samples of a whole run (stats.event_step_ms)."""
        return None


def _repeated(call: Call, count: int) -> Call:
    def calls() -> None:
        for _ in range(count):
            call()

    return calls


def _eviction(l2_bytes: int) -> Call:
    """Writes a buffer of four L2 caches, then READS a clean one last: dirty lines would be written back inside the kernel."""
    elements = _EVICTION_OF_L2 * l2_bytes // 4
    written, clean, total = (torch.zeros(n, dtype=torch.float32, device="cuda") for n in (elements, elements, 1))

    def evict() -> None:
        written.fill_(1.0)
        torch.sum(clean, dim=0, keepdim=True, out=total)

    return evict


def _empty_kernel() -> None:
    torch.cuda._sleep(0)


def _nothing() -> None:
    return None
