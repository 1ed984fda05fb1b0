"""One way to write JSON, to hash, and to put a file in place whole or not at all."""

import hashlib
import json
import os
import secrets
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


MOST_UNKNOWN = 6
MOST_CHARACTERS = 2**17
_FLOATS = ("_s", "_us", "_ms", "_flops", "footprint")
"""How keys of configurations end whose numbers are floats: times, rates, and a share of a cache."""


def is_digest(stated: str, document: Any) -> bool:
    """Whether a hash is that of a document or of its equal: to JSON 600.0 and 600 are one number, and other programs write it either way.
    Tried as it stands, with whole numbers without a point, and with a point where their key ends in a unit that we hold as a float. An
    engine alone knows the types of its options: of a document of up to MOST_CHARACTERS every choice of up to MOST_UNKNOWN of them is tried.
    """
    if stated in (digest(document), digest(_rewritten(document, None)), digest(_rewritten(document, None, _FLOATS))):
        return True
    if len(json.dumps(document)) > MOST_CHARACTERS:
        return False
    unknown = sorted(_options(document))[:MOST_UNKNOWN]
    chosen = (frozenset(part) for size in range(1, len(unknown) + 1) for part in combinations(unknown, size))
    return any(stated == digest(_rewritten(document, None, (*_FLOATS, *part))) for part in chosen)


def _options(document: Any) -> set[str]:
    """Keys of engines' options that hold a whole number."""
    engines = document.get("engine") if isinstance(document, dict) else None
    groups = [node.get("options") for node in engines.values() if isinstance(node, dict)] if isinstance(engines, dict) else []
    found = [(str(name), value) for group in groups if isinstance(group, dict) for name, value in group.items()]
    return {name for name, value in found if type(value) in (int, float) and float(value).is_integer()}


def _rewritten(node: Any, key: str | None, floats: tuple[str, ...] = ()) -> Any:
    if isinstance(node, dict):
        return {name: _rewritten(value, str(name), floats) for name, value in node.items()}
    if isinstance(node, list):
        return [_rewritten(value, key, floats) for value in node]
    if isinstance(node, bool) or not isinstance(node, int | float) or not float(node).is_integer():
        return node
    return float(node) if key is not None and floats and key.endswith(floats) else int(node)


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
