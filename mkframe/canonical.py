"""One way to write JSON, to hash, and to put a file in place whole or not at all."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from mkframe.errors import UnreadableError


def dumps(document: Any) -> str:
    """JSON as our files hold it: indent 2, insertion order, trailing newline.

    Raises ValueError for NaN and infinities, which JSON does not have.
    """
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def line(document: Any) -> str:
    """JSON on one line, for journals."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def digest(document: Any) -> str:
    """SHA-256 (64 lower-case hex digits) of a document, whatever the order of its keys."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return sha256(text.encode())


MOST_HASHED = 2**26
"""Bytes that is_digest hashes at most in search of how the numbers of options were written."""
_FLOATS = ("_s", "_us", "_ms", "_flops", "footprint")
"""How keys of configurations end whose numbers are floats: times, rates, a share of a cache."""
_PART_BYTES = 16
"""What joining one part costs, in bytes hashed."""


def is_digest(stated: str, document: Any) -> bool:
    """Whether a hash is that of a document or of its equal: to JSON 600.0 and 600 are one number, and other programs write it either way.

    Tried as it stands, then with whole numbers without a point but where their key ends in a unit that we hold as a float. An engine alone
    knows the types of its options, and the factor of a range is of either type: all of one name are tried without and with a point, all
    names alike first, then ever more of them apart, until MOST_HASHED bytes were hashed.
    """
    if stated in (digest(document), sha256(_joined(_parts(document, ()), frozenset()))):
        return True
    parts = _parts(document, _FLOATS)
    names = sorted({part[0] for part in parts if isinstance(part, tuple)})
    hashed = 0
    for floats in _choices(names):
        text = _joined(parts, floats)
        hashed += len(text) + _PART_BYTES * len(parts)
        if stated == sha256(text):
            return True
        if hashed > MOST_HASHED:
            break
    return False


def _choices(names: list[str]) -> Iterator[frozenset[str]]:
    """Subsets, those in which the fewest differ from the others first."""
    for size in range(len(names) // 2 + 1):
        for part in combinations(names, size):
            yield frozenset(part)
            yield frozenset(names).difference(part)


def _parts(document: Any, floats: tuple[str, ...]) -> list[str | tuple[str, int]]:
    """What `digest` hashes, in parts: text, and option and value of each whole number whose type the file does not tell. Other whole
    numbers have a point where their key ends as one of `floats`."""
    parts: list[str | tuple[str, int]] = []

    def write(node: Any, path: tuple[str, ...]) -> None:
        if isinstance(node, dict):
            parts.append("{")
            for index, name in enumerate(sorted(node)):
                parts.append(f"{',' if index else ''}{json.dumps(name, ensure_ascii=False)}:")
                write(node[name], (*path[:4], name))
            parts.append("}")
        elif isinstance(node, list):
            parts.append("[")
            for index, value in enumerate(node):
                parts.extend([","] if index else [])
                write(value, path)
            parts.append("]")
        elif isinstance(node, bool) or not isinstance(node, int | float) or not float(node).is_integer():
            parts.append(json.dumps(node, ensure_ascii=False, allow_nan=False))
        elif len(path) > 3 and _of_either_type(path):
            parts.append((path[3], int(node)))
        else:
            parts.append(_number(int(node), bool(path) and path[-1].endswith(floats)))

    write(document, ())
    return parts


def _joined(parts: list[str | tuple[str, int]], floats: frozenset[str]) -> bytes:
    return "".join(part if isinstance(part, str) else _number(part[1], part[0] in floats) for part in parts).encode()


def _of_either_type(path: tuple[str, ...]) -> bool:
    return (path[0] == "engine" and path[2] == "options") or (path[0] == "shape" and path[3] == "factor")


def _number(value: int, with_a_point: bool) -> str:
    return json.dumps(float(value) if with_a_point else value)


def sha256(data: bytes) -> str:
    """SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes `data` to `path` so that a reader sees the old file or the whole new one.

    Raises UnreadableError where the folder cannot be written (permissions, a full disk).
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UnreadableError(f"cannot write {path}: {error.strerror or error}; choose another folder or free some space") from error
