"""Cases in rounds: each case once per round, in an order that rotates, with the clock read around every round."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mkframe.model.device import ClockReading
from mkframe.probe import fit
from mkframe.probe.gpu import Gpu, Operation, ProbeFault

WORK_BEFORE_ROUND_S = 0.06


@dataclass(frozen=True, kw_only=True, slots=True)
class Slope:
    """A case: two chains that differ by `units` of what is timed. Names are unique."""

    name: str
    short: tuple[Operation, ...]
    long: tuple[Operation, ...]
    units: float
    replays: int
    captured: bool = True


@dataclass(frozen=True, slots=True)
class RoundClocks:
    """Readings before and after every round."""

    measured_mhz: list[float] = field(default_factory=list)
    nvml: list[ClockReading] = field(default_factory=list)

    def read(self, gpu: Gpu) -> None:
        self.measured_mhz.append(gpu.measured_mhz())
        self.nvml.append(gpu.reading())


def measure(gpu: Gpu, slopes: Sequence[Slope], rounds: int, clocks: RoundClocks) -> dict[str, list[float]]:
    """Microseconds per unit, by case name, one per round. One more round runs first and is not recorded.

    Raises ProbeFault for a case that takes no time: what it launches did not run, or the clock does not resolve it.
    """
    assert len({slope.name for slope in slopes}) == len(slopes), "names of cases are unique"
    chains = [(gpu.chain(slope.short, slope.captured), gpu.chain(slope.long, slope.captured)) for slope in slopes]
    found: dict[str, list[float]] = {slope.name: [] for slope in slopes}
    for round in range(-1, rounds):
        gpu.light_work(WORK_BEFORE_ROUND_S)
        clocks.read(gpu)
        first = max(round, 0) * len(slopes) // rounds
        for index in range(len(slopes)):
            at = (first + index) % len(slopes)
            value = fit.slope_us(*gpu.pair_us(*chains[at], slopes[at].replays), slopes[at].units)
            if round >= 0:
                found[slopes[at].name].append(value)
        clocks.read(gpu)
    for name, values in found.items():
        if fit.times(values).median_us <= 0:
            raise ProbeFault(f"{name}: more work took no more time ({fit.times(values).median_us:g} us a unit)")
    return found
