"""The page of a device card."""

from typing import Any

from mkframe.explain.page import figure, length, many, said, words
from mkframe.validate.energy_parts import maybe, objects

Document = dict[str, Any]


def measured(card: Document) -> list[str]:
    """Which device, with which driver, when."""
    name, driver, when = words(card, "device", "name"), words(card, "device", "driver"), words(card, "measured_at_utc")
    capability = words(card, "device", "compute_capability")
    facts = said(f"compute capability {capability}" if capability else None, f"driver {driver}" if driver else None, when)
    return said(f"Device: {name or 'unnamed'}" + (f" ({', '.join(facts)})" if facts else ""), _size(card))


def _size(card: Document) -> str | None:
    processors, l2 = figure(card, "device", "multiprocessors"), figure(card, "device", "l2_bytes")
    if processors is None or l2 is None:
        return None
    return f"{many(int(processors), 'multiprocessor')}, {l2 / 2**20:.4g} MiB of L2"


def how(card: Document) -> list[str]:
    """Rounds, checks before clocks, notes."""
    rounds, checks = figure(card, "protocol", "rounds"), length(card, "checks")
    notes = [words(card, "notes", index) for index in range(min(length(card, "notes") or 0, 10))]
    return said(
        None
        if rounds is None
        else f"Each figure is the median of {many(int(rounds), 'round')}; short times are slopes, so what is around them cancels",
        None if not checks else f"Checked before it was timed: {many(checks, 'kind')} of data",
        _clock(card),
        *notes,
    )


def _clock(card: Document) -> str | None:
    low, high = (figure(card, "clock", "round_measured", name) for name in ("min_mhz", "max_mhz"))
    return None if low is None or high is None else f"The clock ran at {low:.0f} to {high:.0f} MHz around the rounds"


def follows(card: Document) -> list[str]:
    """What the device reaches: memory, L2, launches, the step of its clock."""
    step = figure(card, "events", "step_us")
    return said(
        *_memory(card),
        _launch(card),
        None if step is None else f"Event times move in steps of {step:g} us: engines no further apart than that are not ranked",
    )


def _memory(card: Document) -> list[str]:
    best: dict[str, tuple[float, str]] = {}
    for _, entry in objects(card, "memory"):
        operation, method, rate = words(entry, "operation"), words(entry, "method"), figure(entry, "rate", "median_bytes_per_s")
        if operation and rate is not None and rate > best.get(operation, (0.0, ""))[0]:
            best[operation] = (rate, method or "")
    return [f"Memory, {operation}: {rate / 1e9:.4g} GB/s ({method})" for operation, (rate, method) in list(best.items())[:10]]


def _launch(card: Document) -> str | None:
    times = [time for _, floor in objects(card, "launches") if (time := figure(floor, "time", "median_us")) is not None]
    return f"The cheapest launch in a chain takes {min(times):.3g} us: no kernel is faster than that" if times else None


def does_not_follow(card: Document) -> list[str]:
    """What a card is no evidence of."""
    without = sum(maybe(floor, "time") is None for _, floor in objects(card, "launches"))
    return said(
        "What the datasheet promises: these are figures that simple kernels reached, not limits of the hardware.",
        f"Anything of {many(without, 'launch shape')} that did not fit" if without else None,
        "Nothing is said of other boards of this model, other drivers, or a device that others use at the same time.",
    )
