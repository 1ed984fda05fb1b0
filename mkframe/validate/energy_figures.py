"""What a report's rounds say of the energy of one call, with its error budget: rebuilt from the file alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from mkframe.energy_budget import Budget, EnergyVerdict, Meter, Run, budget, mean, verdict
from mkframe.validate.energy_counter import reads
from mkframe.validate.energy_parts import (
    EDGE_ALIGNED,
    IDLES,
    Absent,
    Node,
    Path,
    Round,
    at,
    idle_window,
    maybe,
    number,
    protocol,
    rounds,
    text,
)
from mkframe.validate.energy_period import LONGEST_S, Periods, update_periods

_OTHER_METERS = ("none", "nvml_power", "rapl")
REFERENCE_PASSED = ("passed", "unchecked")
"""Words of mkframe.energy.reference for a reference load that is no fault; unchecked: no stored figure to hold it against."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyFigures:
    """`periods` is None where the update period did not have to be inferred, or could not be; `meter` None where the steps of the counter
    are unknown. `period_s`: the update period, the longest that would be inferred where it is unknown. `idle_w`, `net_w`: mean idle power
    and net power of each round. `meter_fault`: the report says that there was one.
    """

    paths: tuple[Path, ...]
    runs: tuple[Run, ...]
    idle_w: tuple[float, ...]
    net_w: tuple[float, ...]
    periods: Periods | None
    meter: Meter | None
    budget: Budget
    period_s: float
    sham_mj: float | None
    reference: str | None
    meter_fault: bool

    @property
    def verdict(self) -> EnergyVerdict:
        """What may be said, by docs/energy-report.md."""
        passed = None if self.reference is None else self.reference in REFERENCE_PASSED
        return verdict(self.budget.net_mj, self.budget.u_mj, self.sham_mj, reference_passed=passed, meter_fault=self.meter_fault)

    @property
    def below_bound(self) -> int:
        """Rounds whose net energy the steps of the counter alone could have made."""
        return sum(abs(run.net_mj) < bound for run, bound in zip(self.runs, self.budget.bounds_mj, strict=False))


def energy_figures(document: Node) -> EnergyFigures | None:
    """None where there is no round, a round is not what it must be, or figures leave float64."""
    try:
        measured = list(rounds(document))
        runs = tuple(map(_run, measured))
        if not runs:
            return None
        idle_w, average_w = _idle_w(measured), [float(one.number("average_power_w")) for one in measured]
        meter, periods = _meter(document)
        return EnergyFigures(
            paths=tuple(one.path for one in measured),
            runs=runs,
            idle_w=idle_w,
            net_w=tuple(power - idle for power, idle in zip(average_w, idle_w, strict=True)),
            periods=periods,
            meter=meter,
            budget=budget(runs, meter),
            period_s=_period_s(document, meter),
            sham_mj=_sham(document),
            reference=_reference(document),
            meter_fault=maybe(document, "mkframe", "energy", "verdict") == EnergyVerdict.METER_FAULT,
        )
    except (Absent, ArithmeticError, ValueError):
        return None


def _idle_w(measured: Sequence[Round]) -> tuple[float, ...]:
    return tuple(mean([float(one.number(name, "power_w")) for name in IDLES]) for one in measured)


def _run(one: Round) -> Run:
    before, after = (float(one.number(name, "power_w")) for name in IDLES)
    idle_s = mean([float(one.seconds(*idle_window(name))) for name in IDLES])
    run_s = float(one.run_s)
    if idle_s <= 0 or run_s < 0:
        raise Absent
    return Run(
        repeats=one.repeats,
        run_s=run_s,
        idle_s=idle_s,
        power_w=mean([before, float(one.number("average_power_w")), after]),
        idle_difference_w=abs(before - after),
        net_mj=float(one.number("adjusted_mj")),
    )


def _meter(document: Node) -> tuple[Meter | None, Periods | None]:
    name = protocol(document)
    if name == EDGE_ALIGNED:
        bracket = max((float(read.duration_s) for read in reads(document)), default=0.0)
        return (Meter(step_s=bracket, on_edges=True) if bracket > 0 else None), None
    if name in _OTHER_METERS:
        return None, None
    stated = stated_period_s(document)
    if stated is not None:
        return Meter(step_s=stated), None
    periods = update_periods(document)
    return (Meter(step_s=periods.middle_s) if periods else None), periods


def _period_s(document: Node, meter: Meter | None) -> float:
    if meter is not None and not meter.on_edges:
        return meter.step_s
    return stated_period_s(document) or LONGEST_S


def stated_period_s(document: Node) -> float | None:
    """The update period that the meter was found to have, in s, if the report says it."""
    try:
        return float(number(document, "mkframe", "energy", "update_period_s"))
    except Absent:
        return None


def _sham(document: Node) -> float | None:
    try:
        return float(number(document, "mkframe", "energy", "sham_mj"))
    except Absent:
        return None


def _reference(document: Node) -> str | None:
    try:
        return text(at(document, "mkframe", "energy"), "reference")
    except Absent:
        return None


def with_uncertainty(net_mj: float, u_mj: float | None) -> str:
    """`0.011 +- 0.006 mJ`: the uncertainty with one significant digit, the figure to the same place."""
    if u_mj is None or not u_mj > 0:
        return f"{net_mj:.3g} mJ, uncertainty unknown"
    exponent = int(f"{u_mj:.0e}".partition("e")[2])
    if exponent > 5 or exponent < -12:
        return f"{net_mj:.3g} +- {u_mj:.0e} mJ"
    digits = max(-exponent, 0)
    return f"{net_mj:.{digits}f} +- {round(u_mj, -exponent):.{digits}f} mJ"


def in_words(periods: Periods) -> str:
    """The ranges that fit, as people write them; at most five."""
    said = [f"{first:g} to {last:g} ms" if first != last else f"{first:g} ms" for first, last in periods.ranges_ms]
    return ", ".join(said[:5]) + (f" and {len(said) - 5} more" if len(said) > 5 else "")
