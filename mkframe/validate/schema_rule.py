"""The schema rule: every violation of the public schema, in words."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.schemas import acceptor, accepts, validator

if TYPE_CHECKING:
    from jsonschema import ValidationError

RULE = "schema"
MAX_FINDINGS = 10_000
_LONGEST_HINT = 40
_LENGTHS_APART = 3

_INDEX = re.compile(r"[0-9]{1,18}")

_TYPES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def schema_findings(document: Any, format: str) -> list[Finding]:
    """A finding for every violation of the schema of `format`, ordered by place.

    At most MAX_FINDINGS are listed; a last finding says that there are more.
    """
    if accepts(document, acceptor(format)):
        return []
    found = list(islice(_findings(document, format), MAX_FINDINGS + 1))
    cut = len(found) > MAX_FINDINGS
    unique = sorted(dict.fromkeys(found[:MAX_FINDINGS]), key=_place)
    if cut:
        unique.append(error(RULE, f"more than {MAX_FINDINGS} violations; the rest is not listed"))
    return unique


def _findings(document: Any, format: str) -> Iterator[Finding]:
    for problem in validator(format).iter_errors(document):
        yield from _EXPLAIN.get(problem.validator, _other)(problem)


def _place(finding: Finding) -> list[tuple[int, int, str]]:
    tokens = finding.pointer.split("/")[1:]
    return [(0, int(token), "") if _INDEX.fullmatch(token) else (1, 0, token) for token in tokens]


def _here(problem: "ValidationError", message: str) -> Finding:
    return error(RULE, message, problem.absolute_path)


def _name(problem: "ValidationError") -> str:
    path = problem.absolute_path
    if not path:
        return "the report"
    return f"item {path[-1]}" if isinstance(path[-1], int) else json.dumps(path[-1][:80])[1:-1]


def _must(problem: "ValidationError", what: str) -> Iterator[Finding]:
    found = shown(problem.instance)
    if isinstance(problem.instance, bool):
        found += " (a boolean)"
    yield _here(problem, f"{_name(problem)} is {found}, must be {what}")


def _type(problem: "ValidationError") -> Iterator[Finding]:
    allowed = problem.validator_value
    names = [allowed] if isinstance(allowed, str) else allowed
    return _must(problem, " or ".join(_TYPES[name] for name in names))


def _required(problem: "ValidationError") -> Iterator[Finding]:
    # jsonschema reports each missing key by itself but does not say which; equal findings are dropped later.
    known = problem.schema.get("properties")
    for key in problem.validator_value:
        if key not in problem.instance:
            why = problem.schema.get("description") if known is None else known.get(key, {}).get("description")
            yield _here(problem, f"the key {key} is missing" + (f": {_first_sentence(why)}" if why else ""))


def _first_sentence(description: str) -> str:
    """What a field is. How it must agree with others follows in the schema, and is no use before the field is there."""
    return re.split(r"(?<=\.) ", description, maxsplit=1)[0]


def _dependent_required(problem: "ValidationError") -> Iterator[Finding]:
    for present, needed in problem.validator_value.items():
        if present in problem.instance:
            for key in needed:
                if key not in problem.instance:
                    yield _here(problem, f"the key {key} is missing: a report with {present} has it")


def _unknown_key(problem: "ValidationError") -> Iterator[Finding]:
    known = list(problem.schema.get("properties", {}))
    for key in problem.instance:
        if key not in known:
            yield error(RULE, unknown_key(key, known), [*problem.absolute_path, key])


def unknown_key(key: str, known: Sequence[str]) -> str:
    """What to say of a key that is none of those known at its place."""
    close = difflib.get_close_matches(key, _alike(key, known), n=1)
    hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
    return f"the key {shown(key)} is unknown here; {hint}"


def _alike(key: str, known: Sequence[str]) -> list[str]:
    """The few known keys that are worth a closer look: that look is slow, and a file may hold very many unknown keys."""
    if not 0 < len(key) <= _LONGEST_HINT:
        return []
    return [name for name in known if abs(len(name) - len(key)) <= _LENGTHS_APART and (name[0] == key[0] or name[-1] == key[-1])]


def _shape_of_text(problem: "ValidationError") -> Iterator[Finding]:
    return _must(problem, problem.schema.get("title") or f"text that matches {problem.schema.get('pattern')}")


def _one_of(problem: "ValidationError") -> Iterator[Finding]:
    return _must(problem, "one of " + ", ".join(shown(value) for value in problem.validator_value))


def _not(problem: "ValidationError") -> Iterator[Finding]:
    why = problem.schema.get("description", "is not allowed")
    if "propertyNames" in problem.absolute_schema_path:
        yield _here(problem, f"{_name(problem)} holds {problem.instance}: {why}")
    else:
        yield _here(problem, why)


def _few(problem: "ValidationError") -> Iterator[Finding]:
    least = problem.validator_value
    yield _here(problem, f"{_name(problem)} is {shown(problem.instance)}, must have at least {least}")


def _many(problem: "ValidationError") -> Iterator[Finding]:
    yield _here(problem, f"{_name(problem)} is {shown(problem.instance)}, must have at most {problem.validator_value}")


def _other(problem: "ValidationError") -> Iterator[Finding]:
    yield _here(problem, f"{_name(problem)} is {shown(problem.instance)}, which breaks {problem.validator}")


_EXPLAIN: dict[Any, Callable[["ValidationError"], Iterator[Finding]]] = {
    "type": _type,
    "required": _required,
    "dependentRequired": _dependent_required,
    "additionalProperties": _unknown_key,
    "unevaluatedProperties": _unknown_key,
    "minimum": lambda problem: _must(problem, f"at least {problem.validator_value}"),
    "exclusiveMinimum": lambda problem: _must(problem, f"above {problem.validator_value}"),
    "maximum": lambda problem: _must(problem, f"at most {problem.validator_value}"),
    "minLength": lambda problem: _must(problem, "text that is not empty"),
    "maxLength": _shape_of_text,
    "pattern": _shape_of_text,
    "enum": _one_of,
    "const": lambda problem: _must(problem, shown(problem.validator_value)),
    "minItems": _few,
    "minProperties": _few,
    "maxItems": _many,
    "not": _not,
}
