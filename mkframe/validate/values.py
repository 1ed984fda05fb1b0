"""Values that a Python document can hold and JSON cannot: found wherever they stand."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from mkframe.validate.finding import Finding, error, shown

RULE = "json"
MAX_DEPTH = 100
MAX_KEY = 5000
"""Characters of a key: it stands in the pointer of every finding below it."""
MAX_FAULTS = 100

_Path = tuple[Any, str | int] | None  # (path of the parent, key or index); None is the root


class NotJson:
    """Stands in a parsed document where the text held something that JSON or float64 does not have."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why


class Repeated(dict[str, Any]):
    """An object of a parsed document whose text named `keys` more than once."""

    keys_repeated: tuple[str, ...] = ()


def too_deep(path: _Path = None) -> Finding:
    return error(RULE, f"nested deeper than {MAX_DEPTH} levels", _tokens(path))


def value_faults(document: Any) -> list[Finding]:
    """One finding for each value that is not JSON: NaN and infinities, numbers beyond float64, lone surrogates, repeated
    keys, keys that are too long or no strings, other Python types, and nesting beyond MAX_DEPTH (the first one ends the search).

    At most MAX_FAULTS are listed; a last finding says that there are more.
    """
    found = list(islice(_faults(document), MAX_FAULTS + 1))
    if len(found) > MAX_FAULTS:
        found[MAX_FAULTS] = error(RULE, f"more than {MAX_FAULTS} values that are not JSON; the rest is not listed")
    return found


def _faults(document: Any) -> Iterator[Finding]:
    stack: list[tuple[Any, _Path, int]] = []
    yield from _look(document, None, 0, stack)
    while stack:
        container, path, depth = stack.pop()
        if depth > MAX_DEPTH:
            yield too_deep(path)
            return
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in items:
            if isinstance(container, dict):
                why = _key_fault(key)
                if why:
                    yield error(RULE, why, _tokens(path))
                    continue
            yield from _look(value, (path, key), depth, stack)


def _look(value: Any, path: _Path, depth: int, stack: list[tuple[Any, _Path, int]]) -> Iterator[Finding]:
    if isinstance(value, dict | list):
        if isinstance(value, Repeated):
            yield from (error(RULE, "the key stands more than once in its object", _tokens((path, key))) for key in value.keys_repeated)
        stack.append((value, path, depth + 1))
        return
    why = _scalar_fault(value)
    if why:
        yield error(RULE, why, _tokens(path))


def _key_fault(key: object) -> str | None:
    if not isinstance(key, str):
        return f"a key is a Python {type(key).__name__}, must be a string"
    if len(key) > MAX_KEY:
        return f"the key {shown(key)} has {len(key)} characters, more than {MAX_KEY}"
    return f"the key {shown(key)} holds a lone surrogate" if _has_surrogate(key) else None


def _scalar_fault(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return "the text holds a lone surrogate" if _has_surrogate(value) else None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{_constant(value)} is not a JSON number"
    if isinstance(value, int):
        return None if fits_float64(value) else "the integer is beyond float64"
    if isinstance(value, NotJson):
        return value.why
    return f"a Python {type(value).__name__} is no JSON type"


def fits_float64(value: int) -> bool:
    """Whether an integer lies in float64's range."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _constant(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _has_surrogate(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _tokens(path: _Path) -> list[str | int]:
    tokens: list[str | int] = []
    while path is not None:
        path, token = path
        tokens.append(token)
    return tokens[::-1]
