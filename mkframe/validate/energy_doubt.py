"""Doubt: figures that follow from the reads, and say little or nothing of the kernel."""

from collections.abc import Iterator

from mkframe.energy_budget import EnergyVerdict, mean
from mkframe.validate.energy_figures import EnergyFigures, in_words, with_uncertainty
from mkframe.validate.energy_parts import has_rounds, maybe
from mkframe.validate.energy_summary import median
from mkframe.validate.energy_view import EnergyReport, view_rule
from mkframe.validate.finding import Finding, Severity, warning

_PLACE = ("rounds",)
_SMALL = 0.02
_W = Severity.WARNING


def granularity(report: EnergyReport) -> Iterator[Finding]:
    """|adjusted| below B_q: the steps of the counter alone can make such a figure."""
    found = report.figures
    if found is None:
        return
    for path, run, bound in zip(found.paths, found.runs, found.budget.bounds_mj, strict=False):
        if abs(run.net_mj) < bound:
            why = (
                f"adjusted_mj is {run.net_mj:.3g}, below the {bound:.3g} mJ that the steps of the counter alone can make "
                f"(B_q, with {meter_in_words(found)})"
            )
            yield warning("granularity", why, (*path, "adjusted_mj"))


def meter_in_words(found: EnergyFigures) -> str:
    """Which steps the counter makes, and how that is known."""
    if found.meter is None:
        return "an unknown update period"
    if found.meter.on_edges:
        return f"edges known to {found.meter.step_s * 1000:.3g} ms"
    if found.periods is None:
        return f"the stated update period of {found.meter.step_s * 1000:.4g} ms"
    return f"an update period of {found.meter.step_s * 1000:.4g} ms, inferred: {in_words(found.periods)} fit"


def net_power(report: EnergyReport) -> Iterator[Finding]:
    """A net power that is a small part of idle rests on an idle power that is known as well as that."""
    found = report.figures
    if found is None:
        return
    shares = [net / idle for net, idle in zip(found.net_w, found.idle_w, strict=True) if idle > 0]
    if shares and median(shares) < _SMALL:
        net, idle = median(found.net_w), median(found.idle_w)
        share = f"{100 * median(shares):.4g} %"
        why = f"median net power is {net:.3g} W over {idle:.4g} W idle, {share} of it; below 2 % the idle power decides the result"
        yield warning("net-power", why, _PLACE)


def sham(report: EnergyReport) -> Iterator[Finding]:
    """An idle run treated like a measured one shows what the method makes of nothing."""
    if has_rounds(report.document) and maybe(report.document, "mkframe", "energy", "sham_mj") is None:
        yield warning("no-sham", "no idle-only run was measured with the same method: what it makes of nothing is unknown", _PLACE)


def reference(report: EnergyReport) -> Iterator[Finding]:
    """A load of known energy shows that the meter sees one."""
    if has_rounds(report.document) and maybe(report.document, "mkframe", "energy", "reference") is None:
        yield warning("no-reference", "no reference load was measured: whether the meter sees a known energy is unknown", _PLACE)


def idle_drift(report: EnergyReport) -> Iterator[Finding]:
    """Idle windows of one round that differ by more than their own steps: 2 P T / I. A T that could not be inferred, as where the idle
    power moves, is taken for the longest that would have been."""
    found = report.figures
    if found is None:
        return
    for path, run in zip(found.paths, found.runs, strict=True):
        limit = 2 * run.power_w * found.period_s / run.idle_s
        if run.idle_difference_w > limit:
            why = (
                f"the idle windows differ by {run.idle_difference_w:.3g} W, more than the {limit:.3g} W that the steps of the counter "
                "can make: the idle power moved"
            )
            yield warning("idle-drift", why, path)


def net_energy(report: EnergyReport) -> Iterator[Finding]:
    """Net energy with its uncertainty, from the mean of the rounds."""
    found = report.figures
    if found is None:
        return
    total = found.budget
    said = f"net energy {with_uncertainty(total.net_mj, total.u_mj)} (mean of {len(found.runs)} rounds, 95 %), {found.verdict}"
    if total.bounds_mj:
        said += f"; {found.below_bound} of {len(found.runs)} rounds are below the bound of {mean(total.bounds_mj):.3g} mJ"
    if found.verdict is EnergyVerdict.UNVERIFIED:
        said += "; nothing in the file shows that the meter sees a load of this size"
    said += f"; with {meter_in_words(found)}"
    yield Finding(severity=Severity.INFORMATION, rule="net-energy", pointer="/rounds", message=said)


DOUBT_RULES = (
    view_rule("granularity", granularity, "a net energy that the steps of the counter alone can make", _W),
    view_rule("net-power", net_power, "a median net power below 2 % of the idle power", _W),
    view_rule("no-sham", sham, "no idle-only run that shows what the method makes of nothing", _W),
    view_rule("no-reference", reference, "no reference load that shows that the meter sees one", _W),
    view_rule("idle-drift", idle_drift, "idle windows that differ by more than the steps of the counter can make", _W),
    view_rule("net-energy", net_energy, "net energy with its uncertainty, and what may be said of it", Severity.INFORMATION),
)
