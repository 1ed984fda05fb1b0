"""`python -m mkframe table REPORT...`: prints the tables of reports again, against the targets where they apply."""

import json
import sys
from dataclasses import asdict
from typing import Any

from mkframe.cli.parser import Parser
from mkframe.cli.printed import printed
from mkframe.cli.show_table import show
from mkframe.cli.targets import shipped_targets
from mkframe.cli.validate_inputs import STDIN, standard_input
from mkframe.errors import UnreadableError
from mkframe.report.table import table_of
from mkframe.text import as_unicode
from mkframe.validate import SIZE_LIMIT, Finding, comparison_of
from mkframe.validate.reader import read_file, read_stream


def main(argv: list[str]) -> int:
    """Exit code 0, or 2 for a file that is no valid comparison report."""
    parser = Parser(
        prog="mkframe table",
        description="Prints comparison reports as tables, with targets where they apply. The figures are those of the report; "
        "its samples are not read.",
    )
    parser.add_argument("reports", nargs="+", metavar="REPORT", help="a comparison report; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="tables for people, or one JSON document")
    options = parser.parse_args(argv)
    targets = shipped_targets()
    code = 0
    tables: list[dict[str, Any]] = []
    for path in options.reports:
        try:
            table = table_of(_document(path), targets)
        except UnreadableError as error:
            print(f"mkframe: {printed(str(error))}", file=sys.stderr)
            code = error.exit_code
            continue
        if options.format == "json":
            tables.append({"path": as_unicode(path), **asdict(table)})
        else:
            show(table)
    if options.format == "json":
        print(json.dumps({"tables": tables}, indent=2))
    return code


def _document(path: str) -> dict[str, Any]:
    """A valid comparison report. Raises UnreadableError."""
    data = read_stream(standard_input(), SIZE_LIMIT) if path == STDIN else read_file(path, SIZE_LIMIT)
    if isinstance(data, Finding):
        raise UnreadableError(f"{path}: {data.message}")
    found = comparison_of(data)
    if isinstance(found, str):
        hint = "" if path == STDIN else f"; see python -m mkframe validate {path}"
        raise UnreadableError(f"{path} is no valid comparison report: {found}{hint}")
    return found
