"""Texts for reports: no paths of the machine that ran, nothing that JSON or a terminal cannot hold."""

import re
from typing import Any

from mkframe.text import one_line

_PATH = re.compile(r"(?<![\w.:/])(?:~|/(?!/))[^\s'\"<>|:,;()\[\]{}]*/([^\s'\"<>|:,;()\[\]{}/]*)")


def without_paths(text: str) -> str:
    """`text` with every absolute path cut to `.../NAME`: folders name machines and users, and a report stands without them."""
    return _PATH.sub(lambda found: f".../{found[1]}" if found[1] else "...", text)


def storable(text: str) -> str:
    """`text` on one line, without absolute paths, with lone surrogates and control characters escaped."""
    return without_paths(one_line(text))


def storable_value(value: Any) -> Any:
    """Every text inside JSON-like `value` made `storable`."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_value(item) for key, item in value.items()}
    return [storable_value(item) for item in value] if isinstance(value, list | tuple) else value
