"""`python -m mkframe table REPORT...`: prints the tables of reports again, against the targets where they apply."""

import sys
from typing import Any

from mkframe.cli.parser import Parser
from mkframe.cli.show_table import show
from mkframe.cli.targets import shipped_targets
from mkframe.errors import UnreadableError
from mkframe.report.table import table_of
from mkframe.validate import validate
from mkframe.validate.parser import parse
from mkframe.validate.reader import SIZE_LIMIT, read_file


def main(argv: list[str]) -> int:
    """Exit code 0, or 2 for a file that is no valid comparison report."""
    parser = Parser(prog="mkframe table", description="Prints comparison reports as tables, with targets where they apply.")
    parser.add_argument("reports", nargs="+", metavar="REPORT", help="a comparison report")
    options = parser.parse_args(argv)
    targets = shipped_targets()
    code = 0
    for path in options.reports:
        try:
            show(table_of(_document(path), targets))
        except UnreadableError as error:
            print(f"mkframe: {error}", file=sys.stderr)
            code = error.exit_code
    return code


def _document(path: str) -> dict[str, Any]:
    """A valid comparison report. Raises UnreadableError."""
    result = validate(path)
    if not result.ok or result.format != "comparison":
        first = result.findings[0].message if result.findings else f"it is an {result.format} report"
        raise UnreadableError(f"{path} is no valid comparison report: {first}; see python -m mkframe validate {path}")
    data = read_file(path, SIZE_LIMIT)
    assert isinstance(data, bytes), "it was readable a moment ago"
    document: dict[str, Any] = parse(data).document
    return document
