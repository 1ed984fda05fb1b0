"""Which rounds cannot be trusted: the device was throttled, shared, or slower than it had been."""

from collections.abc import Iterable

from mkframe.model.device import ClockReading
from mkframe.model.report import RoundRecord

RoundKey = tuple[str, int, int]
"""(shape set, index of the case in it, round)."""

POWER_CAP = 0x4
THROTTLES = {0x8: "hardware slowdown", 0x20: "thermal slowdown by software", 0x40: "thermal slowdown by hardware", 0x80: "power brake"}
"""NVML's reasons (nvmlClocksEventReasons) that void a round. The software power cap alone does not: large products meet it always."""
LOWEST_CLOCK = 0.95
"""A round whose SM clock is below this share of the highest one seen in the run is not like the others."""


def unstable_rounds(rounds: Iterable[RoundRecord]) -> dict[RoundKey, str]:
    """Round -> why it cannot be trusted. A round that was measured in two parts counts as bad if one part is."""
    every = list(rounds)
    highest = max((clock for r in every for clock in (r.before.sm_clock_mhz, r.after.sm_clock_mhz) if clock is not None), default=0.0)
    found: dict[RoundKey, str] = {}
    for item in every:
        reasons = list(dict.fromkeys([*_reasons(item.before, highest), *_reasons(item.after, highest)]))
        if reasons:
            found[item.set, item.case, item.round] = f"round {item.round}: {', '.join(reasons)}"
    return found


def _reasons(reading: ClockReading, highest_mhz: float) -> list[str]:
    bits = reading.throttle_reasons or 0
    reasons = [text for bit, text in THROTTLES.items() if bits & bit]
    on_gpu = reading.memory_clock_mhz is not None  # a CPU's clock is its own affair
    clock = reading.sm_clock_mhz
    if on_gpu and clock is not None and clock < LOWEST_CLOCK * highest_mhz and not bits & POWER_CAP:
        reasons.append(f"SM clock {clock:.0f} of {highest_mhz:.0f} MHz")
    if reading.other_processes:
        reasons.append(f"{reading.other_processes} other processes on the GPU")
    return reasons
