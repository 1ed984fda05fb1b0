"""`python -m mkframe validate FILE...`: checks reports and device cards and says everything that is wrong with them."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from mkframe.cli.parser import Parser
from mkframe.cli.printed import printed
from mkframe.errors import MkframeError, UsageError
from mkframe.validate import SIZE_LIMIT, Result, validate, validate_stream
from mkframe.validate.finding import Finding, error, readable
from mkframe.validate.formats import WORDS
from mkframe.validate.reader import TOO_LARGE

_MIB = 2**20


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code: 0 without errors, 1 with at least one, 2 for files that cannot be read as
    a report and for wrong usage; over several files the highest."""
    try:
        options = _parser().parse_args(argv)
        if options.files.count("-") > 1:
            raise UsageError("- (standard input) can be named only once")
        results = _results(options.files, options.size_limit)
        return _print_json(results) if options.format == "json" else _print_text(results)
    except MkframeError as problem:
        print(f"mkframe validate: {problem}", file=sys.stderr)
        return problem.exit_code
    except BrokenPipeError:  # the reader of our output has gone, `validate ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="mkframe validate",
        description="Checks comparison reports, energy reports and device cards against their schema; a comparison report of ours also for "
        "rates and shares of peak, and, read from a file, for the samples file beside it, which must have the SHA-256 that the report "
        "says; a device card also for figures that contradict each other. Medians and verdicts of reports are not recomputed from the "
        "samples, and the source hashes are not looked at. Needs no GPU.",
        epilog="Exit code: 0 without errors, 1 with at least one, 2 for unreadable files, unknown formats and wrong usage.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a report or a device card; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="lines for people, or one JSON document")
    parser.add_argument(
        "--size-limit", type=_mebibytes, default=SIZE_LIMIT, metavar="MIB", help=f"largest file in MiB (default {SIZE_LIMIT // _MIB})"
    )
    return parser


def _mebibytes(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of MiB from 1 to 999999")
    return int(text) * _MIB


def _results(files: list[str], size_limit: int) -> Iterator[Result]:
    for name in files:
        if name != "-":
            yield _with_advice(validate(name, size_limit=size_limit))
        elif sys.stdin is None:
            yield Result(path=name, format=None, findings=(error("read", "standard input is closed"),))
        else:
            yield _with_advice(validate_stream(sys.stdin.buffer, name, size_limit=size_limit))


def _with_advice(result: Result) -> Result:
    """Names the option for a file that is too large; the library has no options to name."""
    return replace(result, findings=tuple(map(_advised, result.findings))) if result.format is None else result


def _advised(finding: Finding) -> Finding:
    if not finding.message.startswith(TOO_LARGE):
        return finding
    return replace(finding, message=f"{finding.message}; --size-limit MIB raises it")


def _print_text(results: Iterator[Result]) -> int:
    code = 0
    for result in results:
        code = max(code, result.exit_code)
        for text in _lines(result):
            print(text)
    sys.stdout.flush()
    return code


def _lines(result: Result) -> Iterator[str]:
    file = printed(result.path or "")
    if not result.findings:
        yield f"{file}: ok ({WORDS[str(result.format)]})"
    for finding in result.findings:
        yield f"{file}: {readable(finding.pointer)}: {finding.severity} {finding.rule}: {printed(finding.message)}"


def _print_json(results: Iterator[Result]) -> int:
    done = list(results)
    print(json.dumps({"files": [result.document() for result in done]}, indent=2), flush=True)
    return max(result.exit_code for result in done)
