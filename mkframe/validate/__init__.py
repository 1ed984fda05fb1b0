"""Checks a report or a device card without a GPU. Needs neither torch nor hydra.

    result = validate("report.json")    # or a document: validate({"rounds": 5, ...})
    result.ok, result.exit_code, result.findings

What is wrong with a file is a finding, never an exception. The rules stand in rules.py.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mkframe.validate.collector import paused
from mkframe.validate.finding import Finding, Result, Severity, error
from mkframe.validate.formats import COMPARISON, TOLD_BY, a_word, recognise
from mkframe.validate.limited import MAX_FINDINGS, limited
from mkframe.validate.parser import parse
from mkframe.validate.reader import SIZE_LIMIT, read_file, read_stream
from mkframe.validate.reading_rules import FORMAT, READING_RULES
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.rules import RULES
from mkframe.validate.schema_rule import RULE as SCHEMA
from mkframe.validate.schema_rule import schema_findings
from mkframe.validate.values import value_faults

__all__ = [
    "READING_RULES",
    "RULES",
    "SIZE_LIMIT",
    "Finding",
    "Opened",
    "Result",
    "Rule",
    "Severity",
    "check_document",
    "check_schema",
    "comparison_of",
    "opened",
    "validate",
    "validate_stream",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A document with what was found in it, and whether by the strict profile. Without a format `document` is of no use."""

    document: Any
    result: Result
    strict: bool


def validate(
    source: str | Path | dict[str, Any],
    *,
    size_limit: int = SIZE_LIMIT,
    without: Collection[str] = (),
    strict: bool = False,
    payload: Path | None = None,
) -> Result:
    """Validates a file of at most `size_limit` bytes with the samples file beside it, or a document alone.

    `without`: ids of rules that are left out. `strict`: demands what only a report of ours can be held to. `payload`: the folder with
    the draws of an energy report, which are hashed again.
    """
    asked = _Asked(without=without, strict=strict, payload=payload)
    if isinstance(source, str | Path):
        return _from_bytes(read_file(source, size_limit), str(source), Path(source).parent, asked)
    return _of_values(source, asked)


def validate_stream(
    stream: BinaryIO, name: str, *, size_limit: int = SIZE_LIMIT, strict: bool = False, payload: Path | None = None
) -> Result:
    """Validates what a binary stream holds; `name` stands for the path."""
    return _from_bytes(read_stream(stream, size_limit), name, None, _Asked(strict=strict, payload=payload))


def check_document(document: Any, *, without: Collection[str] = (), strict: bool = False) -> Result:
    """Validates a document of plain Python types by every rule that needs no file."""
    return _of_values(document, _Asked(without=without, strict=strict))


def opened(data: bytes, path: str, folder: Path | None) -> Opened:
    """Takes a document out of bytes and validates it, for who goes on with it. `folder`: where the file lies, None for what is no file.

    A comparison report of ours that lies in a folder is held to the strict profile, so that what its samples give is rebuilt.
    """
    parsed = parse(data)
    if parsed.faults:
        return Opened(document={}, result=Result(path=path, format=None, findings=parsed.faults), strict=False)
    document = parsed.document
    strict = folder is not None and recognise(document) == COMPARISON and isinstance(document.get("mkframe"), dict)
    return Opened(document=document, result=_check(document, _Asked(strict=strict), path, folder), strict=strict)


def comparison_of(data: bytes) -> dict[str, Any] | str:
    """The comparison report that bytes hold, where nothing in it is an error; else the reason why they hold none, as a clause."""
    parsed = parse(data)
    first = parsed.faults[0] if parsed.faults else None
    if first is None:
        result = _check(parsed.document, _Asked())  # bytes were parsed: no need to look for what JSON has not
        if result.ok and result.format == COMPARISON:
            document: dict[str, Any] = parsed.document
            return document
        first = result.first_error
    return f"it is {a_word(str(result.format))}" if first is None else first.message


def check_schema(document: Any) -> Result:
    """Validates a document of plain Python types by its schema alone, as a writer does before it writes."""
    return _of_values(document, _Asked(without={rule.id for rule in RULES} - {SCHEMA}))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    """What a caller may choose."""

    without: Collection[str] = ()
    strict: bool = False
    payload: Path | None = None


def _of_values(document: Any, asked: _Asked) -> Result:
    faults = value_faults(document)
    return Result(path=None, format=None, findings=tuple(faults)) if faults else _check(document, asked)


def _from_bytes(data: bytes | Finding, path: str, folder: Path | None, asked: _Asked) -> Result:
    if isinstance(data, Finding):
        return Result(path=path, format=None, findings=(data,))
    parsed = parse(data)
    if parsed.faults:
        return Result(path=path, format=None, findings=parsed.faults)
    return _check(parsed.document, asked, path, folder)


def _check(document: Any, asked: _Asked, path: str | None = None, folder: Path | None = None) -> Result:
    format = recognise(document)
    if format is None:
        return Result(path=path, format=None, findings=(error(FORMAT, TOLD_BY),))
    subject = Subject(document=document, folder=folder, strict=asked.strict, payload=asked.payload)
    with paused():
        return Result(path=path, format=format, findings=tuple(_findings(subject, format, asked.without)))


def _findings(subject: Subject, format: str, without: Collection[str]) -> list[Finding]:
    """What every rule of the format says. A document that breaks its schema in too many places to list is asked nothing more."""
    findings: list[Finding] = []
    holds_to_schema: bool | None = None
    for rule in RULES:
        if rule.format != format or rule.id in without or (rule.needs_file and subject.folder is None):
            continue
        if rule.needs_schema and holds_to_schema is None:  # the schema rule was left out; those that need it still do
            holds_to_schema = not any(schema_findings(subject.document, format))
        if rule.needs_schema and not holds_to_schema:
            continue
        found = limited(rule.id, rule.check(subject))
        findings += found
        if rule.id == SCHEMA:
            holds_to_schema = not any(finding.severity is Severity.ERROR for finding in found)
            if len(found) > MAX_FINDINGS:
                break
    return findings
