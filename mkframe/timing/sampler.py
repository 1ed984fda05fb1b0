"""What every timing protocol offers to the worker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mkframe.stats import Samples

Call = Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One cell, as a protocol sees it.

    `run` is one call (for a graph form: one replay). `chain(k)` captures k calls in a row, rotating over `sets` sets of
    buffers, and returns the replay; None where the protocol needs no chain. `twin(k)` returns the replay of the launch twin
    of that chain, or of one call where there is no chain; None for what is no graph.
    """

    run: Call
    chain: Callable[[int], Call] | None = None
    sets: int = 1
    twin: Callable[[int], Call] | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """One reading, in ms. `late`: the GPU reached it before the host had enqueued all of it (held intervals only)."""

    stream_ms: float
    host_ms: float
    late: bool = False


class Reading(Protocol):
    """One interval in milliseconds, as Interval."""

    @property
    def stream_ms(self) -> float: ...

    @property
    def host_ms(self) -> float: ...

    @property
    def late(self) -> bool: ...


class Readable(Protocol):
    """A call that can be timed, as mkframe.timing.events.Held."""

    def warm_up(self, count: int) -> None: ...

    def read(self) -> Reading: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The samples of one engine in one round: `stream_ms` and `host_ms`, shape (samples,), in milliseconds.

    `late` counts held samples whose launch was still being enqueued when the GPU reached it; they are kept.
    `stream_total_ms` and `host_total_ms` are the sums of everything that was read for these samples: intervals that do not overlap.
    """

    stream_ms: Samples
    host_ms: Samples
    stream_total_ms: float
    host_total_ms: float
    late: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowance:
    """How the loop of a sampler spends CPU time. `outside_ms`: what it may take itself for one sample, outside of the host times;
    `stream_on_host`: its stream clock is one of the host, around the calls themselves, so that CPU time bounds that one as well."""

    outside_ms: float
    stream_on_host: bool


class Timed(Protocol):
    """A cell that is ready to be timed. `facts` is what the protocol settled on for it (numbers of calls, say)."""

    @property
    def facts(self) -> Mapping[str, float]: ...

    def warm_up(self, count: int) -> None:
        """Runs what a sample runs, untimed, `count` times, and waits for it."""

    def sample(self, count: int) -> Block:
        """`count` timed samples."""


class Sampler(Protocol):
    """A timing protocol on one device."""

    @property
    def allowance(self) -> Allowance: ...

    def open(self, subject: Subject) -> Timed:
        """Captures and calibrates what the protocol needs for one cell."""

    def open_twin(self, subject: Subject, timed: Timed) -> Timed | None:
        """The launch twin of an opened cell under the same protocol, with chains of the same lengths. None for what is no graph."""

    def reading(self, call: Call, before: Call) -> Readable:
        """One call at a time, whatever the protocol is; `before` runs ahead of each, outside of the interval."""

    def floors(self, count: int) -> dict[tuple[str, str], Samples]:
        """What the clocks read around nothing, and around next to nothing: (name, "stream" or "host") -> samples in ms."""

    def step_ms(self) -> float | None:
        """The step of the stream clock, where it can be told without samples of an engine."""
