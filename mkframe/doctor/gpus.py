"""The doctor's lines on GPUs: pure judgements over what gpu_facts gathered."""

from collections.abc import Iterator, Mapping
from typing import Any

from mkframe.doctor.line import Line, no, ok, warn
from mkframe.probe.cards import load_card, other_drivers

# Bits of NVML's clock event reasons that cost speed, in words (nvml.h).
_THROTTLES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "hot (software)",
    0x40: "hot (hardware)",
    0x80: "power brake",
}
_FORCED = {0x2: "application clocks", 0x10: "sync boost", 0x100: "display clock"}


def driver_lines(facts: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Line]:
    """`facts` as gpu_facts.gather gives them."""
    if "error" in facts:
        yield no("driver", str(facts["error"]), "no GPU can be measured", "install the NVIDIA driver, or measure with device=cpu", "cuda")
        return
    if not facts["gpus"]:
        yield no("driver", f"driver {facts['driver']} shows no GPU", "no GPU can be measured", "check the GPU and its permissions", "cuda")
        return
    yield ok("driver", f"NVIDIA driver {facts['driver']}, {len(facts['gpus'])} GPU(s)", "GPUs can be found and their clocks read")
    for index, gpu in enumerate(facts["gpus"]):
        yield from gpu_lines(f"gpu {index}", gpu, str(facts["driver"]), environ)


def gpu_lines(topic: str, gpu: Mapping[str, Any], driver: str, environ: Mapping[str, str]) -> Iterator[Line]:
    """Every line on one board."""
    yield ok(topic, f"{gpu['name']} ({gpu['uuid']})", f"device.uuid={gpu['uuid']} picks it")
    yield from _modes(topic, gpu)
    yield from _clocks(topic, gpu)
    yield _processes(topic, gpu)
    yield _energy(topic, gpu)
    yield card_line(topic, str(gpu["uuid"]), driver, environ)


def _modes(topic: str, gpu: Mapping[str, Any]) -> Iterator[Line]:
    if gpu["mig"]:
        yield warn(
            f"{topic}: MIG", "on", "an instance shares clocks and memory with others; energy is refused", "measure on a GPU with MIG off"
        )
    else:
        yield ok(f"{topic}: MIG", "off" if gpu["mig"] is False else "the board has none", "the whole GPU is measured")
    ecc = {True: "on", False: "off", None: "unknown"}[gpu["ecc"]]
    yield ok(f"{topic}: ECC", ecc, "part of the conditions: bandwidths with and without it do not compare on boards with GDDR memory")
    if gpu["persistence"] is False:
        yield warn(
            f"{topic}: persistence mode",
            "off",
            "the driver unloads between runs: first calls are slow and clocks start from idle",
            "keep a process on the GPU, or ask the administrator for persistence mode",
        )
    elif gpu["persistence"]:
        yield ok(f"{topic}: persistence mode", "on", "the driver stays loaded between runs")


def _clocks(topic: str, gpu: Mapping[str, Any]) -> Iterator[Line]:
    now, most = gpu["sm_mhz"], gpu["max_sm_mhz"]
    if now is None:
        yield warn(f"{topic}: clocks", "unreadable", "rounds carry no clocks", "ask for access to NVML's clock readings")
    else:
        yield ok(f"{topic}: clocks", f"SM {now} MHz now, {most or 'unknown'} at most", "clocks are read around every round")
    bits = gpu["throttle_reasons"]
    slow, forced = _named(bits, _THROTTLES), _named(bits, _FORCED)
    if bits is None:
        yield warn(f"{topic}: throttling", "unreadable", "a throttled round cannot be told from a good one", None)
    elif slow:
        yield warn(
            f"{topic}: throttling",
            f"now: {slow}",
            "numbers of this moment are too slow",
            "let it cool, end other work, check power and cooling",
        )
    elif forced:
        yield warn(
            f"{topic}: throttling", f"clocks are forced: {forced}", "numbers hold for these clocks only", "say so beside the numbers"
        )
    else:
        yield ok(f"{topic}: throttling", "none now", "clocks are free to rise")
    limit, usual = gpu["power_limit_w"], gpu["default_power_limit_w"]
    if limit is not None and usual is not None and limit < 0.99 * usual:
        yield warn(
            f"{topic}: power limit",
            f"{limit:.0f} W, by default {usual:.0f} W",
            "heavy kernels run at lower clocks",
            "say so beside the numbers",
        )
    elif limit is not None:
        yield ok(f"{topic}: power limit", f"{limit:.0f} W", "as the board comes" if usual is not None else "part of the conditions")


def _named(bits: int | None, names: Mapping[int, str]) -> str:
    return ", ".join(name for bit, name in names.items() if bits is not None and bits & bit)


def _processes(topic: str, gpu: Mapping[str, Any]) -> Line:
    running = gpu["processes"]
    if running is None:
        return warn(f"{topic}: processes", "unreadable", "other work on the GPU would go unnoticed", "make sure that nobody else uses it")
    if running:
        pids = ", ".join(str(pid) for pid in running[:8])
        return warn(
            f"{topic}: processes", f"{len(running)} (pid {pids})", "other work spoils timings", "wait for them, or pick another GPU"
        )
    return ok(f"{topic}: processes", "none", "nobody else computes on it")


def _energy(topic: str, gpu: Mapping[str, Any]) -> Line:
    state = gpu["energy_counter"]
    if state == "updating":
        return ok(f"{topic}: energy counter", "readable and updating", "energy can be measured on counter edges")
    if state == "still":
        return warn(
            f"{topic}: energy counter", "readable, and did not change in 0.5 s", "energy by the counter is refused", "use energy=none"
        )
    return warn(f"{topic}: energy counter", "unreadable", "energy by the counter cannot be measured", "use energy=none")


def card_line(topic: str, uuid: str, driver: str, environ: Mapping[str, str]) -> Line:
    """Whether there is a measured card of a device."""
    card = load_card(uuid, driver, environ)
    if card is not None:
        return ok(f"{topic}: device card", f"measured {card.measured_at_utc}", "rates are told as shares of what this device reaches")
    older = other_drivers(uuid, driver, environ)
    means = "no shares of measured peaks, no launch twins from the card"
    if older:
        return warn(
            f"{topic}: device card", f"of driver {', '.join(older)}; this is {driver}", means, "python -m mkframe device probe, again"
        )
    return warn(f"{topic}: device card", "none", means, "python -m mkframe device probe (about a minute)")
