"""What a sanitizer run found, as data and as the JSON document that is written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.stamp import Source

FORMAT = "sanitize/1"


class Outcome(StrEnum):
    """CLEAN: the program did all of its work, its outputs were right, and the tool counted no error. ERRORS: the tool counted some.
    UNCHECKED: anything else; it says nothing about the engine."""

    CLEAN = "clean"
    ERRORS = "errors"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One engine on one case under one tool. Counts are None where the outcome is UNCHECKED, and then `reason` says why; with errors it
    says what became of the program. `calls`: calls with right outputs. `allocator`: "exact", where every tensor is an allocation of
    its own, or "caching", where torch's allocator hides writes behind a tensor from memcheck."""

    set: str
    case: int
    shape: Mapping[str, int]
    seed: int
    engine: str
    implementation: str
    options: Mapping[str, Any]
    tool: str
    outcome: Outcome
    errors: int | None
    warnings: int | None
    messages: tuple[str, ...]
    reason: str | None
    calls: int
    allocator: str
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Total:
    """Of one tool: cells by outcome, and errors and warnings of those that were checked."""

    cells: int
    clean: int
    unchecked: int
    errors: int
    warnings: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """`sources`: file -> SHA-256 of everything that the checked programs imported. `differing`: files that changed meanwhile."""

    plan: RunPlan
    source: Source
    version: str
    tools: tuple[str, ...]
    checks: tuple[Check, ...]
    sources: Mapping[str, str]
    differing: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        """Zero errors everywhere, and everything was checked."""
        return bool(self.checks) and not self.differing and all(check.outcome is Outcome.CLEAN for check in self.checks)

    def totals(self) -> dict[str, Total]:
        """By tool, in the order in which they were asked for."""
        return {tool: total(tuple(check for check in self.checks if check.tool == tool)) for tool in self.tools}

    def document(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "format": FORMAT,
            "passed": self.passed,
            "interrupted": self.interrupted,
            "sanitizer": {"name": "compute-sanitizer", "version": self.version},
            "tools": list(self.tools),
            "totals": {tool: asdict(found) for tool, found in self.totals().items()},
            "workload": plan.workload,
            "precision": plan.precision.id,
            "device": {
                "name": plan.device.name,
                "compute_capability": plan.device.compute_capability,
                "driver": plan.device.driver,
            },
            "source_commit": self.source.commit,
            "source_dirty": self.source.dirty,
            "source_sha256": dict(sorted(self.sources.items())),
            "sources_that_changed": list(self.differing),
            "unsupported": [
                {"set": case.set, "case": case.index, "engine": cell.engine.id, "reason": cell.unsupported}
                for case, cell in plan.cells()
                if cell.unsupported is not None
            ],
            "cells": [asdict(check) for check in self.checks],
        }


def total(checks: Sequence[Check]) -> Total:
    return Total(
        cells=len(checks),
        clean=sum(check.outcome is Outcome.CLEAN for check in checks),
        unchecked=sum(check.outcome is Outcome.UNCHECKED for check in checks),
        errors=sum(check.errors or 0 for check in checks),
        warnings=sum(check.warnings or 0 for check in checks),
    )


def to_check(plan: RunPlan) -> Iterator[tuple[CasePlan, CellPlan]]:
    """Cells that can run."""
    return ((case, cell) for case, cell in plan.cells() if cell.unsupported is None)
