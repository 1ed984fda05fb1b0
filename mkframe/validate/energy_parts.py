"""What the rules for energy reports share: parts of a document that may hold anything, and how a stated figure is held against a rebuilt
one.

A rule asks for the parts that it needs. Where one is not what it must be, `Absent` ends the question: the schema rule reports that part.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import ENERGY
from mkframe.validate.rule import Rule, Subject

Number = int | float
Path = tuple[str | int, ...]
Node = dict[str, Any]

RELATIVE = 1e-12
"""Figures of other writers may differ from the rebuilt ones by this much, for another order of evaluation."""
MAX_FINDINGS = 10_000
EDGE_ALIGNED = "nvml_edge_aligned"


class Absent(Exception):
    """A part is missing, or is not what it must be."""


def at(node: Any, *path: str | int) -> Any:
    """The value at a path of keys and indices. Raises Absent."""
    for token in path:
        if isinstance(node, dict):
            if token not in node:
                raise Absent
        elif not (isinstance(node, list) and isinstance(token, int) and 0 <= token < len(node)):
            raise Absent
        node = node[token]
    return node


def maybe(node: Any, *path: str | int) -> Any:
    """The value at a path, None where there is none."""
    try:
        return at(node, *path)
    except Absent:
        return None


def number(node: Any, *path: str | int) -> Number:
    """A number at a path; booleans are none. Raises Absent."""
    value = at(node, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Absent
    return value


def whole(node: Any, *path: str | int, least: int = 0) -> int:
    """A whole number of at least `least` at a path; 5.0 is one, as in JSON Schema. Raises Absent."""
    value = number(node, *path)
    if value != value // 1 or value < least:
        raise Absent
    return int(value)


def text(node: Any, *path: str | int) -> str:
    """A string at a path. Raises Absent."""
    value = at(node, *path)
    if not isinstance(value, str):
        raise Absent
    return value


def flag(node: Any, *path: str | int) -> bool:
    """A boolean at a path. Raises Absent."""
    value = at(node, *path)
    if not isinstance(value, bool):
        raise Absent
    return value


def items(node: Any, *path: str | int) -> list[Any]:
    """A list at a path. Raises Absent."""
    value = at(node, *path)
    if not isinstance(value, list):
        raise Absent
    return value


def objects(node: Any, *path: str | int) -> Iterator[tuple[Path, Node]]:
    """The objects of the list at a path, with where they stand; nothing where there is no list."""
    found = maybe(node, *path)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield (*path, index), item


def protocol(document: Node) -> str | None:
    """Name of the energy protocol of a report of ours."""
    name = maybe(document, "mkframe", "energy", "protocol")
    return name if isinstance(name, str) else None


def has_rounds(document: Node) -> bool:
    """Whether anything was measured."""
    return next(objects(document, "rounds"), None) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One round of a report: the object, where it stands, and what the energy protocol adds to it (None where nothing)."""

    path: Path
    node: Node
    added: Any
    on_edges: bool

    def number(self, *path: str | int) -> Number:
        return number(self.node, *path)

    @property
    def repeats(self) -> int:
        return whole(self.node, "repeats", least=1)

    def energy_mj(self, start: Path, end: Path) -> Number:
        """What the counter moved by between two reads."""
        return self.number(*end, "energy_mj") - self.number(*start, "energy_mj")

    def seconds(self, start: Path, end: Path) -> Number:
        return self.number(*end, "time_s") - self.number(*start, "time_s")

    @property
    def run_s(self) -> Number:
        """Wall time of the run: between its reads, or where these are edges inside of it, as the protocol recorded it."""
        return number(self.added, "run_s") if self.on_edges else self.seconds(*MEASUREMENT)


MEASUREMENT: tuple[Path, Path] = (("measurement_start",), ("measurement_end",))
IDLES = ("idle_before", "idle_after")


def idle_window(name: str) -> tuple[Path, Path]:
    return (name, "start"), (name, "end")


def rounds(document: Node) -> Iterator[Round]:
    """Every object in the list of rounds."""
    on_edges = protocol(document) == EDGE_ALIGNED
    for path, node in objects(document, "rounds"):
        added = maybe(document, "mkframe", "energy", "rounds", path[-1])
        yield Round(path=path, node=node, added=added, on_edges=on_edges)


def finite(formula: Callable[..., Number], *arguments: Any) -> Number | None:
    """What a formula gives, None where float64 has no finite value for it (a window without length, overflow). Raises Absent."""
    try:
        value = formula(*arguments)
        return value if math.isfinite(value) else None
    except (ArithmeticError, ValueError):
        return None


def agree(stated: Number, rebuilt: Number, absolute: float = 0.0) -> bool:
    """Whether two figures are the same but for the order in which they were evaluated."""
    one, other = float(stated), float(rebuilt)
    return one == other or abs(one - other) <= max(RELATIVE * max(abs(one), abs(other)), absolute)


def held_against(
    rule: str, name: str, stated: Number, rebuilt: Number | None, words: str, path: Path, absolute: float = 0.0
) -> list[Finding]:
    """No finding where a stated figure is the rebuilt one; `words`: what it is rebuilt from."""
    if rebuilt is None:
        return [error(rule, f"{name} is {shown(stated)}, and {words} has no finite value", path)]
    if agree(stated, rebuilt, absolute):
        return []
    return [error(rule, f"{name} is {shown(stated)}, and {words} is {shown(rebuilt)}", path)]


Check = Callable[[Node], Iterable[Finding]]


def energy_rule(id: str, check: Check, says: str, *severities: Severity) -> Rule:
    """A rule for energy reports; an error where no severity is named."""
    return Rule(id=id, format=ENERGY, severities=severities or (Severity.ERROR,), says=says, check=partial(_of_document, id, check))


def _of_document(id: str, check: Check, subject: Subject) -> Iterator[Finding]:
    return bounded(id, check(subject.document))


def bounded(id: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """At most MAX_FINDINGS: a file must not turn a few bytes of its own into megabytes of ours."""
    left = iter(found)
    yield from islice(left, MAX_FINDINGS)
    rest = next(left, None)
    if rest is not None:
        yield Finding(severity=rest.severity, rule=id, pointer="", message=f"more than {MAX_FINDINGS} findings; the rest is not listed")
