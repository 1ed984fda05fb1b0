"""The payload of an energy report, where its folder was named: files and arrays are hashed again and held against the manifest.

What the hashes do not tell, that predictions and accuracy follow from the arrays, is not recomputed, and the findings say so.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkframe.canonical import sha256
from mkframe.validate.finding import Finding, Severity, error, pointer, shown, warning
from mkframe.validate.formats import ENERGY
from mkframe.validate.payload_files import Array, PayloadError, arrays, read_below
from mkframe.validate.rule import Rule, Subject

RULE = "payload"
_DRAWS = ("provenance", "payload_manifest", "draws")

Place = tuple[str | int, ...]


def payload_findings(subject: Subject) -> Iterator[Finding]:
    """Each draw of the manifest against its file in `subject.payload`; nothing where no folder was named."""
    if subject.payload is None:
        return
    folder = _Folder(subject.payload)
    for index, draw in enumerate(_list(_at(subject.document, *_DRAWS))):
        if isinstance(draw, dict):
            yield from _draw(draw, folder, (*_DRAWS, index))
            yield from _predictions(draw, folder, (*_DRAWS, index))
    yield _information("predictions, agreement and accuracy were not recomputed from the payload", ("validation",), subject.document)


class _Folder:
    """Files of the payload folder. A manifest may name one file often; it is read once."""

    def __init__(self, folder: Path) -> None:
        self.hashed = cache(lambda name: sha256(read_below(folder, name)))
        self.arrays = cache(lambda name: arrays(read_below(folder, name)))


def _draw(draw: Mapping[str, Any], folder: _Folder, place: Place) -> Iterator[Finding]:
    name, stated = draw.get("path"), draw.get("arrays")
    if not isinstance(name, str):
        return
    try:
        digest = folder.hashed(name)
    except PayloadError as problem:
        yield error(RULE, str(problem), (*place, "path"))
        return
    if isinstance(draw.get("sha256"), str) and digest != draw["sha256"]:
        yield error(RULE, f"{shown(name)} in the payload folder has another SHA-256", (*place, "sha256"))
    if not isinstance(stated, dict):
        return
    try:
        present = folder.arrays(name)
    except PayloadError as problem:
        yield error(RULE, f"{shown(name)}: {problem}", (*place, "path"))
        return
    for key, array in stated.items():
        if key not in present:
            yield error(RULE, f"{shown(name)} holds no such array", (*place, "arrays", key))
        elif isinstance(array, dict):
            yield from _array(array, present[key], (*place, "arrays", key))
    more = sorted(present.keys() - stated.keys())
    if more:
        yield warning(
            RULE, f"{shown(name)} also holds {shown(more[0])}" + (f" and {len(more) - 1} more" if more[1:] else ""), (*place, "arrays")
        )


def _array(stated: Mapping[str, Any], found: Array, place: Place) -> Iterator[Finding]:
    for key, value in (("shape", list(found.shape)), ("dtype", found.dtype)):
        if key in stated and stated[key] != value:
            yield error(RULE, f"the array in the payload folder has the {key} {value}", (*place, key))
    if isinstance(stated.get("sha256"), str) and stated["sha256"] != found.sha256:
        yield error(RULE, "the array in the payload folder has another SHA-256", (*place, "sha256"))


def _predictions(draw: Mapping[str, Any], folder: _Folder, place: Place) -> Iterator[Finding]:
    """Predictions may lie somewhere else: their absence is told, and is no error."""
    name, stated = draw.get("frozen_prediction_path"), draw.get("frozen_prediction_sha256")
    if not isinstance(name, str) or not isinstance(stated, str):
        return
    try:
        if folder.hashed(name) != stated:
            yield error(RULE, f"{shown(name)} in the payload folder has another SHA-256", (*place, "frozen_prediction_sha256"))
    except PayloadError as problem:
        if not problem.absent:
            yield error(RULE, str(problem), (*place, "frozen_prediction_path"))
        else:
            yield _information(f"{problem}; unchecked", (*place, "frozen_prediction_path"))


def _information(message: str, place: Place, document: Mapping[str, Any] | None = None) -> Finding:
    there = document is None or _at(document, *map(str, place)) is not None
    return Finding(severity=Severity.INFORMATION, rule=RULE, pointer=pointer(place if there else ()), message=message)


def _at(node: Any, *keys: str) -> Any:
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _list(node: Any) -> list[Any]:
    return node if isinstance(node, list) else []


PAYLOAD_RULES = (
    Rule(
        id=RULE,
        format=ENERGY,
        severities=(Severity.ERROR, Severity.WARNING, Severity.INFORMATION),
        says="with --payload: files and arrays of the payload folder have the hashes, shapes and dtypes of the manifest",
        check=payload_findings,
    ),
)
