"""What a reader of a report of ours should know, and what no rule can call wrong: warnings."""

import re
from collections.abc import Iterator

from mkframe.validate.block_parts import block_cells, block_of
from mkframe.validate.finding import Finding, Severity, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_YEARS = (2025, 2100)
"""The framework is not older, and a clock that says more is set wrong. No clock is asked: a finding must not depend on the day."""
_COUNTS = r"(?:mem|race|sync|init)check \d+ errors(?: and \d+ warnings)?(?: \(\d+ cells unchecked\))?"
_SANITIZERS = re.compile(
    rf"not run|{_COUNTS}(?:, {_COUNTS}){{0,3}} on \d+ cells; compute-sanitizer [\w.]+; result file SHA-256 [0-9a-f]{{64}}"
)
"""What a run writes: nothing was run, or what a result file of `sanitize` holds."""
_ZEROS = re.compile(r"0+")


def sources(subject: Subject) -> Iterator[Finding]:
    """Commit, hashes and date can name what ran and when."""
    document, block = subject.document, block_of(subject.document)
    if not block:
        return
    commit, dirty = document["source_commit"], block["environment"]["source_dirty"]
    place = ("mkframe", "environment", "source_dirty")
    if dirty is True:
        yield warning("sources", "the checkout held uncommitted changes: source_commit alone does not name the code", place)
    elif dirty is None and commit is not None:
        yield warning("sources", "nobody knows whether the checkout held uncommitted changes beside source_commit", place)
    if isinstance(commit, str) and _ZEROS.fullmatch(commit):
        yield warning("sources", "source_commit is all zeros, and names no commit", ("source_commit",))
    hashes = document["source_sha256"]
    if len(hashes) > 1 and len(set(hashes.values())) == 1:
        yield warning("sources", f"all {len(hashes)} files have one hash", ("source_sha256",))
    said = document.get("sanitizers", "not run")
    if not isinstance(said, str) or _SANITIZERS.fullmatch(said) is None:
        yield warning("sources", "no run writes this of sanitizers: somebody wrote it afterwards", ("sanitizers",))
    year = int(document["recorded_on"][:4])
    if not _YEARS[0] <= year <= _YEARS[1]:
        yield warning("sources", f"recorded_on is in the year {year}", ("recorded_on",))


def no_baseline(subject: Subject) -> Iterator[Finding]:
    """Where several engines of one form passed on a case, one of them is a baseline: else nothing is ranked."""
    passed: dict[tuple[str, int, str], list[bool]] = {}
    for cell in block_cells(subject):
        if cell.passed:
            passed.setdefault((*cell.key[:2], cell.form), []).append(cell.record["baseline"])
    without = [key for key, found in passed.items() if len(found) > 1 and not any(found)]
    if without:
        name, case, form = without[0]
        more = f", and so are {len(without) - 1} more" if len(without) > 1 else ""
        why = f"no engine of {form} form is a baseline on {shown(name)}[{case}]: nothing is ranked there{more}"
        yield warning("no-baseline", why, ("mkframe", "verdicts"))


DOUBT_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=(Severity.WARNING,), says=says, check=check, needs_schema=True)
    for id, check, says in (
        ("sources", sources, "commit, state of the checkout, hashes and date can name what ran and when"),
        ("no-baseline", no_baseline, "where several engines of one form passed, one is a baseline that the others are ranked against"),
    )
)
