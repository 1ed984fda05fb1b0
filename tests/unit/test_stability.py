"""Rounds on a throttled, shared or slowed device are told, with the reason; others are left alone."""

from dataclasses import replace

import pytest

from mkframe.model.device import ClockReading
from mkframe.model.report import RoundRecord
from mkframe.stability import unstable_rounds
from mkframe.timing.clocks import others

GOOD = ClockReading(sm_clock_mhz=1980.0, memory_clock_mhz=3201.0, temperature_c=40.0, power_w=130.0, throttle_reasons=0, other_processes=0)


def rounds(*after: ClockReading) -> list[RoundRecord]:
    return [RoundRecord(set="s", case=0, process=0, round=index, before=GOOD, after=reading) for index, reading in enumerate(after)]


def test_quiet_rounds_are_fine() -> None:
    assert unstable_rounds(rounds(GOOD, replace(GOOD, sm_clock_mhz=1965.0), replace(GOOD, other_processes=None))) == {}


@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (replace(GOOD, throttle_reasons=0x8), "hardware slowdown"),
        (replace(GOOD, throttle_reasons=0x20), "thermal slowdown by software"),
        (replace(GOOD, throttle_reasons=0x40 | 0x1), "thermal slowdown by hardware"),
        (replace(GOOD, throttle_reasons=0x80), "power brake"),
        (replace(GOOD, sm_clock_mhz=1515.0), "SM clock 1515 of 1980 MHz"),
        (replace(GOOD, other_processes=2), "2 other processes on the GPU"),
    ],
)
def test_a_bad_round_is_told(reading: ClockReading, reason: str) -> None:
    assert unstable_rounds(rounds(GOOD, reading, GOOD)) == {("s", 0, 1): f"round 1: {reason}"}


def test_the_power_cap_alone_voids_nothing() -> None:
    capped = replace(GOOD, throttle_reasons=0x4, sm_clock_mhz=1515.0)
    assert unstable_rounds(rounds(GOOD, capped)) == {}


def test_a_cpu_may_change_its_clock() -> None:
    fast, slow = ClockReading(sm_clock_mhz=4000.0), ClockReading(sm_clock_mhz=1200.0)
    assert unstable_rounds([RoundRecord(set="s", case=0, process=0, round=0, before=fast, after=slow)]) == {}


def test_other_processes_are_counted_where_this_one_is_seen() -> None:
    import os

    assert others([os.getpid()]) == 0
    assert others([os.getpid(), 1, 2]) == 2
    assert others([1, 2]) is None
    assert others([]) is None
