"""The findings of validate, summed up, and what they rest on."""

from typing import Any

from mkframe.explain.page import many
from mkframe.validate import Result, Severity
from mkframe.validate.energy_parts import maybe, objects
from mkframe.validate.finding import Finding, readable
from mkframe.validate.formats import COMPARISON, ENERGY

_RULES = 8
_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


_NO_SAMPLES = {
    "schema": "the report does not hold to its schema",
    "samples": "the samples file is missing, or another one than the report names",
    "samples-file": "the samples file does not hold what the report says",
}


def findings(document: dict[str, Any], result: Result, *, strict: bool) -> list[str]:
    """Counts, what was rebuilt, and the first error or warning of each rule. What cannot be checked from the file is counted with
    neither."""
    by_severity = {severity: [f for f in result.findings if f.severity is severity] for severity in _WORDS}
    counts = ", ".join(many(len(found), _WORDS[severity]) for severity, found in by_severity.items())
    lines = [f"{counts}{'' if result.ok else ': the file contradicts itself or its schema, and nothing above is safe to rely on'}."]
    rebuilt = _rebuilt(document, result, strict)
    lines += [] if rebuilt is None else [rebuilt]
    for found in by_severity.values():
        lines += _by_rule(found)
    return lines


def _rebuilt(document: dict[str, Any], result: Result, strict: bool) -> str | None:
    """What of the figures does not rest on the report's own word."""
    if result.format == ENERGY:
        return "Energies and powers were rebuilt from the readings in the file." if any(objects(document, "rounds")) else None
    if result.format != COMPARISON:
        return None
    broken = {finding.rule for finding in result.findings if finding.severity is Severity.ERROR}
    why = next((why for rule, why in _NO_SAMPLES.items() if rule in broken), None)
    if not isinstance(document.get("mkframe"), dict):
        why = "a report of others names none"
    elif not strict:
        why = "it was not read from a folder where they could lie"
    if why is not None:
        return f"NOT rebuilt from samples: {why}. Medians, intervals and verdicts above are what the report states."
    if maybe(document, "mkframe", "timing", "processes") == 1:
        return (
            "Rebuilt from the samples beside the report: summaries and ratios; the intervals of one process rest on the report's word. "
            "Where a figure differs, that is an error."
        )
    if not any("rates" in cell for _, cell in objects(document, "mkframe", "cells")):
        return "Rebuilt from the samples beside the report: summaries; intervals and verdicts rest on the report's word."
    return (
        "Rebuilt from the samples beside the report: summaries, intervals, ratios and verdicts. Where a figure differs, that is an error."
    )


def _by_rule(found: list[Finding]) -> list[str]:
    rules: dict[str, list[Finding]] = {}
    for finding in found:
        rules.setdefault(finding.rule, []).append(finding)
    lines = [_line(same[0], len(same)) for same in list(rules.values())[:_RULES]]
    return [
        *lines,
        *([f"... and {many(len(rules) - _RULES, 'rule')} more; `mkframe validate` lists all findings"] if len(rules) > _RULES else []),
    ]


def _line(finding: Finding, count: int) -> str:
    times = f", and in {many(count - 1, 'more place')}" if count > 1 else ""
    return f"{finding.severity} {finding.rule} at {readable(finding.pointer)}{times}: {finding.message}"
