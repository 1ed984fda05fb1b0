"""`python -m mkframe doctor`: what this machine can and cannot measure, and what to do about it."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mkframe.cli.parser import Parser
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.doctor.examine import examinations, examine, measurable
from mkframe.doctor.line import Line

_OUTPUT = "outputs"


def main(argv: list[str]) -> int:
    """Exit code 0, or 1 where nothing can be measured at all. Sets and changes nothing."""
    plugin_paths, rest = split_plugin_paths(argv, os.environ)
    parser = Parser(
        prog="mkframe doctor",
        description="Tells in at most 10 s what this machine can measure. plugin_path=DIR looks at a folder of plugins too.",
        epilog="Exit code: 0, or 1 where nothing can be measured.",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="lines for people, or one JSON document")
    parser.add_argument("--out", default=_OUTPUT, metavar="DIR", help="the folder that runs are written to (default: outputs)")
    options = parser.parse_args(list(rest))
    lines = examine(examinations(Path(options.out).absolute(), plugin_paths, dict(os.environ)))
    kinds = measurable(lines)
    if options.format == "json":
        print(json.dumps({"measurable": list(kinds), "lines": [line.document() for line in lines]}, indent=2))
    else:
        show(lines, kinds)
    sys.stdout.flush()
    return 0 if kinds else 1


def show(lines: Sequence[Line], kinds: Sequence[str]) -> None:
    """One line each: status, topic, what was found, what it means, what to do."""
    width = max(len(line.topic) for line in lines)
    for line in lines:
        advice = f" -> {line.advice}" if line.advice else ""
        print(_printable(f"{line.status:<4}  {line.topic:<{width}}  {line.found}: {line.means}{advice}"))
    print(f"This machine can measure: {' and '.join(kinds) or 'nothing'}")


def _printable(text: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    safe = "".join(character if character.isprintable() else " " for character in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)
