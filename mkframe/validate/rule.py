"""What a rule is, and what it gets to see."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mkframe.validate.finding import Finding, Severity

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What is validated. `folder` is where the file lies, None for what did not come from a file. `strict`: the profile that demands
    everything that a report of ours can be held to; `payload` the folder of draws that was named, if any. `memo` holds what rules
    share, so that nothing is read or rebuilt twice."""

    document: dict[str, Any]
    folder: Path | None = None
    strict: bool = False
    payload: Path | None = None
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, name: str, make: "Callable[[Subject], T]") -> T:
        """What `make` gives for this subject, made when it is first asked for. `name` belongs to `make` alone."""
        if name not in self.memo:
            self.memo[name] = make(self)
        found: T = self.memo[name]
        return found


Check = Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One thing that a document of one format must hold to.

    `id` stands in every finding of it. `says`: what it demands or tells, in one line. `needs_schema`: it is asked only where the
    document holds to its schema; every other rule takes any JSON, and passes over parts that are not what they must be: those are
    the schema's to report. `needs_file`: it is asked only of a document that was read from a file.
    """

    id: str
    format: str
    severities: tuple[Severity, ...]
    says: str
    check: Check
    needs_schema: bool = False
    needs_file: bool = False
