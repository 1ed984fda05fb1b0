"""The outcome of a comparison: every cell of both reports, the summary, the exit code, and its JSON document."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mkframe.compare.conditions import Difference, notes
from mkframe.compare.report import Cell, CellKey, Report
from mkframe.compare.verdict import Compared, compare_cell
from mkframe.errors import UsageError
from mkframe.model.outcome import Verdict
from mkframe.text import as_unicode

FORMAT = "compare/1"


class State(StrEnum):
    """Where a cell has numbers. REGRESSED: passed in BASE, was asked for in NEW and did not pass there."""

    COMPARED = "compared"
    REGRESSED = "regressed"
    RECOVERED = "recovered"
    FAILED = "failed in both"
    ONLY_BASE = "only in BASE"
    ONLY_NEW = "only in NEW"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellResult:
    """One cell. `compared` exists exactly for COMPARED. `reason` says why there are no numbers, or why it is undecided."""

    key: CellKey
    state: State
    base_ms: float | None
    new_ms: float | None
    compared: Compared | None
    reason: str | None

    @property
    def ratio(self) -> float | None:
        """NEW / BASE of the medians; None where one is missing or zero, or where float64 cannot hold it."""
        ratio = self.new_ms / self.base_ms if self.new_ms and self.base_ms else None
        return ratio if ratio and math.isfinite(ratio) else None

    def document(self) -> dict[str, Any]:
        found = self.compared.comparison if self.compared is not None else None
        return {
            "set": self.key.set,
            "shape": dict(self.key.shape),
            "engine": self.key.engine,
            "state": str(self.state),
            "base_p50_ms": self.base_ms,
            "new_p50_ms": self.new_ms,
            "verdict": None if found is None else str(found.verdict),
            "ratio": self.ratio,
            "ratio_low": None if found is None else found.low,
            "ratio_high": None if found is None else found.high,
            "rests_on": None if self.compared is None else self.compared.rests_on,
            "floor": None if self.compared is None else self.compared.floor,
            "floor_ms": None if self.compared is None else self.compared.floor_ms,
            "floors": None if self.compared is None else self.compared.floors,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A whole comparison. `fail_on`: how many per cent slower is still fine."""

    base: Report
    new: Report
    lifted: tuple[Difference, ...]
    notes: tuple[str, ...]
    cells: tuple[CellResult, ...]
    fail_on: float
    skip_failed: bool

    @property
    def exit_code(self) -> int:
        """1 for a cell that is SLOWER beyond `fail_on`, or that passed in BASE and did not in NEW; else 0."""
        return int(any(self._is_failure(cell) for cell in self.cells))

    def _is_failure(self, cell: CellResult) -> bool:
        if cell.compared is None:
            return cell.state is State.REGRESSED
        found = cell.compared.comparison
        return found.verdict is Verdict.SLOWER and found.ratio > 1 + self.fail_on / 100

    @property
    def failures(self) -> tuple[CellResult, ...]:
        """The cells that make the exit code 1."""
        return tuple(cell for cell in self.cells if self._is_failure(cell))

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict, and how many each reason to have none."""
        words = Counter(str(cell.compared.comparison.verdict if cell.compared is not None else cell.state) for cell in self.cells)
        return {word: words[word] for word in (*map(str, Verdict), *map(str, State)) if words[word]}

    @property
    def without_numbers(self) -> int:
        """How many cells have no ratio."""
        return sum(cell.ratio is None for cell in self.cells)

    @property
    def geometric_mean(self) -> float | None:
        """Of the ratios. None where a cell has no ratio, unless `skip_failed`: what is left out would be the bad news."""
        if self.without_numbers and not self.skip_failed:
            return None
        ratios = [cell.ratio for cell in self.cells if cell.ratio is not None]
        return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None

    def document(self) -> dict[str, Any]:
        """The outcome as plain JSON types. Ratios are NEW / BASE; intervals hold 99 %."""
        return {
            "format": FORMAT,
            "base": _side(self.base),
            "new": _side(self.new),
            "lifted": [{"field": difference.field, "text": difference.text} for difference in self.lifted],
            "notes": list(self.notes),
            "cells": [cell.document() for cell in self.cells],
            "counts": self.counts,
            "geometric_mean": self.geometric_mean,
            "cells_without_numbers": self.without_numbers,
            "fail_on_percent": self.fail_on,
            "exit_code": self.exit_code,
        }


def _side(report: Report) -> dict[str, Any]:
    document = report.document
    return {
        "path": as_unicode(report.path),
        "sha256": report.sha256,
        "recorded_on": document["recorded_on"],
        "source_commit": document["source_commit"],
        "has_samples": report.has_samples,
    }


def compare_reports(base: Report, new: Report, lifted: Iterable[Difference], *, fail_on: float = 0.0, skip_failed: bool = False) -> Outcome:
    """Compares two reports whose conditions hold (conditions.require_same). Raises UsageError where no cell is in both."""
    if not base.cells.keys() & new.cells.keys():
        raise UsageError("BASE and NEW have no cell (shape set, shape, engine) in common; there is nothing to compare")
    return Outcome(
        base=base,
        new=new,
        lifted=tuple(lifted),
        notes=tuple(notes(base, new)),
        cells=tuple(_results(base, new)),
        fail_on=fail_on,
        skip_failed=skip_failed,
    )


def _results(base: Report, new: Report) -> Iterator[CellResult]:
    """In the order of BASE, then what only NEW has."""
    shapes, engines = new.shapes, new.engines
    for key in {**base.cells, **new.cells}:
        one, other = base.cells.get(key), new.cells.get(key)
        # Asked for, and without a result all the same: other people's reports leave such cells out.
        asked = (key.set, key.shape) in shapes and key.engine in engines
        state = _state(one, other, asked)
        compared = compare_cell(key, base, new) if state is State.COMPARED else None
        yield CellResult(
            key=key, state=state, base_ms=_p50(one), new_ms=_p50(other), compared=compared, reason=_reason(state, one, other, compared)
        )


def _state(base: Cell | None, new: Cell | None, asked: bool) -> State:
    passed = base is not None and base.passed, new is not None and new.passed
    if passed == (True, True):
        return State.COMPARED
    if passed[0] and asked:
        return State.REGRESSED
    if new is None:
        return State.ONLY_BASE
    if base is None:
        return State.ONLY_NEW
    return State.RECOVERED if passed[1] else State.FAILED


def _p50(cell: Cell | None) -> float | None:
    return None if cell is None or cell.stream is None else cell.stream.p50_ms


def _reason(state: State, base: Cell | None, new: Cell | None, compared: Compared | None) -> str | None:
    if compared is not None:
        return compared.comparison.reason
    told = [
        f"{side}: {cell.outcome}{f': {cell.reason}' if cell.reason else ''}"
        for side, cell in (("BASE", base), ("NEW", new))
        if cell is not None and not cell.passed
    ]
    if state is State.REGRESSED and new is None:
        told.append("NEW: no result")
    return "; ".join(told) or None
