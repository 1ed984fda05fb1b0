"""What the rules for device cards share: walking a card, and entries that stand in it twice."""

from collections.abc import Iterator, Sequence
from typing import Any

from mkframe.validate.finding import Finding, error

Card = dict[str, Any]
Path = tuple[str | int, ...]


def objects(node: Any, path: Path = ()) -> Iterator[tuple[Path, Card]]:
    """Every object of a document, with where it stands."""
    if isinstance(node, dict):
        yield path, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from objects(value, (*path, key))


def at(card: Card, path: Path) -> Any:
    """The value at a path that exists."""
    found: Any = card
    for token in path:
        found = found[token]
    return found


def repeated(rule: str, entries: Sequence[Card], place: Path, identity: tuple[str, ...]) -> Iterator[Finding]:
    """A finding for every entry whose keys `identity` hold what an entry before it holds."""
    first: dict[tuple[Any, ...], int] = {}
    for index, entry in enumerate(entries):
        before = first.setdefault(tuple(entry[name] for name in identity), index)
        if before != index:
            yield error(rule, f"the same {', '.join(identity)} as item {before}", (*place, index))
