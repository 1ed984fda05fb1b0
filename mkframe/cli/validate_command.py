"""`python -m mkframe validate FILE...`: checks reports and device cards and says everything that is wrong with them."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mkframe.cli.output import silence_stdout
from mkframe.cli.parser import Parser
from mkframe.cli.validate_inputs import STDIN, TAKEN, inputs
from mkframe.cli.validate_output import FORMS
from mkframe.errors import MkframeError, UsageError
from mkframe.validate import READING_RULES, RULES, SIZE_LIMIT, Result, validate, validate_stream
from mkframe.validate.finding import Finding, error
from mkframe.validate.formats import ENERGY
from mkframe.validate.reader import TOO_LARGE

_MIB = 2**20
_PROFILES = ("default", "strict")


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code: 0 without errors, 1 with at least one, 2 for files that cannot be read as
    a report, for wrong usage, and where it was interrupted; over several files the highest."""
    try:
        options = _parser().parse_args(argv)
        if options.list_rules:
            return _list_rules(options)
        _check_usage(options)
        return _print(_results(options), options.format)
    except MkframeError as problem:
        _say(str(problem))
        return problem.exit_code
    except BrokenPipeError:  # the reader of our output has gone, `validate ... | head`
        silence_stdout()
        return 2
    except KeyboardInterrupt:
        silence_stdout()
        _say("interrupted; files that were not reached are not validated")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="mkframe validate",
        description="Checks comparison reports, energy reports and device cards by every rule that --list-rules prints: schema, figures "
        "that follow from each other, and, for a comparison report of ours read from a file, the samples file beside it. It runs nothing "
        "of a file and follows nothing that a file names. Needs no GPU.",
        epilog="Exit code: 0 without errors, 1 with at least one, 2 for unreadable files, unknown formats and wrong usage; over several "
        "files the highest.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"a report or a device card, a pattern, a folder ({', '.join(TAKEN)} at any depth), or - for standard input",
    )
    parser.add_argument("--format", choices=FORMS, default="text", help="lines for people (text), or for programs")
    parser.add_argument("--profile", choices=_PROFILES, default="default", help="strict: what only a report of ours can be held to, too")
    parser.add_argument("--payload", type=Path, metavar="DIR", help="for energy reports: the folder with its draws, which are hashed again")
    parser.add_argument("--list-rules", action="store_true", help="print every rule (--format text or json) and validate nothing")
    parser.add_argument(
        "--size-limit", type=_mebibytes, default=SIZE_LIMIT, metavar="MIB", help=f"largest file in MiB (default {SIZE_LIMIT // _MIB})"
    )
    return parser


def _mebibytes(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of MiB from 1 to 999999")
    return int(text) * _MIB


def _check_usage(options: argparse.Namespace) -> None:
    if not options.files:
        raise UsageError("no FILE was named; see mkframe validate --help")
    if options.files.count(STDIN) > 1:
        raise UsageError("- (standard input) can be named only once")
    if options.payload is not None and not os.path.isdir(options.payload):
        raise UsageError(f"--payload: {str(options.payload)!r} is no folder")


def _results(options: argparse.Namespace) -> Iterator[Result]:
    strict, payload = options.profile == "strict", options.payload
    of_file = partial(validate, size_limit=options.size_limit, strict=strict, payload=payload)
    of_stream = partial(validate_stream, size_limit=options.size_limit, strict=strict, payload=payload)
    for name in inputs(options.files, _say):
        if isinstance(name, Result):
            yield name
            continue
        if name != STDIN:
            result = of_file(name)
        elif sys.stdin is None:
            result = Result(path=name, format=None, findings=(error("read", "standard input is closed"),))
        else:
            result = of_stream(sys.stdin.buffer, name)
        if payload is not None and result.format not in (ENERGY, None):
            _say("--payload is for energy reports, and was not used for a file of another format")
        yield _with_advice(result)


def _with_advice(result: Result) -> Result:
    """Names the option for a file that is too large; the library has no options to name."""
    return replace(result, findings=tuple(map(_advised, result.findings))) if result.format is None else result


def _advised(finding: Finding) -> Finding:
    if not finding.message.startswith(TOO_LARGE):
        return finding
    return replace(finding, message=f"{finding.message}; --size-limit MIB raises it")


def _print(results: Iterator[Result], form: str) -> int:
    highest = 0
    for text, code in FORMS[form].pieces(results):
        _write(text)
        highest = max(highest, code)
    _flush()
    return highest


def _list_rules(options: argparse.Namespace) -> int:
    if options.files:
        raise UsageError("--list-rules takes no FILE")
    rows = [(rule.id, "E", "any", rule.says) for rule in READING_RULES]
    rows += [(rule.id, "".join(rule.severities), rule.format, rule.says) for rule in RULES]
    if options.format == "json":
        rules = [{"id": id, "format": format, "severities": [*severities], "says": says} for id, severities, format, says in rows]
        _write(json.dumps({"rules": rules}, indent=2) + "\n")
    elif options.format == "text":
        _write("".join(_columns(rows)))
    else:
        raise UsageError(f"--list-rules is text or json, not {options.format}")
    _flush()
    return 0


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"


def _write(text: str) -> None:
    if sys.stdout is not None:  # closed: the exit code still tells
        sys.stdout.write(text)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _say(text: str) -> None:
    print(f"mkframe validate: {text}", file=sys.stderr)
