"""What a validator says: findings, where they are, and the result for one file."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INDEX = re.compile(r"0|[1-9][0-9]*")


class Severity(StrEnum):
    """ERROR: the report is wrong. WARNING: a reader should know. INFORMATION: cannot be checked from the file."""

    ERROR = "E"
    WARNING = "W"
    INFORMATION = "I"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing to say of a report. `pointer` is a JSON Pointer (RFC 6901); "" is the whole document."""

    severity: Severity
    rule: str
    pointer: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What was found in one file or document.

    `path` is None for a document that did not come from a file. `format` is "comparison", "energy" or "device-card", None where
    the file is unreadable or in none of these.
    """

    path: str | None
    format: str | None
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True where nothing is an error."""
        return self.format is not None and self.first_error is None

    @property
    def first_error(self) -> Finding | None:
        return next((f for f in self.findings if f.severity is Severity.ERROR), None)

    @property
    def exit_code(self) -> int:
        """0 without errors, 1 with at least one, 2 for what cannot be read or is in no known format."""
        if self.format is None:
            return 2
        return 0 if self.ok else 1

    def document(self) -> dict[str, Any]:
        """The result as plain JSON types."""
        findings = [{"severity": str(f.severity), "rule": f.rule, "pointer": f.pointer, "message": f.message} for f in self.findings]
        return {"path": self.path, "format": self.format, "ok": self.ok, "findings": findings}


def error(rule: str, message: str, path: Iterable[str | int] = ()) -> Finding:
    """A finding of severity ERROR at `path`, the keys and indices that lead to it."""
    return Finding(severity=Severity.ERROR, rule=rule, pointer=pointer(path), message=message)


def warning(rule: str, message: str, path: Iterable[str | int] = ()) -> Finding:
    """A finding of severity WARNING at `path`."""
    return Finding(severity=Severity.WARNING, rule=rule, pointer=pointer(path), message=message)


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path of keys and indices."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def readable(pointer: str) -> str:
    """A JSON Pointer as people write paths: `$.development[0].engines.persistent`, keys with other characters quoted.

    Characters beyond ASCII and control characters come out escaped, so that a file cannot write to the terminal.
    """
    tokens = (token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
    return "$" + "".join(_step(token) for token in tokens)


def _step(token: str) -> str:
    if _INDEX.fullmatch(token):
        return f"[{token}]"
    return f".{token}" if _PLAIN_KEY.fullmatch(token) else f"[{json.dumps(token)}]"


def shown(value: Any, length: int = 80) -> str:
    """A value for a message: scalars as JSON in ASCII, cut to about `length` characters; containers by their size."""
    if isinstance(value, dict):
        return f"an object with {len(value)} keys" if value else "an empty object"
    if isinstance(value, list):
        return f"an array with {len(value)} items" if value else "an empty array"
    if isinstance(value, str):
        return json.dumps(value) if len(value) <= length else json.dumps(value[:length]) + "..."
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 4 * length:
        return "a very large integer"
    return json.dumps(value)
