"""A second clock around a block: what its samples may add up to, whatever happened to the clocks inside."""

from time import monotonic_ns, thread_time_ns

from mkframe.model.outcome import Rejected
from mkframe.timing.sampler import Allowance, Block

DRIFT = 0.01
SLACK_MS = 1.0


class LoopClock:
    """Started when it is made, right before a block."""

    def __init__(self) -> None:
        self._cpu_ns = thread_time_ns()
        self._wall_ns = monotonic_ns()

    def check(self, block: Block, allowance: Allowance) -> None:
        """Right after the block. Raises Rejected for samples that add up to more than the wall clock, or to less than the CPU
        time that this thread has spent in them."""
        wall_ms = (monotonic_ns() - self._wall_ns) / 1e6
        cpu_ms = (thread_time_ns() - self._cpu_ns) / 1e6
        reason = contradiction(block, allowance, wall_ms, cpu_ms)
        if reason is not None:
            raise Rejected(f"loop clock: {reason}; a timer does not tell the time")


def contradiction(block: Block, allowance: Allowance, wall_ms: float, cpu_ms: float) -> str | None:
    """What does not fit, or None. The intervals of a block follow one another inside of `wall_ms`. All but `outside_ms` a sample of
    `cpu_ms` was spent inside of them; wall time would be no lower bound, because a machine may pause a thread between two samples."""
    most_ms = wall_ms * (1 + DRIFT) + SLACK_MS
    inside_ms = cpu_ms * (1 - DRIFT) - block.host_ms.size * allowance.outside_ms - SLACK_MS
    for clock, total_ms, bounded in (
        ("host", block.host_total_ms, True),
        ("stream", block.stream_total_ms, allowance.stream_on_host),
    ):
        if not 0 <= total_ms <= most_ms:
            return f"the {clock} times of a block add up to {total_ms:.3f} ms, and the block took {wall_ms:.3f} ms"
        if bounded and total_ms < inside_ms:
            return f"the {clock} times of a block add up to {total_ms:.3f} ms, and it took {cpu_ms:.3f} ms of CPU time"
    return None
