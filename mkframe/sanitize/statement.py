"""What a report says of sanitizers: a sentence that follows from the result file of a sanitizer run, and from nothing else."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkframe import canonical
from mkframe.errors import UnreadableError, UsageError
from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.sanitize.result import FORMAT, to_check
from mkframe.sanitize.tool import TOOLS

_FRAMEWORK = "mkframe/"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """One cell under one tool, as the file has it; counts are None where it could not be checked."""

    shape: Mapping[str, int]
    implementation: str
    options: Mapping[str, Any]
    errors: int | None
    warnings: int | None


_Key = tuple[str, int, str, str]  # set, case, engine, tool


@dataclass(frozen=True, kw_only=True, slots=True)
class SanitizerRun:
    """A result file of `sanitize`. `sha256`: of the file itself."""

    file: str
    sha256: str
    version: str
    tools: tuple[str, ...]
    workload: str
    precision: str
    device: str
    sources: Mapping[str, str]
    changed: tuple[str, ...]
    cells: Mapping[_Key, _Found]

    def check_plan(self, plan: RunPlan) -> None:
        """Raises UsageError where the file is of another workload, precision or device, or lacks a cell that the plan will measure."""
        here = {"workload": plan.workload, "precision": plan.precision.id, "device": plan.device.name}
        for name, ours in here.items():
            theirs = getattr(self, name)
            if theirs != ours:
                raise UsageError(f"sanitizers={self.file} is of {name} {theirs}, and this run of {ours}; run sanitize for this one")
        for case, cell in to_check(plan):
            for tool in self.tools:
                found = self.cells.get((case.set, case.index, cell.engine.id, tool))
                where = f"{cell.engine.id} on {case.set}[{case.index}] under {tool}"
                if found is None:
                    raise UsageError(f"sanitizers={self.file} lacks {where}; run sanitize with the engines and shapes of this run")
                other = _other(found, case, cell)
                if other is not None:
                    raise UsageError(
                        f"sanitizers={self.file} checked another {other} for {where}; run sanitize with the overrides of this run"
                    )

    def check_sources(self, sources: Mapping[str, str], *, all_of_them: bool) -> None:
        """Raises UsageError for a file of the run that the checked programs had with other contents, and with `all_of_them` for one of
        an engine or workload that they had not imported."""
        differing = [file for file, digest in sources.items() if self.sources.get(file, digest) != digest]
        if all_of_them:
            differing += [file for file in sources if not file.startswith(_FRAMEWORK) and file not in self.sources]
        differing += self.changed
        if differing:
            raise UsageError(f"sanitizers={self.file} is of other sources ({differing[0]}); run sanitize again")

    def sentence(self, plan: RunPlan) -> str:
        """Counts of every tool over the cells that the plan measures; see `check_plan`."""
        keys = [(case.set, case.index, cell.engine.id) for case, cell in to_check(plan)]
        tools = ", ".join(self._counts(tool, [self.cells[(*key, tool)] for key in keys]) for tool in self.tools)
        return f"{tools} on {len(keys)} cells; compute-sanitizer {self.version}; result file SHA-256 {self.sha256}"

    def _counts(self, tool: str, found: list[_Found]) -> str:
        errors, warnings = sum(one.errors or 0 for one in found), sum(one.warnings or 0 for one in found)
        unchecked = sum(one.errors is None for one in found)
        warned = f" and {warnings} warnings" if warnings else ""
        return f"{tool} {errors} errors{warned}" + (f" ({unchecked} cells unchecked)" if unchecked else "")


def _other(found: _Found, case: CasePlan, cell: CellPlan) -> str | None:
    if found.shape != dict(case.shape):
        return "shape"
    if found.implementation != cell.engine.implementation:
        return "implementation"
    return None if dict(found.options) == dict(cell.engine.options) else "choice of options"


def read_run(path: Path) -> SanitizerRun:
    """Raises UnreadableError for a file that cannot be read, or is no result of `sanitize`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"sanitizers={path}: cannot be read: {error.strerror}") from error
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        return SanitizerRun(
            file=str(path),
            sha256=canonical.sha256(data),
            version=_text(document["sanitizer"]["version"]),
            tools=_tools(document["tools"]),
            workload=_text(document["workload"]),
            precision=_text(document["precision"]),
            device=_text(document["device"]["name"]),
            sources={_text(file): _text(digest) for file, digest in document["source_sha256"].items()},
            changed=tuple(map(_text, document["sources_that_changed"])),
            cells=dict(_cells(document["cells"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"sanitizers={path} is no result of mkframe sanitize: {type(error).__name__}: {error}") from error


def _cells(cells: list[dict[str, Any]]) -> Iterator[tuple[_Key, _Found]]:
    for cell in cells:
        unchecked = cell["outcome"] == "unchecked"
        counts = [None if unchecked else _count(cell[name]) for name in ("errors", "warnings")]
        key = (_text(cell["set"]), _count(cell["case"]), _text(cell["engine"]), _text(cell["tool"]))
        found = _Found(
            shape=cell["shape"], implementation=_text(cell["implementation"]), options=cell["options"], errors=counts[0], warnings=counts[1]
        )
        yield key, found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {value!r:.40}")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"a count was expected, not {value!r:.40}")
    return value


def _tools(names: list[Any]) -> tuple[str, ...]:
    if not names or any(name not in TOOLS for name in names) or len(set(names)) != len(names):
        raise ValueError("its tools are none of ours")
    return tuple(names)
