"""What must hold for any bytes that somebody calls a report. The fuzzers, the tests and the kept findings all ask this one function."""

import io
import json
import xml.etree.ElementTree as ElementTree
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from mkframe.cli.validate_output import FORMS
from mkframe.validate import RULES, Result, Severity, validate_stream
from mkframe.validate.parser import parse
from mkframe.validate.schema_rule import RULE as SCHEMA
from mkframe.validate.schemas import schema

_SMALL = 20_000
_IDS = {rule.id: set(rule.severities) for rule in RULES if rule.id != SCHEMA} | {SCHEMA: {Severity.ERROR, Severity.WARNING}}


def check(data: bytes, name: str = "-") -> Result:
    """Validates `data` and returns the result. Raises AssertionError, or whatever the validator raised, where something is wrong:

    - no exception, and the exit code that the findings ask for;
    - every finding of a document has a known rule, one of its severities, one line of text, and a pointer that leads to a value;
    - each form of output is what its readers parse, with nothing in it that a terminal obeys;
    - where the quick schema tool accepts, the exact one does, and the other way round.
    """
    result = validate_stream(io.BytesIO(data), name)
    strict = validate_stream(io.BytesIO(data), name, strict=True)
    for one in (result, strict):
        _check_findings(one)
    assert strict.exit_code >= result.exit_code
    parsed = parse(data)
    assert bool(parsed.faults) == (result.format is None and all(finding.rule != "format" for finding in result.findings))
    if result.format is not None:
        for finding in strict.findings:
            assert leads_somewhere(parsed.document, finding.pointer), finding
        refused = any(f.rule == SCHEMA and f.severity is Severity.ERROR for f in result.findings)
        if len(data) < _SMALL:
            assert refused != _exact(result.format).is_valid(parsed.document), "the two schema tools disagree"
    _check_output(result)
    return result


@cache
def _exact(format: str) -> Draft202012Validator:
    return Draft202012Validator(schema(format))


def _check_findings(result: Result) -> None:
    errors = [finding for finding in result.findings if finding.severity is Severity.ERROR]
    assert result.exit_code == (2 if result.format is None else 1 if errors else 0)
    assert result.format is not None or errors
    for finding in result.findings:
        assert finding.message
        assert finding.message.isprintable(), finding
        assert finding.pointer == "" or finding.pointer.startswith("/")
        if result.format is not None:
            assert finding.severity in _IDS[finding.rule], finding


def leads_somewhere(document: Any, pointer: str) -> bool:
    """Whether a JSON Pointer (RFC 6901) names a value of `document`."""
    node = document
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and token.isascii() and str(int(token)) == token and int(token) < len(node):
            node = node[int(token)]
        else:
            return False
    return True


def _check_output(result: Result) -> None:
    text = {name: "".join(piece for piece, _ in form.pieces([result, result])) for name, form in FORMS.items()}
    for name, written in text.items():
        assert all(character.isprintable() for character in written.replace("\n", "")), name
    assert json.loads(text["json"]) == {"files": [result.document(), result.document()]}
    suites = ElementTree.fromstring(text["junit"])
    assert len(suites.findall("./testsuite/testcase")) == 2 * max(1, len(result.findings))
    lines = text["github"].splitlines()
    assert len(lines) == 2 * len(result.findings)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
    assert len(text["text"].splitlines()) == 2 * max(1, len(result.findings))
