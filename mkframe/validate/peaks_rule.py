"""Rates and shares of a report of ours: rebuilt from its costs, medians and peaks, and held against the peaks that it states."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import isclose
from typing import Any

from mkframe.model.peaks import DatasheetPeaks, MeasuredPeaks, PeaksRecord
from mkframe.peaks import Claim, above_measured, impossible, is_rotated, rates
from mkframe.validate.block_parts import block_cells
from mkframe.validate.comparison_parts import Path
from mkframe.validate.finding import Finding, error, warning
from mkframe.validate.rule import Subject

IMPOSSIBLE = "impossible-rate"
ABOVE_MEASURED = "above-measured-peak"
RATES = "rates"
_TOLERANCE = 1e-12
"""Relative: another writer may divide in another order."""


def peaks_findings(subject: Subject) -> Iterator[Finding]:
    """The document holds to its schema. A cell without times or without a cost claims nothing, and a report without peaks has nothing to
    hold a claim against."""
    block = subject.document.get("mkframe")
    if not isinstance(block, dict):
        return
    peaks = _peaks(block["device"].get("peaks"))
    for cell in block_cells(subject):
        if cell.record["cost"] is not None and cell.p50_ms is not None:
            yield from _of_cell(block, cell.record, _claim(block, cell.record, cell.p50_ms), peaks, cell.path)
        elif cell.record.get("rates") is not None:
            yield error(RATES, "rates stand in a cell without times or without a cost", (*cell.path, "rates"))


def _of_cell(block: Mapping[str, Any], cell: Mapping[str, Any], claim: Claim, peaks: PeaksRecord | None, place: Path) -> Iterator[Finding]:
    if "rates" in cell and not _same(cell["rates"], claim, peaks):
        yield error(RATES, "the rates do not follow from cost, median stream time and peaks of the report", (*place, "rates"))
    if peaks is not None and peaks.datasheet is not None:
        name = block["device"]["card"] or "the device"
        if (reason := impossible(claim, peaks.datasheet, name, block["precision"]["id"])) is not None:
            yield error(IMPOSSIBLE, f"{cell['engine']} passed, and {reason}", place)
    if peaks is not None and peaks.measured is not None and (reason := above_measured(claim, peaks.measured)) is not None:
        yield warning(ABOVE_MEASURED, f"{cell['engine']} {reason}", place)


def _same(given: Mapping[str, Any] | None, claim: Claim, peaks: PeaksRecord | None) -> bool:
    expected = rates(claim, peaks)
    if given is None or expected is None:
        return given is None and expected is None
    return all(_equal(given[name], value) for name, value in asdict(expected).items())


def _equal(given: float | None, expected: float | None) -> bool:
    if given is None or expected is None:
        return given is None and expected is None
    return isclose(given, expected, rel_tol=_TOLERANCE)


def _claim(block: Mapping[str, Any], cell: Mapping[str, Any], p50_ms: float) -> Claim:
    timing = block["config"].get("timing")
    method = timing.get("method") if isinstance(timing, dict) else None
    return Claim(
        bytes=cell["cost"]["bytes"],
        flops=cell["cost"]["flops"],
        p50_ms=p50_ms,
        rotated=is_rotated(block["timing"]["cache_state"], method),
        l2_bytes=block["device"]["l2_bytes"],
    )


def _peaks(stated: Mapping[str, Any] | None) -> PeaksRecord | None:
    if stated is None:
        return None
    datasheet, measured = stated["datasheet"], stated["measured"]
    return PeaksRecord(
        datasheet=None if datasheet is None else DatasheetPeaks(**datasheet),
        measured=None if measured is None else MeasuredPeaks(**measured),
    )
