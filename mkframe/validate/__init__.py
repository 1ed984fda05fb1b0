"""Checks a report or a device card without a GPU: reading, JSON, format, schema; of a report the rates and the hash of its samples
file, of a card whether its figures agree. Needs neither torch nor hydra.

    result = validate("report.json")    # or a document: validate({"rounds": 5, ...})
    result.ok, result.exit_code, result.findings

What is wrong with a file is a finding, never an exception. Rates are recomputed from the medians; medians are not from the samples.
"""

from pathlib import Path
from typing import Any, BinaryIO

from mkframe.validate.finding import Finding, Result, Severity, error
from mkframe.validate.formats import TOLD_BY, recognise
from mkframe.validate.parser import parse
from mkframe.validate.reader import SIZE_LIMIT, read_file, read_stream
from mkframe.validate.rules import CONTENT_RULES, FILE_RULES, RULES
from mkframe.validate.values import value_faults

__all__ = ["SIZE_LIMIT", "Finding", "Result", "Severity", "check_document", "validate", "validate_stream"]


def validate(source: str | Path | dict[str, Any], *, size_limit: int = SIZE_LIMIT) -> Result:
    """Validates a file of at most `size_limit` bytes with the samples file beside it, or a document alone."""
    if isinstance(source, str | Path):
        return _from_bytes(read_file(source, size_limit), str(source), Path(source).parent)
    return check_document(source)


def validate_stream(stream: BinaryIO, name: str, *, size_limit: int = SIZE_LIMIT) -> Result:
    """Validates what a binary stream holds; `name` stands for the path."""
    return _from_bytes(read_stream(stream, size_limit), name)


def check_document(document: Any) -> Result:
    """Validates a document of plain Python types, as a writer does before it writes."""
    faults = value_faults(document)
    return Result(path=None, format=None, findings=tuple(faults)) if faults else _check(document)


def _from_bytes(data: bytes | Finding, path: str, folder: Path | None = None) -> Result:
    if isinstance(data, Finding):
        return Result(path=path, format=None, findings=(data,))
    parsed = parse(data)
    return Result(path=path, format=None, findings=parsed.faults) if parsed.faults else _check(parsed.document, path, folder)


def _check(document: Any, path: str | None = None, folder: Path | None = None) -> Result:
    format = recognise(document)
    if format is None:
        return Result(path=path, format=None, findings=(error("format", TOLD_BY),))
    findings = tuple(finding for rule in RULES[format] for finding in rule(document))
    if not findings:
        findings = tuple(finding for rule in CONTENT_RULES[format] for finding in rule(document))
        if folder is not None:
            findings += tuple(finding for file_rule in FILE_RULES[format] for finding in file_rule(document, folder))
    return Result(path=path, format=format, findings=findings)
