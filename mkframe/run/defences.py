"""The defences around the timed loop, for the engines of one worker: lines 4, 7, 8 and 12 of "how benchmarks lie"."""

from collections.abc import Callable
from time import monotonic

from mkframe.check.case_data import CaseData
from mkframe.check.cell import BoundCell, Evidence
from mkframe.check.content import check_content
from mkframe.check.joined import check_idle, check_joined
from mkframe.check.process_state import NAME as STATE
from mkframe.check.process_state import ProcessState
from mkframe.check.threads import Threads
from mkframe.model.outcome import Rejected
from mkframe.originals import Originals, told_of
from mkframe.processes import children, descendants, end
from mkframe.run.worker_device import WorkerDevice
from mkframe.timing.bounds import LoopClock
from mkframe.timing.sampler import Block, Call, Readable

_BEAT_S = 1.0


class Defences:
    """`originals` were taken before any plugin was imported."""

    def __init__(self, device: WorkerDevice, originals: Originals) -> None:
        self._device = device
        self._originals = originals
        self._state = ProcessState()
        self._children: dict[int, str | None] = dict.fromkeys(children())

    def before_cell(self) -> None:
        """Before an engine is bound, and before each of its blocks: no line of L2 persists from the one before."""
        if self._device.carveout is not None:
            self._device.carveout.reset()

    def sampled(self, sample: Callable[[], Block]) -> Block:
        """A block of a cell that is warm, between a second clock and a count of threads. Raises Rejected."""
        threads, clock = Threads(), LoopClock()
        block = sample()
        clock.check(block, self._device.sampler.allowance)
        threads.check()
        return block

    def after_timing(self, bound: BoundCell, data: CaseData, evidence: Evidence, beat: Callable[[], None], streak: int) -> None:
        """On an engine that has been timed, `streak` calls in a row: it has had every chance to learn. `beat` shows a sign of life, once
        a second at most. Fresh inputs come first, on top of that streak.

        Raises Rejected, or CheckFailed for a wrong output.
        """
        device = self._device

        def reading(call: Call, before: Call) -> Readable:
            return device.sampler.reading(call, _beating(before, beat))

        check_content(bound, data, reading, device.hello.step_ms, evidence, streak)
        check_joined(bound, data, device.settle, evidence)
        if device.stream is not None:
            check_idle(bound.run, device.stream, evidence)

    def check_left(self, engine: str | None = None) -> None:
        """What an engine must leave as it found it, for the sake of all others. Puts it back, and raises Rejected. Processes that are
        new here are the engine's from now on.

        Raises something else where it cannot be put back.
        """
        for pid in children():
            self._children.setdefault(pid, engine)
        replaced = self._originals.restore()
        changed = self._state.restore()
        if self._device.carveout is not None:
            self._device.carveout.check()
        if replaced:
            raise Rejected(f"originals: {told_of(replaced)}")
        if changed:
            raise Rejected(f"{STATE}: {changed[0]}; an engine must put back what it changes")

    def owns_children(self, engine: str) -> bool:
        return engine in self._children.values() and bool(self._left_by(engine))

    def check_children(self, engine: str) -> None:
        """Once an engine is ready for the clock no process of it may run any more. Raises Rejected where one does, and ends it."""
        for pid in children():
            self._children.setdefault(pid, engine)
        if left := self._left_by(engine):
            end({pid for child in left for pid in (child, *descendants(child))})
            raise Rejected(
                f"children: the engine left {len(left)} process(es) running ({', '.join(sorted(left.values())[:3])}); "
                "end them in on_ready, or at the end of a call"
            )

    def _left_by(self, engine: str) -> dict[int, str]:
        return {pid: name for pid, name in children().items() if self._children.get(pid) == engine}

    def put_back(self, engine: str | None = None) -> bool:
        """After an engine has failed: whether everything is as the next one must find it. Its processes are ended."""
        try:
            self.check_left(engine)
            if engine is not None:
                self.check_children(engine)
        except Rejected:
            return True
        except Exception:
            return False
        return True


def _beating(before: Call, beat: Callable[[], None]) -> Call:
    last_s = monotonic()

    def both() -> None:
        nonlocal last_s
        if monotonic() - last_s > _BEAT_S:
            last_s = monotonic()
            beat()
        before()

    return both
