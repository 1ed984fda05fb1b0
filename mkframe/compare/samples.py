"""The samples file beside a report, for those who compare."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkframe.canonical import sha256
from mkframe.errors import UnreadableError
from mkframe.validate.finding import Finding, shown
from mkframe.validate.reader import SIZE_LIMIT, read_file
from mkframe.validate.samples_file import LIMIT, CellSamples, SamplesFile

__all__ = ["LIMIT", "CellSamples", "SamplesFile", "open_samples"]


def open_samples(folder: Path, record: Mapping[str, Any], cells: int) -> SamplesFile | None:
    """The samples file that a report names, or None where it does not lie beside the report.

    Raises UnreadableError where its name leads elsewhere, or its SHA-256 is not the one in the report.
    """
    name = record["file"]
    if name in ("", ".", "..") or any(character in name for character in "/\\\0"):
        raise UnreadableError(f"the report names the samples file {shown(name)}, which is not a bare file name")
    path = folder / name
    if not os.path.lexists(path):
        return None
    data = read_file(path, SIZE_LIMIT, named=False)
    if isinstance(data, Finding):
        raise UnreadableError(f"samples file {shown(name)}: {data.message}")
    if sha256(data) != record["sha256"]:
        raise UnreadableError(
            f"samples file {shown(name)}: its SHA-256 is not the one in the report; it was changed or belongs to another run"
        )
    return SamplesFile(data, shown(name), cells)
