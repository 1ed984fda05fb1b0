"""What must be equal before two times may be compared, and what is worth a note where it is not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mkframe.compare.report import Report
from mkframe.compare.text import NOT_STATED, both
from mkframe.errors import UsageError
from mkframe.text import printable
from mkframe.validate.finding import shown

_COUNTED = frozenset(("rounds", "samples_per_round", "processes", "round_process", "timer_step_ms", "floors", "warmups", "protocol"))
"""Keys of `mkframe.timing` that the statistics take care of, or that stand elsewhere; every other one is a condition."""
_PROTOCOL = ("method", "replays", "sets", "footprint")
"""Keys of the configuration's `timing` that belong to single protocols and change what a sample is."""
_DEVICE = ("kind", "name", "compute_capability", "multiprocessors", "threads")
_PER_CELL = ("edges", "cache_state")
FIELDS = ("device", "board", "precision", "workload", "timing", "hold", "cache_state", *_PROTOCOL, "edges", "shapes", "engines")


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A condition that the two reports do not share. `field` is what `--allow` takes."""

    field: str
    text: str


def require_same(base: Report, new: Report, allowed: Iterable[str]) -> tuple[Difference, ...]:
    """The differences that `allowed` lifts. Raises UsageError for any other one, and for a field that does not exist."""
    allowed = set(allowed)
    known = {*FIELDS, *(field for field, _, _ in _timing(base, new))}
    if unknown := sorted(allowed - known):
        raise UsageError(f"--allow {' '.join(map(shown, unknown))}: no such field; there are {', '.join(sorted(known))}")
    found = tuple(differences(base, new))
    if left := [difference for difference in found if difference.field not in allowed]:
        fields = " ".join(dict.fromkeys(difference.field for difference in left))
        listed = "; ".join(f"{difference.field}: {difference.text}" for difference in left)
        shared = base.cells.keys() & new.cells.keys()
        advice = f"To compare them all the same: --allow {fields}" if shared else "They have no cell in common: there is nothing to compare"
        raise UsageError(printable(f"BASE and NEW differ in what must be equal: {listed}. {advice}"))
    return found


def differences(base: Report, new: Report) -> Iterator[Difference]:
    """Every condition in which the two differ. What one report does not state differs from what the other one states."""
    for field, one, other in (*_device(base, new), *_contract(base, new), *_timing(base, new)):
        if one != other:
            yield Difference(field=field, text=both(one, other))
    yield from _per_cell(base, new)
    yield from _contents("shapes", base.shapes, new.shapes)
    yield from _contents("engines", base.engines, new.engines)


def _device(base: Report, new: Report) -> Iterator[tuple[str, Any, Any]]:
    one, other = base.block.get("device"), new.block.get("device")
    if one and other:
        yield "device", {name: one[name] for name in _DEVICE}, {name: other[name] for name in _DEVICE}
        if one["uuid"] is not None and other["uuid"] is not None:
            yield "board", one["uuid"], other["uuid"]
    else:
        yield "device", base.document["device"], new.document["device"]


def _contract(base: Report, new: Report) -> Iterator[tuple[str, Any, Any]]:
    ours = base.block and new.block
    yield "precision", *((report.block if ours else report.document)["precision"] for report in (base, new))
    yield "workload", *(report.block.get("workload", NOT_STATED) for report in (base, new))


def _timing(base: Report, new: Report) -> Iterator[tuple[str, Any, Any]]:
    yield "timing", *(report.document.get("timing", NOT_STATED) for report in (base, new))
    one, other = (report.block.get("timing", {}) for report in (base, new))
    for name in sorted((one.keys() | other.keys()) - _COUNTED):
        yield name, one.get(name, NOT_STATED), other.get(name, NOT_STATED)
    for name in _PROTOCOL:  # None in the protocols that do not have them, absent in reports that are older than them
        yield name, base.timing_option(name), new.timing_option(name)


def _per_cell(base: Report, new: Report) -> Iterator[Difference]:
    """Conditions that reports keep for each cell: one difference a field, at the first cell that has it."""
    for field in _PER_CELL:
        for key in base.cells:
            if key not in new.cells or not (base.cells[key].passed and new.cells[key].passed):
                continue
            one, other = (_fact(report.cells[key].record, field) for report in (base, new))
            if one != other:
                yield Difference(field=field, text=f"{both(one, other)}, for {key.text}")
                break


def _fact(record: Mapping[str, Any], field: str) -> Any:
    return record.get(field, record.get("facts", {}).get(field, NOT_STATED))


def _contents(field: str, base: Mapping[Any, str], new: Mapping[Any, str]) -> Iterator[Difference]:
    """`base` and `new`: what each report has, with its name for people."""
    parts = []
    for side, one, other in (("BASE", base, new), ("NEW", new, base)):
        if only := [text for key, text in one.items() if key not in other]:
            parts.append(f"only in {side}: {', '.join(only[:3])}{f' and {len(only) - 3} more' if len(only) > 3 else ''}")
    if parts:
        yield Difference(field=field, text=", ".join(parts))


def notes(base: Report, new: Report) -> Iterator[str]:
    """What a reader should know and what stops nothing."""
    if base.sha256 == new.sha256:
        yield "BASE and NEW are the same file"
    for side, report in (("BASE", base), ("NEW", new)):
        if not report.has_samples:
            why = "its samples file is not beside it" if report.block else "it has no samples file"
            yield f"{side} is compared by its summaries alone: {why}"
        if report.block.get("incomplete"):
            yield f"{side} is incomplete: its run ended early"
    for name, one, other in _worth_knowing(base, new):
        if one != other:
            yield f"{name}: {both(one, other)}"


def _worth_knowing(base: Report, new: Report) -> Iterator[tuple[str, Any, Any]]:
    packages = [report.document["packages"] for report in (base, new)]
    for name in sorted(packages[0].keys() | packages[1].keys()):
        yield name, *(each.get(name, NOT_STATED) for each in packages)
    if base.block and new.block:
        yield "driver", *(report.block["device"]["driver"] for report in (base, new))
        yield "seeds", *(report.block["seeds"] for report in (base, new))
        for name in ("k1", "slope_us"):
            yield name, base.timing_option(name), new.timing_option(name)
        yield "warmups", *(report.block["timing"]["warmups"] for report in (base, new))
        yield "processes", *(report.block["timing"]["processes"] for report in (base, new))
    yield "rounds", base.document["rounds"], new.document["rounds"]
    yield "samples_per_round", base.document["samples_per_round"], new.document["samples_per_round"]
