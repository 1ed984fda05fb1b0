"""What a device card must hold beyond its schema, as far as the card alone tells: figures in order, one number of rounds, what the
kind of device has, launches and barriers that can exist. Bandwidths and their lines: card_rates.py. docs/device-card.md lists them all.

Every function takes a document that holds to the schema, and yields findings at their exact place.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType

from mkframe.validate.card_parts import Card, Path, at, objects, repeated
from mkframe.validate.card_rates import l2, lines, memory
from mkframe.validate.finding import Finding, error, shown

_ROUNDING = 1e-9
_ONLY_CUDA: tuple[Path, ...] = (
    *(("device", name) for name in ("uuid", "driver", "compute_capability", "multiprocessors", "l2_bytes", "shared_bytes_per_block")),
    ("software", "nvrtc"),
    *(("protocol", name) for name in ("short_chain", "long_chain", "replays")),
    *((name,) for name in ("clock", "events", "launches", "barriers", "l2")),
)
_ONLY_CPU: tuple[Path, ...] = (("device", "caches"), ("host",))
_CPU_IF_KNOWN: tuple[Path, ...] = (("device", "cores"), ("device", "threads"))
_EVENT_STEPS_US = tuple(0.032 * 2**k for k in range(6))
"""What docs/measurement.md takes for a step of the event clock."""
_HOPPER = (9, 0)
_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")


def figures(card: Card) -> Iterator[Finding]:
    """min <= median <= max, and the median of one or two figures is what it must be."""
    for path, node in objects(card):
        unit = next((key.removeprefix("median_") for key in node if key.startswith("median_")), None)
        if unit is None:
            continue
        low, median, high = (node[f"{word}_{unit}"] for word in ("min", "median", "max"))
        count = node.get("rounds", node.get("readings"))
        middle = (float(low) + float(high)) / 2
        if not low <= median <= high:
            yield error("figures", f"median_{unit} is {shown(median)}, outside of {shown(low)} to {shown(high)}", [*path, f"median_{unit}"])
        elif count == 1 and low != high:
            yield error("figures", f"min_{unit} and max_{unit} of one figure differ", path)
        elif count == 2 and not math.isclose(median, middle, rel_tol=_ROUNDING, abs_tol=_ROUNDING * max(abs(low), abs(high))):
            yield error(
                "figures", f"median_{unit} is {shown(median)}, and the mean of two figures is {shown(middle)}", [*path, f"median_{unit}"]
            )


def rounds(card: Card) -> Iterator[Finding]:
    """Every figure was measured once in each round."""
    expected = card["protocol"]["rounds"]
    for path, node in objects(card):
        if node.get("rounds", expected) != expected:
            yield error("rounds", f"rounds is {shown(node['rounds'])}, and the protocol has {shown(expected)}", [*path, "rounds"])


def moments(card: Card) -> Iterator[Finding]:
    """A date that exists, and a probe that took no less than its spin-up."""
    try:
        datetime.fromisoformat(card["measured_at_utc"])
    except ValueError:
        yield error("moments", f"{shown(card['measured_at_utc'])} is no date of the calendar", ["measured_at_utc"])
    least = card["protocol"]["spin_up_s"]
    if card["took_s"] < least:
        yield error("moments", f"took_s is {shown(card['took_s'])}, and the spin-up alone takes {shown(least)}", ["took_s"])


def kind(card: Card) -> Iterator[Finding]:
    """A GPU has everything but what only a CPU has, and the other way round; a long chain is longer than a short one."""
    name = card["device"]["kind"]
    has, lacks = (_ONLY_CUDA, (*_ONLY_CPU, *_CPU_IF_KNOWN)) if name == "cuda" else (_ONLY_CPU, _ONLY_CUDA)
    for path in has:
        if at(card, path) is None:
            yield error("kind", f"{path[-1]} is null, and every card of a {name} device has it", path)
    for path in lacks:
        if at(card, path) is not None:
            yield error("kind", f"{path[-1]} is not null, and a {name} device has none", path)
    capability = card["device"]["compute_capability"]
    if capability is not None and _CAPABILITY.fullmatch(capability) is None:
        yield error("kind", f"compute_capability is {shown(capability)}, must be two numbers as in 9.0", ["device", "compute_capability"])
    short, long = card["protocol"]["short_chain"], card["protocol"]["long_chain"]
    if short is not None and long is not None and short >= long:
        yield error("kind", f"long_chain is {shown(long)}, must be above short_chain {shown(short)}", ["protocol", "long_chain"])


def clock(card: Card) -> Iterator[Finding]:
    """The clock is read before and after every round, the unrecorded one too; NVML may fail to answer."""
    found = card["clock"]
    if found is None:
        return
    readings, around_each = found["round_measured"]["readings"], 2 * (card["protocol"]["rounds"] + 1)
    if readings % around_each:
        why = f"readings is {shown(readings)}, no multiple of the {shown(around_each)} that each part takes around its rounds"
        yield error("clock", why, ["clock", "round_measured", "readings"])
    nvml = found["round_nvml"]
    if nvml is not None and nvml["readings"] > readings:
        why = f"readings is {shown(nvml['readings'])}, more than the {shown(readings)} of round_measured"
        yield error("clock", why, ["clock", "round_nvml", "readings"])


def events(card: Card) -> Iterator[Finding]:
    """The step is one that the rule for steps can find."""
    found = card["events"]
    if found is None:
        return
    yield from repeated("events", found["floors"], ("events", "floors"), ("around", "held"))
    step = found["step_us"]
    if step is not None and not any(math.isclose(step, known, rel_tol=_ROUNDING) for known in _EVENT_STEPS_US):
        yield error("events", f"step_us is {shown(step)}, must be 0.032 times a power of two, up to 1.024", ["events", "step_us"])


def launches(card: Card) -> Iterator[Finding]:
    """A launch has a time exactly where it fits on the device, else a reason."""
    found = card["launches"] or []
    identity = ("body", "grid", "block", "shared_bytes", "cluster", "cooperative", "programmatic")
    yield from repeated("launches", found, ("launches",), identity)
    most = card["device"]["shared_bytes_per_block"]
    for index, floor in enumerate(found):
        place: Path = ("launches", index)
        if (floor["time"] is None) == (floor["reason"] is None):
            yield error("launches", "a launch has either a time, or a reason why it has none", place)
        needed, resident = floor["grid"] if floor["cooperative"] else 1, floor["resident_blocks"]
        if (resident >= needed) != (floor["time"] is not None):
            fits = f"{shown(resident)} blocks fit on the device, of {shown(needed)} that must be there at once"
            yield error("launches", f"{fits}, and the launch has {'a' if floor['time'] else 'no'} time", [*place, "resident_blocks"])
        if most is not None and floor["shared_bytes"] > most:
            why = f"shared_bytes is {shown(floor['shared_bytes'])}, and a block may have {shown(most)}"
            yield error("launches", why, [*place, "shared_bytes"])
        if floor["programmatic"] and not _has_clusters(card):
            yield error("launches", "programmatic edges need compute capability 9.0", [*place, "programmatic"])
        yield from _cluster(card, floor, place)
        if floor["time"] is not None:
            yield from _takes_time(floor["time"], (*place, "time"))


def barriers(card: Card) -> Iterator[Finding]:
    """Clusters exactly for barriers of one."""
    found = card["barriers"] or []
    yield from repeated("barriers", found, ("barriers",), ("scope", "grid", "block", "cluster"))
    for index, barrier in enumerate(found):
        place: Path = ("barriers", index)
        if (barrier["cluster"] > 1) != (barrier["scope"] == "cluster"):
            why = f"cluster is {shown(barrier['cluster'])}, and the barrier joins a {barrier['scope']}"
            yield error("barriers", why, [*place, "cluster"])
        yield from _cluster(card, barrier, place)
        for name in ("bare", "step"):
            yield from _takes_time(barrier[name], (*place, name))


def checks(card: Card) -> Iterator[Finding]:
    """A probe checks before it measures."""
    if not card["checks"]:
        yield error("checks", "checks is empty, and nothing is measured before its data were checked", ["checks"])


def _cluster(card: Card, launch: Card, place: Path) -> Iterator[Finding]:
    cluster = launch["cluster"]
    if launch["grid"] % cluster:
        yield error(str(place[0]), f"grid is {shown(launch['grid'])}, no multiple of cluster {shown(cluster)}", [*place, "grid"])
    if cluster > 1 and not _has_clusters(card):
        yield error(str(place[0]), "clusters need compute capability 9.0", [*place, "cluster"])


def _takes_time(time: Card, place: Path) -> Iterator[Finding]:
    if time["median_us"] <= 0:
        why = f"median_us is {shown(time['median_us'])}, must be above 0: what takes no time did not run"
        yield error(str(place[0]), why, [*place, "median_us"])


def _has_clusters(card: Card) -> bool:
    """True where the capability is no capability: `kind` says so."""
    found = _CAPABILITY.fullmatch(card["device"]["compute_capability"] or "")
    return found is None or (int(found[1]), int(found[2])) >= _HOPPER


CARD_CHECKS: Mapping[str, tuple[Callable[[Card], Iterator[Finding]], str]] = MappingProxyType(
    {
        "figures": (figures, "min <= median <= max, and the median of one or two figures is what it must be"),
        "rounds": (rounds, "every figure was measured once in each round"),
        "moments": (moments, "a date that exists, and a probe that took no less than its spin-up"),
        "kind": (kind, "a card has the parts that its kind of device has, and no others"),
        "clock": (clock, "clocks were read around every round"),
        "events": (events, "the step of the event clock is one that the rule for steps can find"),
        "launches": (launches, "a launch has a time exactly where it fits on the device, else a reason"),
        "barriers": (barriers, "clusters exactly for barriers of one"),
        "memory": (memory, "moved bytes follow from the footprint, rates from moved bytes and times; DRAM cases do not fit into L2"),
        "l2": (l2, "moved bytes follow from footprint and multiprocessors, rates from moved bytes and times; the footprint fits into L2"),
        "memory_models": (lines, "the line of each operation and method is the fit of its cases"),
        "checks": (checks, "a probe checks before it measures"),
    }
)
"""id -> (the check, what it says)."""
