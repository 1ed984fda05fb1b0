"""The samples file that a report of ours names: it lies beside the report and is the one whose hash the report holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkframe.canonical import sha256
from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.reader import SIZE_LIMIT, read_file

RULE = "samples"
_PLACE = ("mkframe", "samples")


def samples_findings(document: dict[str, Any], folder: Path) -> Iterator[Finding]:
    """`document` holds to its schema and was read from a file in `folder`. Reports of others name no samples file.

    The name is a bare one, and links are not followed: a report cannot make us read anything else.
    """
    block = document.get("mkframe")
    if not isinstance(block, dict):
        return
    name, expected = block["samples"]["file"], block["samples"]["sha256"]
    if Path(name).name != name:
        yield error(RULE, f"{shown(name)} is not a bare file name", _PLACE)
        return
    path = folder / name
    if path.is_symlink():
        yield error(RULE, f"{name} is a link; the samples file itself must lie beside the report", _PLACE)
        return
    data = read_file(path, SIZE_LIMIT, follow_link=False)
    if isinstance(data, Finding):
        yield error(RULE, f"{name} beside the report: {data.message}", _PLACE)
    elif sha256(data) != expected:
        yield error(RULE, f"{name} has another SHA-256 than the report says; it was changed, or belongs to another run", _PLACE)
