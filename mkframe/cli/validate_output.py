"""Results of `validate` as lines, JSON, JUnit XML or GitHub workflow annotations, one file after the other as they come.

Whatever a file or its name holds, nothing of it steers a terminal, starts a line or ends an attribute.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import indent
from xml.sax.saxutils import escape, quoteattr

from mkframe.cli.printed import printed
from mkframe.text import as_unicode, printable
from mkframe.validate import Finding, Result, Severity
from mkframe.validate.finding import readable
from mkframe.validate.formats import WORDS

_LINE_ENDS = re.compile(r"([\r\n])")
_ANNOTATION = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "notice"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A form of output. `each` gives the text of one result; `between` stands between two results. Pieces end where they say."""

    each: Callable[[Result], str]
    before: str = ""
    between: str = ""
    after: str = ""

    def pieces(self, results: Iterable[Result]) -> Iterator[tuple[str, int]]:
        """(text to write, exit code of the result in it), as the results come."""
        yield self.before, 0
        for number, result in enumerate(results):
            yield (self.between if number else "") + self.each(result), result.exit_code
        yield self.after, 0


def _text(result: Result) -> str:
    file = printed(result.path or "")
    lines = [f"{file}: {readable(f.pointer)}: {f.severity} {f.rule}: {printed(f.message)}\n" for f in result.findings]
    return "".join(lines) or f"{file}: ok ({WORDS[str(result.format)]})\n"


def _json(result: Result) -> str:
    path = None if result.path is None else as_unicode(result.path)
    return indent(json.dumps(replace(result, path=path).document(), indent=2), "    ")


def _junit(result: Result) -> str:
    """A suite a file. Errors are failures, what cannot be read is an error, and the rest passes with its words as output."""
    cases = [_case(result, finding) for finding in result.findings] or ['    <testcase classname="validate" name="all rules"/>\n']
    errors = sum(f.severity is Severity.ERROR for f in result.findings)
    unreadable = result.format is None
    counts = f'tests="{len(cases)}" failures="{0 if unreadable else errors}" errors="{errors if unreadable else 0}"'
    return f"  <testsuite name={_attribute(result.path or '')} {counts}>\n{''.join(cases)}  </testsuite>\n"


def _case(result: Result, finding: Finding) -> str:
    name = _attribute(f"{finding.rule} {readable(finding.pointer)}")
    head = f"    <testcase classname={_attribute(finding.rule)} name={name}>"
    if finding.severity is not Severity.ERROR:
        inner = f"<system-out>{escape(_xml(f'{finding.severity}: {finding.message}'))}</system-out>"
    else:
        word = "error" if result.format is None else "failure"
        inner = f"<{word} message={_attribute(finding.message)}/>"
    return f"{head}{inner}</testcase>\n"


def _attribute(text: str) -> str:
    return quoteattr(_xml(text))


def _xml(text: str) -> str:
    """ASCII that XML can hold: control characters and surrogates, which it cannot, are escaped as on a terminal."""
    return printable(text).encode("ascii", "backslashreplace").decode()


def _github(result: Result) -> str:
    return "".join(
        f"::{_ANNOTATION[f.severity]} file={_property(result.path or '')},title={_property(f'mkframe {f.rule}')}"
        f"::{_data(f'{readable(f.pointer)}: {f.message}')}\n"
        for f in result.findings
    )


def _data(text: str) -> str:
    """As the runner reads the message of a workflow command: %, CR and LF as %XX."""
    lines = "".join(part if part in ("\r", "\n") else printed(part) for part in _LINE_ENDS.split(text))
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """As the runner reads a property: what a message escapes, and : and , too."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMS = {
    "text": Form(each=_text),
    "json": Form(before='{\n  "files": [\n', each=_json, between=",\n", after="\n  ]\n}\n"),
    "junit": Form(
        before='<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="mkframe validate">\n', each=_junit, after="</testsuites>\n"
    ),
    "github": Form(each=_github),
}
