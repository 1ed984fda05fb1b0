"""How old a report of ours is. None names the version of its schema, so that everything in it which came with a version tells it."""

from mkframe.validate.block_parts import block_cells, block_of
from mkframe.validate.comparison_parts import table
from mkframe.validate.rule import Subject

CELL_KEYS = ("rates", "kernels", "twin")
"""What schema 1.2 added to every cell."""
PEAKS = "peaks"
"""What it added to the device."""
_SOURCES = (
    "mkframe/peaks.py",
    "mkframe/model/peaks.py",
    "mkframe/report/peaks.py",
    "mkframe/run/classify.py",
    "mkframe/run/defences.py",
    "mkframe/run/stopped.py",
    "mkframe/sentences.py",
    "mkframe/settings/nodes.py",
    "mkframe/validate/rule.py",
)
"""Modules of every run that came with it or later: whoever ran them wrote these keys."""
_LAST_DAY = "2026-11-30"
"""The last day on which a report before it was written."""


def newer(subject: Subject) -> str | None:
    """What shows that a report of ours is of schema 1.2 or later, in words; None where nothing does. The document holds to its schema."""
    return subject.once("newer", _newer)


def _newer(subject: Subject) -> str | None:
    document, block = subject.document, block_of(subject.document)
    if not block:
        return None
    cells = block_cells(subject)
    for name in CELL_KEYS:
        if any(name in cell.record for cell in cells):
            return f"cells have {name}"
    if PEAKS in table(block, "device"):
        return "the device has peaks"
    if run := [name for name in _SOURCES if name in document["source_sha256"]]:
        return f"{run[0]} ran"
    return f"it is of {document['recorded_on']}" if document["recorded_on"] > _LAST_DAY else None
