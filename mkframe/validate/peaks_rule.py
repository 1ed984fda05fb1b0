"""Rates and shares of a report of ours: rebuilt from its costs, medians and peaks, and held against the peaks that it states."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from math import isclose
from typing import Any

from mkframe.model.peaks import DatasheetPeaks, MeasuredPeaks, PeaksRecord
from mkframe.peaks import Claim, above_measured, impossible, is_rotated, rates
from mkframe.validate.finding import Finding, error, warning

IMPOSSIBLE = "impossible-rate"
ABOVE_MEASURED = "above-measured-peak"
RATES = "rates"
_TOLERANCE = 1e-12
"""Relative: another writer may divide in another order."""

Medians = Mapping[tuple[str, str, str], float]
"""(shape set, shape as JSON, engine) -> median stream time in ms."""


def peaks_findings(document: dict[str, Any]) -> Iterator[Finding]:
    """`document` holds to its schema. A cell without times or without a cost claims nothing, and a report without peaks has nothing to
    hold a claim against."""
    block = document.get("mkframe")
    if not isinstance(block, dict):
        return
    peaks, medians = _peaks(block["device"].get("peaks")), _medians(document)
    for index, cell in enumerate(block["cells"]):
        p50_ms = medians.get((cell["set"], _key(cell["shape"]), cell["engine"]))
        if cell["outcome"] == "passed" and cell["cost"] is not None and p50_ms is not None:
            yield from _of_cell(block, cell, _claim(block, cell, p50_ms), peaks, index)
        elif cell.get("rates") is not None:
            yield error(RATES, "rates stand in a cell without times or without a cost", ("mkframe", "cells", index, "rates"))


def _of_cell(block: Mapping[str, Any], cell: Mapping[str, Any], claim: Claim, peaks: PeaksRecord | None, index: int) -> Iterator[Finding]:
    place = ("mkframe", "cells", index)
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


def _medians(document: Mapping[str, Any]) -> Medians:
    return {
        (name, _key(case["shape"]), engine): result["stream_summary"]["p50_ms"]
        for name, cases in document.items()
        if isinstance(cases, list)
        for case in cases
        if isinstance(case, dict) and "engines" in case
        for engine, result in case["engines"].items()
        if "stream_summary" in result
    }


def _key(shape: Mapping[str, int]) -> str:
    return json.dumps(shape, sort_keys=True)
