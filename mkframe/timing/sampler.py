"""What every timing protocol offers to the worker."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mkframe.stats import Samples

Call = Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The samples of one engine in one round: `stream_ms` and `host_ms`, shape (samples,), in milliseconds.

    `late` counts held samples whose launch was still being enqueued when the GPU reached it; they are kept.
    """

    stream_ms: Samples
    host_ms: Samples
    late: int | None = None


class Sampler(Protocol):
    """A timing protocol on one device."""

    def warm_up(self, call: Call, count: int) -> None:
        """Runs `call` untimed, `count` times, and waits for it. A protocol may learn from it how long a launch takes."""

    def sample(self, call: Call, count: int) -> Block:
        """`count` timed samples of `call`."""

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        """What the clocks read around nothing, and around next to nothing: (name, "stream" or "host") -> samples in ms."""

    def step_ms(self) -> float | None:
        """The step of the stream clock, where it can be told without samples of an engine."""
