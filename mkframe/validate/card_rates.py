"""Bandwidths of a device card: bytes, times and rates that belong together, and the lines through them, fitted anew."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mkframe.validate.card_parts import Card, Path, repeated
from mkframe.validate.finding import Finding, error, shown

_ROUNDING = 1e-9
_FITTED = 1e-6  # least squares by another algorithm
_COLD = 5  # times L2
_OPERATIONS = ("read", "write", "copy")


def memory(card: Card) -> Iterator[Finding]:
    """Moved bytes follow from the footprint, rates from moved bytes and times; DRAM cases do not fit into L2."""
    device = card["device"]
    for operation in _OPERATIONS:
        if all(entry["operation"] != operation for entry in card["memory"]):
            yield error("memory", f"no {operation} was measured", ["memory"])
    yield from repeated("memory", card["memory"], ("memory",), ("operation", "method", "bytes"))
    for index, entry in enumerate(card["memory"]):
        yield from _moved(entry, 2 if entry["operation"] == "copy" else 1, ("memory", index))
        yield from _rate(entry, ("memory", index))
        if device["l2_bytes"] is not None and entry["sets"] * entry["bytes"] < _COLD * device["l2_bytes"]:
            why = f"{shown(entry['sets'])} sets of {shown(entry['bytes'])} bytes are less than {_COLD} times the L2 of the device"
            yield error("memory", why, ["memory", index, "sets"])


def l2(card: Card) -> Iterator[Finding]:
    """As for `memory`; every multiprocessor reads the same bytes, or each its own, and they fit into L2."""
    device = card["device"]
    found = card["l2"] or []
    yield from repeated("l2", found, ("l2",), ("pattern", "method", "bytes"))
    for index, entry in enumerate(found):
        if device["multiprocessors"] is not None:
            yield from _moved(entry, device["multiprocessors"] if entry["pattern"] == "same" else 1, ("l2", index))
        yield from _rate(entry, ("l2", index))
        if device["l2_bytes"] is not None and entry["bytes"] > device["l2_bytes"]:
            why = f"bytes is {shown(entry['bytes'])}, and the L2 of the device holds {shown(device['l2_bytes'])}"
            yield error("l2", why, ["l2", index, "bytes"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """time = latency + bytes / rate. `growth_us` is what `largest_bytes` add to the latency."""

    latency_us: float
    growth_us: float
    largest_bytes: float
    worst_residual: float

    @property
    def bytes_per_s(self) -> float:
        return self.largest_bytes * 1e6 / self.growth_us


def lines(card: Card) -> Iterator[Finding]:
    """Every method measured at two sizes or more has the line that its medians give, where more bytes take more time."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for entry in card["memory"]:
        points.setdefault((entry["operation"], entry["method"]), []).append(
            (float(entry["moved_bytes"]), float(entry["time"]["median_us"]))
        )
    yield from repeated("memory_models", card["memory_models"], ("memory_models",), ("operation", "method"))
    present = {(model["operation"], model["method"]): index for index, model in enumerate(card["memory_models"])}
    for key in present.keys() - points.keys():
        yield error("memory_models", "no case has this operation and method", ["memory_models", present[key]])
    for key, found in points.items():
        line = fitted(found)
        slack_us = _FITTED * min(time for _, time in found)
        if line is None or line.growth_us < -slack_us:
            if key in present:
                yield error(
                    "memory_models", "its cases give no line: they are one size, or more bytes take less time", _model(present[key])
                )
        elif line.growth_us > slack_us:  # else rounding decides whether there is one
            if key not in present:
                yield error("memory_models", f"the line of {key[0]}, {shown(key[1])} is missing", ["memory_models"])
            else:
                yield from _other_line(card["memory_models"][present[key]], line, slack_us, _model(present[key]))


def _model(index: int) -> Path:
    return "memory_models", index


def _other_line(model: Card, line: Line, slack_us: float, place: Path) -> Iterator[Finding]:
    for name, slack in (("latency_us", slack_us), ("bytes_per_s", 0.0), ("worst_residual", _FITTED)):
        value = getattr(line, name)
        if not math.isclose(model[name], value, rel_tol=_FITTED, abs_tol=slack):
            yield error("memory_models", f"{name} is {shown(model[name])}, and the cases give {shown(value)}", [*place, name])


def fitted(points: Sequence[tuple[float, float]]) -> Line | None:
    """The line through (bytes, time in us) by least squares of the relative errors: weighted least squares with weights 1 / time^2,
    about the weighted means. None with fewer than two sizes, and where a time is not positive."""
    if len({moved for moved, _ in points}) < 2 or min(time for _, time in points) <= 0:
        return None
    largest, shortest = max(moved for moved, _ in points), min(time for _, time in points)
    rows = [((shortest / time) ** 2, moved / largest, time) for moved, time in points]
    total = sum(weight for weight, _, _ in rows)
    size = sum(weight * moved for weight, moved, _ in rows) / total
    mean = sum(weight * time for weight, _, time in rows) / total
    spread = sum(weight * (moved - size) ** 2 for weight, moved, _ in rows)
    if spread == 0:
        return None
    growth = sum(weight * (moved - size) * (time - mean) for weight, moved, time in rows) / spread
    latency = mean - growth * size
    worst = max(abs(latency + growth * moved - time) / time for _, moved, time in rows)
    return Line(latency_us=latency, growth_us=growth, largest_bytes=largest, worst_residual=worst)


def _moved(entry: Card, times: int, place: Path) -> Iterator[Finding]:
    expected = entry["bytes"] * times
    if entry["moved_bytes"] != expected:
        why = f"moved_bytes is {shown(entry['moved_bytes'])}, and {shown(times)} x bytes is {shown(expected)}"
        yield error(str(place[0]), why, [*place, "moved_bytes"])


def _rate(entry: Card, place: Path) -> Iterator[Finding]:
    """The fastest round is the shortest. Of an odd number of rounds the medians are one round; of an even number the mean of two
    rates is at least the rate of the mean time (arithmetic over harmonic mean)."""
    moved, time, rate = float(entry["moved_bytes"]), entry["time"], entry["rate"]
    if time["min_us"] <= 0:
        yield error(str(place[0]), f"min_us is {shown(time['min_us'])}, and a rate needs a time above 0", [*place, "time", "min_us"])
        return
    for name, of in (("max", "min"), ("min", "max"), ("median", "median")):
        if time[f"{of}_us"] <= 0:
            continue  # below min_us, and `figures` says so
        stated, expected = rate[f"{name}_bytes_per_s"], moved * 1e6 / time[f"{of}_us"]
        if math.isclose(stated, expected, rel_tol=_ROUNDING) or (name == "median" and time["rounds"] % 2 == 0 and stated > expected):
            continue
        why = f"{name}_bytes_per_s is {shown(stated)}, and moved_bytes over {of}_us is {shown(expected)}"
        yield error(str(place[0]), why, [*place, "rate", f"{name}_bytes_per_s"])
