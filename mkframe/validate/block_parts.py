"""What the rules for reports of ours share: the cells of the `mkframe` block, and what the report says of each."""

from dataclasses import dataclass
from typing import Any

from mkframe.model.outcome import Outcome
from mkframe.model.plan import GRAPH_SUFFIX, is_chained
from mkframe.validate.comparison_parts import (
    Case,
    EngineEntry,
    Path,
    Shape,
    cases,
    entry_of,
    items,
    median_ms,
    shape_of,
    shape_sets,
    table,
    whole,
)
from mkframe.validate.rule import Subject

_OUTCOMES = tuple(Outcome)
FORMS = ("eager", "graph")
Key = tuple[str, int, str]
"""(shape set, index of the case in it, engine), as the plan names a cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCell:
    """One entry of mkframe.cells at `path`, with the entry under its shape set, None where there is none."""

    key: Key
    path: Path
    shape: Shape | None
    record: dict[str, Any]
    entry: EngineEntry | None

    @property
    def passed(self) -> bool:
        return self.record.get("outcome") == "passed"

    @property
    def supported(self) -> bool:
        return self.record.get("outcome") != "unsupported"

    @property
    def since_1_2(self) -> bool:
        """Whether the cell has what schema 1.2 added to every cell; rules are milder to older ones (age.py, `one-version`)."""
        return "rates" in self.record

    @property
    def form(self) -> str:
        """How a call is launched, by the id: the graph form of an engine has a suffix of its own."""
        return "graph" if self.key[2].endswith(GRAPH_SUFFIX) else "eager"

    @property
    def p50_ms(self) -> float | None:
        """Median stream time; None for a cell without."""
        return None if self.entry is None or not self.passed else median_ms(self.entry.result)

    @property
    def text(self) -> str:
        return f"{self.key[2]} on {self.key[0]}[{self.key[1]}]"


def block_of(document: dict[str, Any]) -> dict[str, Any]:
    """The block; an empty one in a report of others."""
    return table(document, "mkframe")


def chained(block: dict[str, Any]) -> bool:
    """Whether the samples of a report of ours are slopes between chains of calls."""
    return is_chained(table(block, "timing").get("protocol"), table(block, "config", "timing").get("method"))


def known_cases(subject: Subject) -> dict[tuple[str, Shape], Case]:
    """The cases of every shape set by set and shape, the first one where a shape stands twice. Looked up once for each case or cell,
    never for each engine of a case: a shape may be as long as the file."""
    return subject.once("known cases", _known_cases)


def _known_cases(subject: Subject) -> dict[tuple[str, Shape], Case]:
    found: dict[tuple[str, Shape], Case] = {}
    for case in cases(subject):
        if case.shape is not None:
            found.setdefault((case.set, case.shape), case)
    return found


def block_cells(subject: Subject) -> list[BlockCell]:
    """The cells that say which they are and what became of them."""
    return subject.once("block cells", _block_cells)


def _block_cells(subject: Subject) -> list[BlockCell]:
    records = items(subject.document, "mkframe", "cells")
    known = known_cases(subject) if records else {}
    cells = []
    for index, record in enumerate(records):
        key = key_of(record)
        if key is not None and record.get("outcome") in _OUTCOMES:
            shape = shape_of(record.get("shape"))
            case = None if shape is None else known.get((key[0], shape))
            entry = None if case is None or key[2] not in case.engines else entry_of(case, key[2])
            cells.append(BlockCell(key=key, path=("mkframe", "cells", index), shape=shape, record=record, entry=entry))
    return cells


def key_of(record: Any, engine: str = "engine") -> Key | None:
    """Which cell a record is about. `engine`: the key that names the engine."""
    if not isinstance(record, dict):
        return None
    name, case, of = record.get("set"), whole(record.get("case")), record.get(engine)
    return (name, case, of) if isinstance(name, str) and case is not None and case >= 0 and isinstance(of, str) else None


def all_known(subject: Subject) -> bool:
    """Whether every cell and every case says which it is: only then is something missing that is not there."""
    records = items(subject.document, "mkframe", "cells")
    sets = [found for _, found in shape_sets(subject.document)]
    return (
        len(block_cells(subject)) == len(records) > 0
        and all(cell.shape is not None for cell in block_cells(subject))
        and all(isinstance(subject.document.get(cell.key[0], []), list) for cell in block_cells(subject))
        and len(cases(subject)) == sum(map(len, sets))
        and all(case.shape is not None and case.engines for case in cases(subject))
    )


def workers(subject: Subject) -> frozenset[int]:
    """The worker processes that measured floors: at least one for each process of the protocol, more where one had died."""
    return subject.once("workers", _workers)


def _workers(subject: Subject) -> frozenset[int]:
    found = (whole(table(floor).get("process")) for floor in items(subject.document, "mkframe", "timing", "floors"))
    return frozenset(worker for worker in found if worker is not None and worker >= 0)
