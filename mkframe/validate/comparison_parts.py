"""What the rules for comparison reports share: walking a document that may be broken anywhere, and figures where they are figures.

Nothing here raises, whatever JSON it is given: what is not what it must be is left out, and the schema rule says so.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Subject
from mkframe.validate.schemas import schema
from mkframe.validate.values import fits_float64

Path = tuple[str | int, ...]
Shape = tuple[tuple[str, int], ...]
DEVELOPMENT, ASSESSMENT = "development", "assessment"
STREAM, HOST = "stream_summary", "host_summary"
TIMES = ("min_ms", "p50_ms", "p95_ms", "max_ms", "mean_ms")
ROUNDING = 1e-12
"""Relative: another program may add and divide in another order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One item of a shape set, at `path`. `shape` is None where it is no shape."""

    set: str
    path: Path
    shape: Shape | None
    engines: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineEntry:
    """What a report says of one engine on one shape, at `path`. `result` is empty where it is no object."""

    case: Case
    engine: str
    path: Path
    result: dict[str, Any]


def table(node: Any, *keys: str) -> dict[str, Any]:
    """The object that `keys` lead to; an empty one where there is none."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def items(node: Any, *keys: str) -> list[Any]:
    """The array under the last of `keys`; an empty one where there is none."""
    found = table(node, *keys[:-1]).get(keys[-1])
    return found if isinstance(found, list) else []


def number(value: Any) -> float | None:
    """A JSON number as float64; None for anything else, booleans among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and not fits_float64(value):
        return None
    return float(value) if math.isfinite(value) else None


def amount(value: Any) -> float | None:
    """A number that is not negative; a negative time is the schema's to report, and says nothing of other times."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def whole(value: Any) -> int | None:
    """An integer as JSON has them, 5.0 too; None for anything else, booleans among it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def shape_of(value: Any) -> Shape | None:
    """Sizes by name in one order, without a depth of 1, which may be left out; None for what is no shape."""
    if not isinstance(value, dict):
        return None
    sizes = {str(name): whole(size) for name, size in value.items()}
    known = {name: size for name, size in sizes.items() if size is not None and size >= 1}
    if len(known) != len(sizes):
        return None
    return tuple(sorted((name, size) for name, size in known.items() if (name, size) != ("depth", 1)))


def shape_sets(document: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Every shape set by name: development, assessment, and each list that is meant as one."""
    known = schema(COMPARISON)["properties"]
    for name, value in document.items():
        if isinstance(value, list) and (name in (DEVELOPMENT, ASSESSMENT) or (name not in known and _looks_like_cases(value))):
            yield name, value


def _looks_like_cases(value: list[Any]) -> bool:
    """As the schema tells them: an item has both keys of a case, or one of them as an object."""
    return any(
        isinstance(item, dict)
        and (("shape" in item and "engines" in item) or isinstance(item.get("shape"), dict) or isinstance(item.get("engines"), dict))
        for item in value
    )


def cases(subject: Subject) -> tuple[Case, ...]:
    return subject.once("cases", _cases)


def _cases(subject: Subject) -> tuple[Case, ...]:
    return tuple(
        Case(set=name, path=(name, index), shape=shape_of(item.get("shape")), engines=table(item, "engines"))
        for name, found in shape_sets(subject.document)
        for index, item in enumerate(found)
        if isinstance(item, dict)
    )


def entries(subject: Subject) -> tuple[EngineEntry, ...]:
    return subject.once("entries", _entries)


def _entries(subject: Subject) -> tuple[EngineEntry, ...]:
    return tuple(entry_of(case, engine) for case in cases(subject) for engine in case.engines)


def entry_of(case: Case, engine: str) -> EngineEntry:
    """The entry of an engine that the case has."""
    return EngineEntry(case=case, engine=engine, path=(*case.path, "engines", engine), result=table(case.engines[engine]))


def measured(subject: Subject) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every summary of a cell, with its place."""
    for entry in entries(subject):
        for name in (STREAM, HOST):
            if isinstance(entry.result.get(name), dict):
                yield (*entry.path, name), entry.result[name]


def summaries(subject: Subject) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every summary: of cells, and in a report of ours of floors and launch twins."""
    yield from measured(subject)
    for index, floor in enumerate(items(subject.document, "mkframe", "timing", "floors")):
        if found := table(floor, "summary"):
            yield ("mkframe", "timing", "floors", index, "summary"), found
    for index, cell in enumerate(items(subject.document, "mkframe", "cells")):
        if found := table(cell, "twin", STREAM):
            yield ("mkframe", "cells", index, "twin", STREAM), found


def times(summary: dict[str, Any]) -> dict[str, float]:
    """The times of a summary that are times, in ms."""
    found = {name: amount(summary.get(name)) for name in TIMES}
    return {name: value for name, value in found.items() if value is not None}


def median_ms(result: dict[str, Any]) -> float | None:
    """The median stream time of one engine."""
    return amount(table(result, STREAM).get("p50_ms"))


def above(one: float, other: float) -> bool:
    """one > other, by more than rounding."""
    return one > other and not math.isclose(one, other, rel_tol=ROUNDING)
