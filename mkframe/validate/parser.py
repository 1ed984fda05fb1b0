"""JSON as its standard has it, from bytes that may hold anything.

Python's own reader accepts NaN, keeps the last of two equal keys, turns 1e999 into infinity, recurses as deep as the
text asks, and takes quadratic time for long integers. Here each of these is a finding.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from mkframe.validate.collector import paused
from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.values import MAX_DEPTH, MAX_KEY, RULE, NotJson, Repeated, fits_float64, too_deep, value_faults

# Brackets, or everything up to the next one outside of a string. A string that never ends reaches to the end of the text: so one pass
# over the text is enough, whatever it holds.
_BRACKETS = re.compile(rb'([\[\]{}]++)|(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))++', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
# An empty object takes 3 bytes as text and 72 in Python: without a bound, memory would be 30 times the file.
_BYTES_PER_CONTAINER = 14
_FREE_CONTAINERS = 2**16
MAX_KEYS = 2**17
"""Keys of one object. Each takes 200 bytes while it is read, and at least 6 as text."""
_LONG_PART = 4096
MAX_FAULTS_KEPT = 100_000
"""Values that are not JSON which are kept to be located; with more the file is given up where it stands."""
_OBJECT, _LIST = 0, -(2**62)
_MAX_DIGITS = 400  # float64 ends at 309 digits
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16 or UTF-32", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """A document, or the findings that say why there is none. `faults` is empty exactly where `document` may be used."""

    document: Any = None
    faults: tuple[Finding, ...] = ()


def parse(data: bytes) -> Parsed:
    """Parses UTF-8 bytes as JSON. Never raises for what the bytes hold."""
    text = _decode(data)
    if isinstance(text, Finding):
        return Parsed(faults=(text,))
    fault = _structure(data)
    if fault is not None:
        return Parsed(faults=(fault,))
    hooks = _Hooks()
    try:
        with paused():
            document = json.loads(
                text, object_pairs_hook=hooks.pairs, parse_float=hooks.real, parse_int=hooks.integer, parse_constant=hooks.constant
            )
    except _Enough as problem:
        return Parsed(faults=(error(RULE, str(problem)),))
    except json.JSONDecodeError as problem:
        return Parsed(faults=(_syntax(problem),))
    except MemoryError:
        return Parsed(faults=(error(RULE, "the document does not fit in memory"),))
    if hooks.faults or _SURROGATE_ESCAPE.search(data):
        faults = value_faults(document)
        if faults:
            return Parsed(faults=tuple(faults))
    return Parsed(document=document)


def _decode(data: bytes) -> str | Finding:
    if not data.strip():
        return error(RULE, "the file is empty")
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return error(RULE, f"the file begins with a byte order mark of {name}; save it as UTF-8 without one")
    if b"\0" in data[:4]:
        return error(RULE, "the file begins as UTF-16 or UTF-32 does, with zero bytes between the characters; save it as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as problem:
        return error(RULE, f"the file is not UTF-8: byte {data[problem.start]:#04x} at offset {problem.start} ({problem.reason})")


def _structure(data: bytes) -> Finding | None:
    """What the brackets alone tell, before anything is built from them, in memory that does not grow with the file.

    Keys are counted roughly, and never too many: those that name objects and lists, and those in long parts between brackets.
    """
    allowed = max(_FREE_CONTAINERS, len(data) // _BYTES_PER_CONTAINER)
    containers = 0
    keys = [_LIST]  # of each object that is open; a list counts from far below
    for match in _BRACKETS.finditer(data):
        start, end = match.span()
        if match[1] is None:
            if end - start > _LONG_PART:
                keys[-1] += max(0, data.count(b'":', start, end) - data.count(b'\\":', start, end) - 1)
                if keys[-1] > MAX_KEYS:
                    return error(RULE, _TOO_MANY_KEYS)
            continue
        for bracket in match[1]:
            if bracket in b"]}":
                if len(keys) > 1:
                    keys.pop()
                continue
            keys[-1] += 1
            containers += 1
            if len(keys) > MAX_DEPTH:
                return too_deep()
            if containers > allowed:
                return error(RULE, f"more than {allowed} objects and lists in {len(data)} bytes: too many small ones for a report")
            if keys[-1] > MAX_KEYS:
                return error(RULE, _TOO_MANY_KEYS)
            keys.append(_OBJECT if bracket == _BRACE else _LIST)
    return None


_BRACE = ord("{")
_TOO_MANY_KEYS = f"an object with more than {MAX_KEYS} keys: too many for a report"


class _Enough(Exception):
    """So much is wrong, or so large, that nothing more is read. Says why."""


class _Hooks:
    """What json calls for each object and number. Faults stay in the document and are located afterwards."""

    def __init__(self) -> None:
        self.faults = 0

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) > MAX_KEYS:
            raise _Enough(_TOO_MANY_KEYS)
        plain = dict(pairs)
        if plain and max(map(len, plain)) > MAX_KEY:
            self._one_more("a key is too long")
        if len(plain) == len(pairs):
            return plain
        self._one_more("a key stands more than once in its object")
        repeated = Repeated(plain)
        repeated.keys_repeated = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return repeated

    def real(self, text: str) -> float | NotJson:
        value = float(text)
        if value in (float("inf"), float("-inf")) or (value == 0 and _has_digits(text)):
            return self._fault(f"{_cut(text)} is beyond float64")
        return value

    def integer(self, text: str) -> int | NotJson:
        if len(text) < 300:
            return int(text)
        if len(text) > _MAX_DIGITS or not fits_float64(int(text)):
            return self._fault(f"{_cut(text)} is beyond float64")
        return int(text)

    def constant(self, text: str) -> NotJson:
        return self._fault(f"{text} is not a JSON number")

    def _fault(self, why: str) -> NotJson:
        self._one_more(why)
        return NotJson(why)

    def _one_more(self, why: str) -> None:
        self.faults += 1
        if self.faults > MAX_FAULTS_KEPT:
            raise _Enough(f"more than {MAX_FAULTS_KEPT} values and keys that are not JSON, the last of them: {why}")


def _has_digits(text: str) -> bool:
    """Whether the mantissa of a number is not zero."""
    mantissa = re.split("[eE]", text, maxsplit=1)[0]
    return any(digit in mantissa for digit in "123456789")


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)"


def _syntax(problem: json.JSONDecodeError) -> Finding:
    place = f"line {problem.lineno}, column {problem.colno}"
    rest = problem.doc[problem.pos :].lstrip(" \t\r\n")
    if problem.msg.startswith("Unterminated string") or not rest:
        return error(RULE, f"the file ends too early and may be cut off: {problem.msg} ({place})")
    if problem.msg == "Extra data":
        return error(RULE, f"the file goes on after the end of the document, with {shown(rest[:20])} ({place})")
    return error(RULE, f"the file is not JSON: {problem.msg}, found {shown(rest[:20])} ({place})")
