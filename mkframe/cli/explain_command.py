"""`python -m mkframe explain FILE`: a page for a reviewer."""

import sys
import textwrap
from pathlib import Path

from mkframe.cli.parser import Parser
from mkframe.cli.printed import printed
from mkframe.cli.validate_inputs import STDIN, standard_input
from mkframe.errors import UnreadableError
from mkframe.explain import Section, explain
from mkframe.validate import SIZE_LIMIT, Opened, Result, opened
from mkframe.validate.finding import Finding
from mkframe.validate.formats import WORDS
from mkframe.validate.reader import read_file, read_stream

_WIDTH = 110


def main(argv: list[str]) -> int:
    """Exit codes as validate: 0 without errors, 1 with at least one, 2 for a file that is in no known format."""
    parser = Parser(
        prog="mkframe explain",
        description="A page for a reviewer of a comparison report, an energy report or a device card: what was measured, how, what follows "
        "from it, what does not. Where the samples of a report of ours lie beside it, its figures are rebuilt from them, as by validate "
        "--profile strict; the page says whether they were. Needs no GPU.",
        epilog="Exit code: 0 without errors, 1 where validate finds any, 2 for unreadable files, unknown formats and wrong usage.",
    )
    parser.add_argument("file", metavar="FILE", help="a report or a device card; - is standard input")
    path = parser.parse_args(argv).file
    found = _opened(path)
    result = found.result
    if result.format is None:
        why = result.findings[0].message if result.findings else "it is in no known format"
        raise UnreadableError(f"{printed(path)}: {printed(why)}")
    print(f"{printed(path)}: {WORDS[result.format]}")
    for section in explain(found.document, result, strict=found.strict):
        _print(section)
    sys.stdout.flush()
    return result.exit_code


def _opened(path: str) -> Opened:
    """The document, and what validate says of it; a samples file is looked for beside a file alone."""
    data = read_stream(standard_input(), SIZE_LIMIT) if path == STDIN else read_file(path, SIZE_LIMIT)
    if isinstance(data, Finding):
        return Opened(document={}, result=Result(path=path, format=None, findings=(data,)), strict=False)
    return opened(data, path, None if path == STDIN else Path(path).parent)


def _print(section: Section) -> None:
    print(f"\n{section.title}")
    for line in section.lines:
        print(textwrap.fill(printed(line), width=_WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False))
