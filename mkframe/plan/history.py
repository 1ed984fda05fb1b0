"""What earlier runs took, cell by cell, in the user's cache folder: the memory behind estimates. Never needed, never trusted.

One entry per (workload, engine, precision, device, protocol, shape), the newest last. A file that is missing, damaged or of another
version counts as empty; one that cannot be written is left alone.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mkframe import canonical
from mkframe.errors import UnreadableError

FORMAT = "history/1"
MOST_ENTRIES = 5000
_SIZE_LIMIT = 8 * 2**20
_LONGEST_S = 1e6

Key = tuple[str, str, str, str, str, tuple[tuple[str, int], ...]]
"""(workload, engine as the report names it, precision, device name, timing protocol, sorted shape)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What one cell took, in seconds: a call on the host's clock, binding with capture, and the checks."""

    call_s: float
    bind_s: float
    check_s: float


@dataclass(frozen=True, slots=True)
class History:
    """Entries by key, in the order in which they were last seen."""

    entries: Mapping[Key, Seen] = field(default_factory=dict)

    def of_engine(self, workload: str, engine: str, precision: str, device: str, protocol: str) -> Iterator[tuple[dict[str, int], Seen]]:
        """Every shape that was seen of one engine under the same conditions."""
        for key, seen in self.entries.items():
            if key[:5] == (workload, engine, precision, device, protocol):
                yield dict(key[5]), seen


def key_of(workload: str, engine: str, precision: str, device: str, protocol: str, shape: Mapping[str, int]) -> Key:
    return workload, engine, precision, device, protocol, tuple(sorted(shape.items()))


def history_path() -> Path:
    """XDG_CACHE_HOME or ~/.cache, then mkframe/history.json."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "mkframe", "history.json")


def load_history(path: Path | None = None) -> History:
    """What is remembered; nothing where the file cannot be used."""
    try:
        source = history_path() if path is None else path
        if source.stat().st_size > _SIZE_LIMIT:
            return History()
        document = json.loads(source.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            return History()
        found = [_entry(item) for item in document["entries"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, RuntimeError):  # RuntimeError: no home folder
        return History()
    return History(dict(found[-MOST_ENTRIES:]))


def remember(document: Mapping[str, Any], path: Path | None = None) -> None:
    """Adds the passed cells of a comparison report (as its JSON document) and forgets the oldest beyond MOST_ENTRIES.

    Does nothing for a report of somebody else, and where the cache folder cannot be written.
    """
    try:
        target = history_path() if path is None else path
        new = dict(_cells(document))
        if not new:
            return
        entries = {key: seen for key, seen in load_history(target).entries.items() if key not in new} | new
        kept = list(entries.items())[-MOST_ENTRIES:]
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"format": FORMAT, "entries": [_plain(key, seen) for key, seen in kept]}, separators=(",", ":"))
        canonical.write_atomically(target, text.encode())
    except (OSError, UnreadableError, KeyError, TypeError, ValueError, AttributeError, RuntimeError):
        return


def _cells(document: Mapping[str, Any]) -> Iterator[tuple[Key, Seen]]:
    block = document["mkframe"]
    common = block["precision"]["id"], block["device"]["name"], block["timing"]["protocol"]
    host_ms = {
        (name, json.dumps(case["shape"], sort_keys=True), engine): result["host_summary"]["mean_ms"]
        for name, cases in document.items()
        if isinstance(cases, list)
        for case in cases
        if isinstance(case, dict)
        for engine, result in case["engines"].items()
        if "host_summary" in result
    }
    for cell in block["cells"]:
        mean_ms = host_ms.get((cell["set"], json.dumps(cell["shape"], sort_keys=True), cell["engine"]))
        if mean_ms is not None and cell["bind_s"] is not None and cell["check_s"] is not None:
            seen = _seen(mean_ms / 1e3, cell["bind_s"] + (cell["capture_s"] or 0.0), cell["check_s"])
            yield key_of(block["workload"], cell["engine"], *common, cell["shape"]), seen


def _plain(key: Key, seen: Seen) -> list[Any]:
    return [*key[:5], dict(key[5]), seen.call_s, seen.bind_s, seen.check_s]


def _entry(item: Any) -> tuple[Key, Seen]:
    """Raises ValueError or TypeError for what we would not have written."""
    workload, engine, precision, device, protocol, shape, call_s, bind_s, check_s = item
    names = (workload, engine, precision, device, protocol)
    if not all(isinstance(name, str) for name in names) or not all(type(size) is int for size in shape.values()):
        raise ValueError("not an entry of a history")
    return key_of(*names, shape), _seen(call_s, bind_s, check_s)


def _seen(call_s: Any, bind_s: Any, check_s: Any) -> Seen:
    for value in (call_s, bind_s, check_s):
        if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= _LONGEST_S:
            raise ValueError("not a time")
    return Seen(call_s=float(call_s), bind_s=float(bind_s), check_s=float(check_s))
