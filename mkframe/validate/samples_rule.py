"""The samples file that a report of ours names: it lies beside the report and is the one whose hash the report holds."""

from collections.abc import Iterator
from pathlib import Path

from mkframe.canonical import sha256
from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.reader import SIZE_LIMIT, read_file
from mkframe.validate.rule import Subject

RULE = "samples"
PLACE = ("mkframe", "samples")


def samples_findings(subject: Subject) -> Iterator[Finding]:
    """The document holds to its schema and was read from a file. Reports of others name no samples file."""
    if isinstance(subject.document.get("mkframe"), dict):
        data = samples_bytes(subject)
        if isinstance(data, Finding):
            yield data


def samples_bytes(subject: Subject) -> bytes | Finding:
    """The samples file, read once and checked against its hash, or why it cannot be had.

    The name is a bare one, and links are not followed: a report cannot make us read anything else.
    """
    return subject.once("samples file", _read)


def _read(subject: Subject) -> bytes | Finding:
    assert subject.folder is not None, "a rule that needs a file"
    record = subject.document["mkframe"]["samples"]
    name = record["file"]
    if Path(name).name != name:
        return error(RULE, f"{shown(name)} is not a bare file name", PLACE)
    path = subject.folder / name
    if path.is_symlink():
        return error(RULE, f"{name} is a link; the samples file itself must lie beside the report", PLACE)
    data = read_file(path, SIZE_LIMIT, follow_link=False, named=False)
    if isinstance(data, Finding):
        return error(RULE, f"{name} beside the report: {data.message}", PLACE)
    if sha256(data) != record["sha256"]:
        return error(RULE, f"{name} has another SHA-256 than the report says; it was changed, or belongs to another run", PLACE)
    return data
