"""The findings of validate, summed up."""

from mkframe.explain.page import many
from mkframe.validate import Result, Severity
from mkframe.validate.finding import Finding, readable

_RULES = 8
_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def findings(result: Result) -> list[str]:
    """Counts, and the first error or warning of each rule. What cannot be checked from the file is counted with neither."""
    by_severity = {severity: [f for f in result.findings if f.severity is severity] for severity in _WORDS}
    counts = ", ".join(many(len(found), _WORDS[severity]) for severity, found in by_severity.items())
    lines = [f"{counts}{'' if result.ok else ': the file contradicts itself or its schema, and nothing above is safe to rely on'}."]
    for found in by_severity.values():
        lines += _by_rule(found)
    return lines


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
