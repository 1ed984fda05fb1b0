"""Dates of an energy report: they exist, and what was measured was measured after it had been verified."""

import re
from collections.abc import Iterator
from datetime import date

from mkframe.validate.energy_parts import Absent, Node, energy_rule, text
from mkframe.validate.finding import Finding, error, shown

_NAMES = ("verified_at_utc", "completed_at_utc")
_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9:]{8})(?:\.([0-9]{1,9}))?(?:Z|\+00:00)")


def _moment(document: Node, name: str) -> tuple[str, str, str] | None:
    """Day, time and fraction, which order as they are; None for text in another form, which is the schema's to report."""
    try:
        found = _TIME.fullmatch(text(document, name))
    except Absent:
        return None
    return None if found is None else (f"{found[1]}-{found[2]}-{found[3]}", found[4], (found[5] or "").ljust(9, "0"))


def dates(document: Node) -> Iterator[Finding]:
    """Both are dates of the calendar."""
    for name in _NAMES:
        moment = _moment(document, name)
        if moment is None:
            continue
        try:
            date.fromisoformat(moment[0])
        except ValueError:
            yield error("date", f"{shown(document[name])} is no date of the calendar", (name,))


def order(document: Node) -> Iterator[Finding]:
    """completed_at_utc >= verified_at_utc."""
    verified, completed = (_moment(document, name) for name in _NAMES)
    if verified is not None and completed is not None and completed < verified:
        why = f"completed_at_utc is {shown(document['completed_at_utc'])}, before verified_at_utc {shown(document['verified_at_utc'])}"
        yield error("completed", why, ("completed_at_utc",))


DATE_RULES = (
    energy_rule("date", dates, "dates are dates of the calendar"),
    energy_rule("completed", order, "completed_at_utc is not before verified_at_utc"),
)
