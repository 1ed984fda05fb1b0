"""A second clock around a block: what its samples may add up to, whatever happened to the clocks inside."""

from time import monotonic_ns, thread_time_ns

from mkframe.model.outcome import Rejected
from mkframe.timing.sampler import Block

DRIFT = 0.01
SLACK_MS = 1.0
OUTSIDE_MS = 0.2
"""CPU time that the loop itself may take for one sample: a delay kernel and an eviction enqueued, clocks read."""


class LoopClock:
    """Started when it is made, right before a block."""

    def __init__(self) -> None:
        self._cpu_ns = thread_time_ns()
        self._wall_ns = monotonic_ns()

    def check(self, block: Block) -> None:
        """Right after the block. Raises Rejected for samples that add up to more than the wall clock, or to less than the CPU
        time that this thread has spent in them."""
        wall_ms = (monotonic_ns() - self._wall_ns) / 1e6
        cpu_ms = (thread_time_ns() - self._cpu_ns) / 1e6
        reason = contradiction(block, wall_ms, cpu_ms)
        if reason is not None:
            raise Rejected(f"loop clock: {reason}; a timer does not tell the time")


def contradiction(block: Block, wall_ms: float, cpu_ms: float) -> str | None:
    """What does not fit, or None. The intervals of a block follow one another inside of `wall_ms`. All but OUTSIDE_MS a sample of
    `cpu_ms` was spent inside of them; wall time would be no lower bound, because a machine may pause a thread between two samples."""
    most_ms = wall_ms * (1 + DRIFT) + SLACK_MS
    for clock, total_ms in (("host", block.host_total_ms), ("stream", block.stream_total_ms)):
        if not 0 <= total_ms <= most_ms:
            return f"the {clock} times of a block add up to {total_ms:.3f} ms, and the block took {wall_ms:.3f} ms"
    inside_ms = cpu_ms * (1 - DRIFT) - block.host_ms.size * OUTSIDE_MS - SLACK_MS
    if block.host_total_ms < inside_ms:
        return f"the host times of a block add up to {block.host_total_ms:.3f} ms, and it took {cpu_ms:.3f} ms of CPU time"
    return None
