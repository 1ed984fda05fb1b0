"""`python -m mkframe compare BASE NEW`: which cells of NEW are faster or slower than in BASE, and how sure that is."""

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence

from mkframe.cli.parser import Parser
from mkframe.cli.validate_inputs import STDIN, standard_input
from mkframe.compare import Outcome, Report, compare_reports, load, require_same
from mkframe.compare.conditions import FIELDS
from mkframe.compare.result import CellResult
from mkframe.compare.verdict import FLOOR_WORDS
from mkframe.errors import UsageError
from mkframe.text import printable

_HEAD = ("shape set", "shape", "engine", "BASE us", "NEW us", "ratio", "99 % interval", "floors", "verdict")
_LEFT = (0, 1, 2, 8)


def main(argv: list[str]) -> int:
    """Exit code 0; 1 for a cell that is SLOWER beyond --fail-on or passed in BASE and not in NEW; 2 for reports that cannot
    be read or compared, and for wrong usage."""
    options = _parsed(argv)
    base, new = _loaded(options.base), _loaded(options.new)
    lifted = require_same(base, new, options.allow)
    outcome = compare_reports(base, new, lifted, fail_on=options.fail_on, skip_failed=options.skip_failed)
    try:
        _print(outcome, options.format)
    except BrokenPipeError:  # the reader of our output has gone, `compare ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    return outcome.exit_code


def _parsed(argv: list[str]) -> argparse.Namespace:
    """The options. `--allow FIELD BASE NEW` is meant as it looks: a FIELD is a name, and a path is none."""
    options = _parser().parse_args(argv)
    swallowed = [word for word in options.allow if not word.isidentifier()]
    if options.base is None and len(swallowed) == 2:
        options.base, options.new = swallowed
        options.allow = [word for word in options.allow if word.isidentifier()]
    if options.new is None:
        missing = "BASE, NEW" if options.base is None else "NEW"
        taken = ": --allow takes every word behind it, so name both in front" if options.allow else ""
        raise UsageError(f"not named: {missing}{taken}; see mkframe compare --help")
    if options.base == options.new == STDIN:
        raise UsageError("- (standard input) can be named only once")
    return options


def _loaded(path: str) -> Report:
    return load(path, standard_input() if path == STDIN else None)


def _print(outcome: Outcome, form: str) -> None:
    if form == "json":
        print(json.dumps(outcome.document(), indent=2, allow_nan=False))
    else:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        for line in _lines(outcome):
            print(printable(line).encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="mkframe compare",
        description="Compares the stream times of NEW with those of BASE, cell by cell. Needs no GPU.",
        epilog="Exit code: 0; 1 for a cell SLOWER beyond --fail-on, or passed in BASE and not in NEW; 2 for reports that cannot be "
        "read or compared, and for wrong usage.",
    )
    parser.add_argument("base", nargs="?", metavar="BASE", help="a comparison report; - is standard input, which has no samples beside it")
    parser.add_argument("new", nargs="?", metavar="NEW", help="the comparison report that is held against it")
    parser.add_argument("--fail-on", type=_percent, default=0.0, metavar="PERCENT", help="how much SLOWER is exit code 1 (default 0)")
    parser.add_argument(
        "--allow",
        nargs="+",
        action="extend",
        default=[],
        metavar="FIELD",
        help=f"compare although these differ: {', '.join(FIELDS)}, or another key of mkframe.timing",
    )
    parser.add_argument(
        "--skip-failed", action="store_true", help="geometric mean over the cells that have numbers, although others have none"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="a table for people, or one JSON document")
    return parser


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0 upwards")
    return value


def _lines(outcome: Outcome) -> Iterator[str]:
    for side, report in (("BASE", outcome.base), ("NEW", outcome.new)):
        document = report.document
        commit = document["source_commit"]
        yield f"{side:4} {report.path}, recorded {document['recorded_on']}, commit {commit[:12] if commit else 'unknown'}"
    yield f"on {outcome.new.document['device']}; ratio = NEW / BASE of the median stream times, below 1 is faster"
    for difference in outcome.lifted:
        yield f"allowed: {difference.field}: {difference.text}"
    for note in outcome.notes:
        yield f"note: {note}"
    yield ""
    yield from _table([_HEAD, *map(_row, outcome.cells)])
    yield ""
    yield from _floors(outcome.cells)
    yield ", ".join(f"{count} {word}" for word, count in outcome.counts.items()) + "; " + _mean(outcome)
    if outcome.failures:
        yield f"FAILED: {len(outcome.failures)} cells SLOWER beyond {outcome.fail_on:g} % or without the result that BASE has"


def _row(cell: CellResult) -> tuple[str, ...]:
    times = tuple("-" if ms is None else f"{ms * 1e3:.2f}" for ms in (cell.base_ms, cell.new_ms))
    head = (cell.key.set, cell.key.label, cell.key.engine, *times)
    if cell.compared is None:
        return (*head, "-", "-", "-", f"{cell.state}{f': {cell.reason}' if cell.reason else ''}")
    found = cell.compared.comparison
    floors = "-" if cell.compared.floors is None else f"{cell.compared.floors:+.2f}"
    verdict = f"{found.verdict}{f': {found.reason}' if found.reason else ''}"
    ratio = "-" if cell.ratio is None else f"{cell.ratio:.3f}"
    return (*head, ratio, f"{found.low:.3f} to {_bound(found.high)}", floors, verdict)


def _floors(cells: Sequence[CellResult]) -> Iterator[str]:
    """What the column `floors` counts: a line for each floor that a cell stands on, and one where cells stand on none."""
    compared = [cell.compared for cell in cells if cell.compared is not None]
    for name, floor_ms in dict.fromkeys((found.floor, found.floor_ms) for found in compared):
        if name is None or floor_ms is None:
            yield "floors: - where not both sessions measured the floor"
        else:
            yield f"floors: (NEW - BASE) / {floor_ms * 1e3:.3g} us, the sessions' median of {FLOOR_WORDS[name]} ({name})"


def _bound(value: float) -> str:
    return f"{value:.3f}" if value < 1e4 else "any"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = (
            text.ljust(width) if column in _LEFT else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _mean(outcome: Outcome) -> str:
    mean, left_out = outcome.geometric_mean, outcome.without_numbers
    if mean is None:
        return f"no geometric mean: {left_out} cells have no ratio (--skip-failed leaves them out)" if left_out else "no geometric mean"
    return f"geometric mean of the ratios {mean:.3f}" + (
        f" over {len(outcome.cells) - left_out} cells, {left_out} left out" if left_out else ""
    )
