"""What of a rule's findings is listed: no more than anybody reads, and one printable line each, whatever a file makes a rule say."""

from collections.abc import Iterable
from dataclasses import replace

from mkframe.text import printable
from mkframe.validate.finding import Finding, Severity

MAX_FINDINGS = 10_000
"""Of one rule and one severity."""


def limited(rule: str, findings: Iterable[Finding]) -> list[Finding]:
    """The first MAX_FINDINGS of each severity, and a last one that says that there are more. Warnings never hide an error; after
    MAX_FINDINGS errors the rule is asked no further."""
    listed: list[Finding] = []
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
        if counts[finding.severity] <= MAX_FINDINGS:
            listed.append(finding if finding.message.isprintable() else replace(finding, message=printable(finding.message)))
        elif counts[finding.severity] == MAX_FINDINGS + 1:
            more = f"more than {MAX_FINDINGS} findings of this kind; the rest is not listed"
            listed.append(Finding(severity=finding.severity, rule=rule, pointer="", message=more))
        if counts[Severity.ERROR] > MAX_FINDINGS:
            break
    return listed
