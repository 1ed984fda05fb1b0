"""Events as JSON and back: what the journal holds is what the ledger was told, field by field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from mkframe.errors import UnreadableError
from mkframe.model.device import ClockReading
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome
from mkframe.model.report import CheckRecord
from mkframe.run import messages as m

JOURNALLED: Mapping[str, type[m.Event]] = {
    kind.__name__: kind for kind in (m.Hello, m.CellReady, m.CellClosed, m.CellFailed, m.CaseReady, m.BlockDone, m.TwinDone, m.RoundDone)
}
"""Events that make a difference to the report; the others only tell what goes on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One event with what it belongs to. `worker` counts worker processes from 0 in the order of their start; a worker
    restarted after a fault, or by a resumed run, is another one. `set` and `case` are None for what concerns no case."""

    worker: int
    process: int
    event: m.Event
    set: str | None = None
    case: int | None = None


def encode(entry: Entry) -> dict[str, Any]:
    """The entry as plain JSON types: what it belongs to, then the fields of its event. Samples become lists, in ms."""
    head = {"event": type(entry.event).__name__, "worker": entry.worker, "process": entry.process, "set": entry.set, "case": entry.case}
    return head | {item.name: _plain(getattr(entry.event, item.name)) for item in fields(entry.event)}


def decode(document: Mapping[str, Any], where: str) -> Entry:
    """Raises UnreadableError, naming `where`, for what `encode` does not write."""
    try:
        kind = JOURNALLED[document["event"]]
        values = {item.name: _DECODERS.get(item.name, _as_it_is)(document[item.name]) for item in fields(kind)}
        return Entry(
            worker=_count(document["worker"]),
            process=_count(document["process"]),
            set=document["set"],
            case=document["case"],
            event=kind(**values),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableError(f"{where} is no entry of a journal ({type(error).__name__}: {error}); the run cannot be resumed") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        if any(isinstance(key, tuple) for key in value):  # floors: (name, clock) -> samples
            return [[*key, _plain(item)] for key, item in value.items()]
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Outcome) else value


def _as_it_is(value: Any) -> Any:
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _samples(value: Any) -> Any:
    return np.array(value, dtype=np.float64)


def _optional(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "stream_ms": _samples,
    "host_ms": _samples,
    "floors": lambda value: {(name, clock): _samples(samples) for name, clock, samples in value},
    "outcome": Outcome,
    "check": _optional(lambda value: CheckRecord(**value)),
    "checks": tuple,
    "nodes": _optional(tuple),
    "kernels": _optional(lambda value: tuple(LaunchRecord.of(item) for item in value)),
    "before": lambda value: ClockReading(**value),
    "after": lambda value: ClockReading(**value),
    "round": _count,
}
