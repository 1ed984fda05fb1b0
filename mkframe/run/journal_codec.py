"""Events as JSON and back: what the journal holds is what the ledger was told, field by field."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from mkframe.errors import UnreadableError
from mkframe.model.outcome import Outcome
from mkframe.run import messages as m
from mkframe.run.journal_values import Misfit, check_digests, record_as, value_as
from mkframe.validate.finding import shown

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
    return head | {item.name: _field(item.name, getattr(entry.event, item.name)) for item in fields(entry.event)}


def decode(document: Mapping[str, Any], where: str) -> Entry:
    """Raises UnreadableError, naming `where`, for what `encode` does not write: another type, a number out of range, a field too many."""
    try:
        name = document.get("event")
        if not isinstance(name, str) or name not in JOURNALLED:
            raise Misfit(f"event must be one of {', '.join(JOURNALLED)}, not {shown(name)}")
        placed = {key: document.get(key) for key in ("worker", "process", "set", "case")}
        event = record_as(JOURNALLED[name], {key: value for key, value in document.items() if key != "event" and key not in placed}, name)
        _check_whole(event)
        return Entry(
            worker=value_as(int, placed["worker"], "worker"),
            process=value_as(int, placed["process"], "process"),
            set=None if placed["set"] is None else value_as(str, placed["set"], "set"),
            case=None if placed["case"] is None else value_as(int, placed["case"], "case"),
            event=event,
        )
    except Misfit as error:
        raise UnreadableError(f"{where} is no entry of a journal ({error}); the run cannot be resumed") from error


def _check_whole(event: m.Event) -> None:
    """What the fields of one event must be to one another. Raises Misfit."""
    match event:
        case m.Hello() if not event.floors or not all(samples.size for samples in event.floors.values()):
            raise Misfit("floors must hold samples")
        case m.CaseReady():
            check_digests(event.sources, "sources")
        case m.BlockDone() if len(event.stream_ms) != len(event.host_ms):
            raise Misfit(f"stream_ms and host_ms differ in length: {len(event.stream_ms)} and {len(event.host_ms)}")
        case m.BlockDone() if event.late is not None and event.late > len(event.stream_ms):
            raise Misfit(f"late must be at most {len(event.stream_ms)}, not {shown(event.late)}")
        case m.TwinDone() if bool(event.stream_ms.size) == (event.reason is not None):
            raise Misfit("a launch twin has either samples or a reason")


def _field(name: str, value: Any) -> Any:
    """Floors have pairs for keys, (name, clock), which JSON does not: they become lists of three."""
    return [[*key, _plain(samples)] for key, samples in value.items()] if name == "floors" else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Outcome) else value
