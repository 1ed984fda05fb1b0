"""What pages are made of, and how parts of a document that may hold anything are put into words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mkframe.validate.energy_parts import Absent, at, maybe, number

LONGEST = 1000
MOST = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A heading with its lines. Words of the file stand in them as they are: whoever prints them escapes them."""

    title: str
    lines: tuple[str, ...]


def section(title: str, lines: Iterable[str]) -> Section:
    return Section(title=title, lines=tuple(lines) or ("The file says nothing of it.",))


def words(node: Any, *path: str | int) -> str | None:
    """The text at a path, cut to LONGEST; None for none, or an empty one."""
    value = maybe(node, *path)
    if not isinstance(value, str) or not value.strip():
        return None
    return value if len(value) <= LONGEST else value[:LONGEST] + "..."


def figure(node: Any, *path: str | int) -> float | None:
    """The number at a path."""
    try:
        return float(number(node, *path))
    except (Absent, OverflowError):
        return None


def length(node: Any, *path: str | int) -> int | None:
    """How many a list or an object at a path holds."""
    try:
        value = at(node, *path)
    except Absent:
        return None
    return len(value) if isinstance(value, list | dict) else None


def many(count: int, what: str) -> str:
    """`1 round`, `7 rounds`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a row, at most `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def at_most(lines: Sequence[str], what: str) -> list[str]:
    """The first MOST lines, and how many there are besides."""
    return [*lines[:MOST], *([f"... and {many(len(lines) - MOST, what)} more"] if len(lines) > MOST else [])]


def said(*lines: str | None) -> list[str]:
    """The lines that there are."""
    return [line for line in lines if line is not None]
