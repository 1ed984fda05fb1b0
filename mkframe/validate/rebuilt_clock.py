"""Whether the clock of a protocol gives such samples. A sample that is one call, or several divided by their number, is a reading:

- The host's clock counts whole nanoseconds, and so does the stream's on a CPU: an integer over 1e6.
- CUDA tells the time between two events as a float32 in milliseconds.
- No noise repeats a whole round: two rounds of a cell are never the same numbers in the same order. A clock may be coarse and a round
  short, so that only rows with at least DISTINCT different values are held to it.

A slope is a difference of two readings that are not kept, so that any float64 may be one.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mkframe.stats import Samples
from mkframe.validate.finding import Finding, error, shown

if TYPE_CHECKING:
    from mkframe.validate.rebuild import Sampled

CLOCK = "samples-clock"
DISTINCT = 16
_MOST_NANOSECONDS = 2.0**49  # six days; far beyond, rounding of the product reaches half a nanosecond


def clock(document: dict[str, Any], sampled: "Iterable[Sampled]") -> Iterator[Finding]:
    """Reports before schema 1.2 are asked nothing: runners before it are not at hand."""
    calls, cuda = calls_per_reading(document["mkframe"]["config"]), document["mkframe"]["device"]["kind"] == "cuda"
    for one in sampled:
        if not one.cell.since_1_2:
            continue
        if calls is not None:
            yield from _readings(one, "host", one.host_ms, whole_nanoseconds(one.host_ms, calls), calls)
            reads = single_precision if cuda else whole_nanoseconds
            yield from _readings(one, "stream", one.stream.stream_ms, reads(one.stream.stream_ms, calls), calls)
        if (pair := repeated(one.host_ms)) is not None:
            first, second = (one.stream.rounds[row] for row in pair)
            why = f"rounds {first} and {second} have the same {one.host_ms.shape[1]} host times in the same order"
            yield error(CLOCK, f"{one.cell.text}: {why}", one.cell.path)


def calls_per_reading(config: dict[str, Any]) -> int | None:
    """How many calls one reading is divided by; None where a sample is a slope, or the configuration does not say."""
    timing = config.get("timing")
    if not isinstance(timing, dict):
        return None
    protocol, replays = timing.get("protocol"), timing.get("replays")
    if protocol == "replay":
        return int(replays) if isinstance(replays, int | float) and replays >= 1 and float(replays).is_integer() else None
    return 1 if protocol == "per_call" or (protocol == "cold" and timing.get("method") == "evict") else None


def whole_nanoseconds(samples: Samples, calls: int) -> NDArray[np.bool_]:
    """Which samples are a whole number of nanoseconds over 1e6, and over `calls`, as float64 divides."""
    nanoseconds = np.rint(samples * calls * 1e6)
    found: NDArray[np.bool_] = (nanoseconds / 1e6 / calls == samples) | (nanoseconds >= _MOST_NANOSECONDS)
    return found


def single_precision(samples: Samples, calls: int) -> NDArray[np.bool_]:
    """Which samples are a float32 over `calls`, as float64 divides."""
    found: NDArray[np.bool_] = (samples * calls).astype(np.float32).astype(np.float64) / calls == samples
    return found


def repeated(samples: Samples) -> tuple[int, int] | None:
    """Two rows that are the same in every value, and have enough different ones; None where there are none."""
    seen: dict[bytes, int] = {}
    for row, values in enumerate(samples):
        first = seen.setdefault(values.tobytes(), row)
        if first != row and np.unique(values).size >= DISTINCT:
            return first, row
    return None


def _readings(one: "Sampled", name: str, samples: Samples, read: NDArray[np.bool_], calls: int) -> Iterator[Finding]:
    strange = ~read | np.signbit(samples)
    if strange.any():
        row, column = (int(index[0]) for index in np.nonzero(strange))
        place = f"in round {one.stream.rounds[row]}, sample {column} ({shown(float(samples[row, column]))} ms)"
        many = "" if calls == 1 else f" of {calls} calls"
        why = f"{int(strange.sum())} {name} times are no reading{many} of its clock, first {place}"
        yield error(CLOCK, f"{one.cell.text}: {why}", one.cell.path)
