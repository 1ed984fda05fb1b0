"""One side of a comparison: a report, its cells by what they are, and the samples beside it."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mkframe import stats
from mkframe.canonical import sha256
from mkframe.compare.samples import CellSamples, open_samples
from mkframe.compare.text import shape_label
from mkframe.errors import UnreadableError
from mkframe.model.report import Summary
from mkframe.text import printable
from mkframe.validate import SIZE_LIMIT, comparison_of
from mkframe.validate.finding import Finding, shown
from mkframe.validate.reader import read_file, read_stream

Shape = tuple[tuple[str, int], ...]
_ROUNDING = 1e-9  # a p50 written by another program
Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class CellKey:
    """Which cell: the same in both reports, wherever it stands in their plans. `label`: the shape for people."""

    set: str
    shape: Shape
    engine: str
    label: str = field(compare=False)

    @property
    def text(self) -> str:
        return f"{self.set} {self.label} {self.engine}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A cell of one report. `outcome` is `passed`, another outcome, or `failed` where the report does not say which.
    `record` is its entry in `mkframe.cells`; empty in other people's reports."""

    outcome: str
    reason: str | None = None
    stream: Summary | None = None
    samples: CellSamples | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.stream is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """`step_ms`: the step of the stream clock, None where unknown. `has_samples`: the samples file is there and belongs."""

    path: str
    sha256: str
    document: Document
    cells: Mapping[CellKey, Cell]
    step_ms: float | None
    has_samples: bool

    @property
    def block(self) -> Mapping[str, Any]:
        """What only our runner writes; empty in other people's reports."""
        block: Mapping[str, Any] = self.document.get("mkframe") or {}
        return block

    def timing_option(self, name: str) -> Any:
        """A key of the configuration's `timing`; None where it has none."""
        timing = self.block.get("config", {}).get("timing")
        return timing.get(name) if isinstance(timing, dict) else None

    @property
    def shapes(self) -> Mapping[tuple[str, Shape], str]:
        """Every shape of every set, with its name for people."""
        return {(key.set, key.shape): f"{key.set} {key.label}" for key in self.cells}

    @property
    def engines(self) -> Mapping[str, str]:
        return {key.engine: key.engine for key in self.cells}


def load(path: str | Path, stream: BinaryIO | None = None) -> Report:
    """Reads a valid comparison report and, where it lies beside it, its samples file. From `stream`, where one is given: `path` is its
    name then, and no samples lie beside it.

    Raises UnreadableError for anything else, and for samples that are not those of the report.
    """
    data = read_file(path, SIZE_LIMIT) if stream is None else read_stream(stream, SIZE_LIMIT)
    if isinstance(data, Finding):
        raise UnreadableError(f"{shown(str(path))}: {data.message}")
    found = comparison_of(data)
    if isinstance(found, str):
        hint = f"; see python -m mkframe validate {shlex.quote(str(path))}" if stream is None else ""
        raise UnreadableError(printable(f"{shown(str(path))} is no valid comparison report: {found}{hint}"))
    return _report(str(path), None if stream else Path(path).parent, sha256(data), found)


def _report(path: str, folder: Path | None, digest: str, document: Document) -> Report:
    """`folder`: where samples may lie, None for none."""
    block = document.get("mkframe")
    try:
        cells = dict(_cells(document))
        file = open_samples(folder, block["samples"], len(block["cells"])) if block and folder is not None else None
        if block and file is not None:
            process = tuple(block["timing"]["round_process"])
            cells = {key: _with_samples(key, cell, file.cell, process) if cell.passed else cell for key, cell in cells.items()}
    except UnreadableError as error:
        raise UnreadableError(f"{shown(path)}: {error}") from error
    return Report(path=path, sha256=digest, document=document, cells=cells, step_ms=_step_ms(block, cells), has_samples=file is not None)


def _step_ms(block: Mapping[str, Any] | None, cells: Mapping[CellKey, Cell]) -> float | None:
    """What the report says; in a report that does not, what its medians show."""
    if block:
        step: float | None = block["timing"]["timer_step_ms"]
        return step
    return stats.event_step_ms(np.array([cell.stream.p50_ms for cell in cells.values() if cell.stream is not None]))


def _cells(document: Document) -> Iterator[tuple[CellKey, Cell]]:
    """Cells with results, then those that only the plan knows (unsupported ones). Raises UnreadableError for a cell that
    stands in the report twice."""
    records: dict[CellKey, Mapping[str, Any]] = {}
    for record in (document.get("mkframe") or {}).get("cells", ()):
        _add(records, _key(record["set"], record["shape"], record["engine"]), record)
    seen: dict[CellKey, None] = {}
    for name, cases in document.items():
        if not _is_shape_set(cases):
            continue
        for case in cases:
            for engine, result in case["engines"].items():
                key = _key(name, case["shape"], engine)
                _add(seen, key, None)
                yield key, _cell(result, records.get(key, {}))
    for key, record in records.items():
        if key not in seen:
            yield key, Cell(outcome=record["outcome"], reason=record["reason"], record=record)


def _add(found: dict[CellKey, Any], key: CellKey, value: Any) -> None:
    if key in found:
        raise UnreadableError(f"set {shown(key.set)} names one shape twice for engine {shown(key.engine)}")
    found[key] = value


def _is_shape_set(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "engines" in value[0]


def _key(name: str, shape: Mapping[str, int], engine: str) -> CellKey:
    return CellKey(set=name, shape=tuple(sorted(shape.items())), engine=engine, label=shape_label(shape))


def _cell(result: Mapping[str, Any], record: Mapping[str, Any]) -> Cell:
    if not result["passed"]:
        return Cell(outcome=record.get("outcome", "failed"), reason=record.get("reason"), record=record)
    summary = result["stream_summary"]
    stream = Summary(**{name: summary[name] for name in ("count", "p50_ms", "p95_ms", "min_ms", "max_ms", "mean_ms")})
    return Cell(outcome="passed", stream=stream, record=record)


def _with_samples(key: CellKey, cell: Cell, read: Any, round_process: tuple[int, ...]) -> Cell:
    """`cell` with its samples. Raises UnreadableError where they do not rebuild its summary."""
    assert cell.stream is not None, "only cells that passed have samples to compare"
    if not cell.record:
        raise UnreadableError(f"engine {shown(key.engine)} of set {shown(key.set)} has times, but is not among mkframe.cells")
    place = f"{key.set}/{cell.record['case']}/{key.engine}"
    samples: CellSamples = read(place, round_process)
    median = float(np.median(samples.stream_ms))
    if samples.stream_ms.size != cell.stream.count or abs(median - cell.stream.p50_ms) > _ROUNDING * median:
        raise UnreadableError(f"the samples of {shown(place)} do not give the count and the p50_ms that the report states")
    return Cell(outcome=cell.outcome, reason=cell.reason, stream=cell.stream, samples=samples, record=cell.record)
