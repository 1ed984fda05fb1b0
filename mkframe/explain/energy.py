"""The page of an energy report. Energy with its uncertainty and verdict is rebuilt from the reads, never quoted."""

from typing import Any

from mkframe.energy_budget import EnergyVerdict
from mkframe.explain.page import figure, length, many, said, words
from mkframe.validate.energy_doubt import meter_in_words
from mkframe.validate.energy_figures import EnergyFigures, energy_figures, with_uncertainty
from mkframe.validate.energy_parts import has_rounds, maybe, objects, protocol
from mkframe.validate.energy_summary import median

Document = dict[str, Any]

_MEANS = {
    EnergyVerdict.RESOLVED: "resolved: above its uncertainty and three times what an idle run gives, and the meter saw its reference",
    EnergyVerdict.BELOW_RESOLUTION: "below resolution: it cannot be told from nothing",
    EnergyVerdict.UNVERIFIED: "unverified: nothing shows what the method makes of an idle run, or that the meter sees a known load",
    EnergyVerdict.METER_FAULT: "a fault of the meter: its reference load did not read as it must",
}


def measured(document: Document) -> list[str]:
    """Device, what ran, and whether energy was measured at all."""
    return said(_device(document), _draws(document), _kernel(document), _scope(document), _verify_only(document))


def _device(document: Document) -> str | None:
    name, dates = words(document, "hardware", "name"), [words(document, key) for key in ("verified_at_utc", "completed_at_utc")]
    if name is None:
        return None
    on = ", ".join(f"{what} {date}" for what, date in zip(("verified", "completed"), dates, strict=True) if date)
    return f"Device: {name}" + (f"; {on}" if on else "")


def _draws(document: Document) -> str | None:
    count = length(document, "provenance", "payload_manifest", "draws")
    seed = maybe(document, "provenance", "benchmark_dataset_seed")
    if count is None:
        return None
    return f"Data: {many(count, 'draw')}" + (
        f"; the one with seed {seed} was measured" if isinstance(seed, int) and has_rounds(document) else ""
    )


def _kernel(document: Document) -> str | None:
    launches, mode = figure(document, "kernel", "launches"), words(document, "kernel", "mode")
    if launches is None and mode is None:
        return None
    return "One call: " + " ".join(
        said(None if launches is None else many(int(launches), "kernel"), None if mode is None else f"(mode {mode})")
    )


def _scope(document: Document) -> str | None:
    scope = words(document, "scope")
    return None if scope is None else f'The report says: "{scope}"'


def _verify_only(document: Document) -> str | None:
    return None if has_rounds(document) else "Results were checked; neither time nor energy was measured."


def how(document: Document) -> list[str]:
    """Checks, rounds, windows and the meter."""
    found = energy_figures(document)
    return said(_checks(document), *(_rounds(document, found) if found else []))


def _checks(document: Document) -> str | None:
    poisoned = [maybe(draw, "scratch_poisoned_before_eager_and_each_replay") for _, draw in objects(document, "validation", "draws")]
    if not poisoned:
        return None
    return "Checked before: every draw against frozen predictions" + (
        ", on poisoned scratch" if all(one is True for one in poisoned) else "; scratch was not poisoned everywhere"
    )


def _rounds(document: Document, found: EnergyFigures) -> list[str]:
    first, repeats = found.runs[0], sorted({run.repeats for run in found.runs})
    calls = f"{repeats[0]:,}" if len(repeats) == 1 else f"{repeats[0]:,} to {repeats[-1]:,}"
    name = protocol(document) or "paired idle windows, as far as the reads tell"
    plan = f"{many(len(found.runs), 'round')} of {calls} calls ({first.run_s:.3g} s) between idle windows of {first.idle_s:.3g} s"
    return [
        f"Protocol: {name}; {plan}",
        f"Meter: {meter_in_words(found)}; one step is {first.power_w * found.meter.step_s:.3g} J"
        if found.meter
        else "Meter: how finely it tells time is unknown, so the uncertainty holds the spread of the rounds alone",
    ]


def follows(document: Document) -> list[str]:
    """Right results, time, gross and net energy."""
    found = energy_figures(document)
    return said(_results(document), *(_energy(document, found) if found else []))


def _results(document: Document) -> str | None:
    passed, total = maybe(document, "validation", "passed"), figure(document, "validation", "total")
    agree, violations = (figure(document, "validation", key) for key in ("gpu_agrees_with_frozen_cpu_predictions", "violations"))
    if not isinstance(passed, bool):
        return None
    detail = ""
    if total is not None and agree is not None:
        detail = f": {agree:.0f} of {total:.0f} labels agree"
    elif violations is not None:
        detail = f": {many(int(violations), 'element')} beyond tolerance"
    return f"Results are {'right' if passed else 'WRONG, so no figure below is worth anything'}{detail}"


def _energy(document: Document, found: EnergyFigures) -> list[str]:
    budget = found.budget
    return said(
        _median_of(document, "wall_ms", "Time of a call on the host's clock: {:.4g} us (median)", 1e3),
        _median_of(document, "cuda_ms", "Time of a call on the device's clock: {:.4g} us (median)", 1e3),
        _median_of(document, "gross_mj", "Energy of a call, idle power included: {:.4g} mJ (median)", 1.0),
        f"Energy of a call above idle: {with_uncertainty(budget.net_mj, budget.u_mj)} (mean of the rounds, 95 %)",
        f"Verdict: {_MEANS[found.verdict]}",
    )


def _median_of(document: Document, name: str, sentence: str, scale: float) -> str | None:
    values = [value for _, one in objects(document, "rounds") if (value := figure(one, name)) is not None]
    return sentence.format(median(values) * scale) if values else None


def does_not_follow(document: Document) -> list[str]:
    """What the meter cannot tell, and what was not measured."""
    found = energy_figures(document)
    lines = said(*(_limits(document, found) if found else []), _interpretation(document))
    return [*lines, "Nothing is said of other boards of this model, other clocks or power limits, or other data."]


def _limits(document: Document, found: EnergyFigures) -> list[str | None]:
    return [_steps(found), _small(found), _sham(found), _reference(found), _stated(document, found)]


def _steps(found: EnergyFigures) -> str | None:
    bounds = found.budget.bounds_mj
    if not found.below_bound:
        return None
    return (
        f"Anything from a single round: in {found.below_bound} of {len(found.runs)} the energy above idle is below what the steps of the "
        f"counter alone can make ({min(bounds):.3g} to {max(bounds):.3g} mJ)"
    )


def _small(found: EnergyFigures) -> str | None:
    net, idle = median(found.net_w), median(found.idle_w)
    if idle <= 0 or net / idle >= 0.02:
        return None
    return (
        f"That the kernels take this energy: net power is {net:.3g} W over {idle:.3g} W idle, and an idle power that moves by as much "
        "under load would look the same"
    )


def _sham(found: EnergyFigures) -> str | None:
    return "What the method makes of nothing: no idle-only run was measured" if found.sham_mj is None else None


def _reference(found: EnergyFigures) -> str | None:
    return "That the meter sees a known energy: no reference load was measured" if found.reference is None else None


def _stated(document: Document, found: EnergyFigures) -> str | None:
    stated = figure(document, "summary", "adjusted_mj_median")
    if stated is None or len(found.runs) < 2:
        return None
    return f"The median of the summary, {stated:.3g} mJ, has no uncertainty of its own; the mean above is {found.budget.net_mj:.3g} mJ"


def _interpretation(document: Document) -> str | None:
    text = words(document, "summary", "energy_interpretation")
    return None if text is None else f'The report says: "{text}"'
