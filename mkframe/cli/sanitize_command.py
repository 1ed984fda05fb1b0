"""`python -m mkframe sanitize`: the selected CUDA engines under compute-sanitizer, on real shapes."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mkframe import canonical
from mkframe.cli.output import console
from mkframe.cli.printed import printed
from mkframe.config.one_job import one_job
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import DeviceError, SelectionError, UnreadableError, UsageError
from mkframe.model.plan import RunPlan
from mkframe.plan.build import build_plan
from mkframe.plan.choice import device_for
from mkframe.plugin.loader import load_registry
from mkframe.run.device_lock import device_lock
from mkframe.sanitize.result import Check, Outcome, Result, to_check
from mkframe.sanitize.runner import Runner
from mkframe.sanitize.tool import TOOLS, find

_HELP = """usage: mkframe sanitize [engine=ENGINE] [shape=SET] [tool=memcheck,racecheck,synccheck,initcheck] [overrides]

Runs every selected engine on every case under NVIDIA's compute-sanitizer, each in a process of its own: bound as a run binds it,
called twice (graph forms: captured and replayed twice) on two inputs, and compared. Writes a JSON file and prints a table.
Exit code 0 where every cell was checked and no tool found an error, 1 where one did or a cell could not be checked.

  tool=TOOLS           one or more of {tools}; all by default
  --timeout SECONDS    the longest time of one program, {timeout:g} by default
  --jobs N             programs at a time, 1 by default; nothing is timed, so up to {most} do no harm
  --output FILE        the JSON file; by itself one in outputs/sanitize
  --sanitizer PROGRAM  compute-sanitizer, where it is not in PATH"""
_TIMEOUT_S = 600.0
_MOST_JOBS = 8
_WIDTH_OF_A_FILE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    words: tuple[str, ...]
    tools: tuple[str, ...] = TOOLS
    timeout_s: float = _TIMEOUT_S
    jobs: int = 1
    output: str | None = None
    sanitizer: str | None = None


def main(argv: list[str]) -> int:
    """Exit code 0, 1 where there are errors or cells that could not be checked, 2 for a wrong command line or a missing tool."""
    options = _options(argv)
    if options is None:
        print(_HELP.format(tools=", ".join(TOOLS), timeout=_TIMEOUT_S, most=_MOST_JOBS))
        return 0
    plugin_paths, rest = split_plugin_paths(options.words, os.environ)
    plan = _plan(rest, plugin_paths)
    sanitizer = find(options.sanitizer)
    output = _output(options.output)
    runner = Runner(plan, sanitizer, options.tools, limit_s=options.timeout_s, jobs=options.jobs, tell=_tell)
    with device_lock(plan.device, plan.wait_s, lambda note: print(f"mkframe: {note}", file=sys.stderr)):
        result = runner.run()
    canonical.write_atomically(output, canonical.dumps(result.document()).encode())
    _show(result)
    print(f"result: {output}")
    if result.interrupted:
        print("mkframe: interrupted; what was checked until then is in the result", file=sys.stderr)
    return 0 if result.passed else 1


def _plan(words: Sequence[str], plugin_paths: tuple[str, ...]) -> RunPlan:
    """Raises DeviceError without a GPU, SelectionError where no selected engine can run on it."""
    registry = load_registry(plugin_paths)
    config = one_job(words, "sanitize", registry, plugin_paths)
    resolved = device_for(config, registry)
    if resolved.device.kind != "cuda":
        why = f" ({resolved.note})" if resolved.note else ""
        raise DeviceError(f"sanitize checks CUDA kernels and needs a GPU{why}; select a CUDA engine, and no device=cpu")
    plan = build_plan(config, registry, resolved.device)
    if next(to_check(plan), None) is None:
        case, cell = next(plan.cells())
        raise SelectionError(f"there is nothing to check: {cell.engine.id} on {case.set}[{case.index}]: {cell.unsupported}")
    return plan


def _options(argv: Sequence[str]) -> _Options | None:
    """None for --help. Raises UsageError."""
    words: list[str] = []
    tools: tuple[str, ...] = TOOLS
    timeout_s, jobs, output, sanitizer = _TIMEOUT_S, 1, None, None
    rest = iter(argv)
    for word in rest:
        name, equals, attached = word.partition("=")
        if word in ("-h", "--help"):
            return None
        if name in ("--timeout", "--jobs", "--output", "--sanitizer") and not equals:
            attached = next(rest, "")
        if name == "tool":
            tools = _tools(attached)
        elif name == "--timeout":
            timeout_s = _number(name, attached, math.inf)
        elif name == "--jobs":
            jobs = int(_number(name, attached, _MOST_JOBS))
        elif name in ("--output", "--sanitizer"):
            if not attached:
                raise UsageError(f"{name} takes the name of a file")
            output, sanitizer = (attached, sanitizer) if name == "--output" else (output, attached)
        else:
            words.append(word)
    return _Options(words=tuple(words), tools=tools, timeout_s=timeout_s, jobs=jobs, output=output, sanitizer=sanitizer)


def _tools(text: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(item.strip(" '\"") for item in text.strip(" '\"").removeprefix("[").removesuffix("]").split(",")))
    unknown = [name for name in named if name not in TOOLS]
    if unknown:
        raise UsageError(f"tool={text}: there is no {unknown[0]!r}; give one or more of {', '.join(TOOLS)}")
    return named


def _number(name: str, text: str, most: float) -> float:
    """A finite number above 0; a whole one up to `most` where that is finite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    whole = math.isfinite(most)
    if not 0 < value < math.inf or value > most or (whole and value != int(value)):
        raise UsageError(f"{name} takes {f'a number from 1 to {most:g}' if whole else 'seconds above 0'}, not {text!r}")
    return value


def _output(named: str | None) -> Path:
    """The file to write, in a folder that is there. Raises UnreadableError before anything runs."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%d_%H-%M-%S-%f")
    path = Path("outputs", "sanitize", f"{stamp}.json") if named is None else Path(named)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"--output {path}: the folder cannot be made: {error.strerror}") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UnreadableError(f"--output {path}: cannot be written; choose another file")
    return path


def _tell(done: int, count: int, check: Check) -> None:
    found = _words(check)
    where = f"{check.engine} {check.set}[{check.case}] {check.tool}"
    print(printed(f"{done}/{count} {where}: {found} ({check.seconds:.1f} s)"), file=sys.stderr, flush=True)


def _words(check: Check) -> str:
    if check.outcome is Outcome.UNCHECKED:
        return "unchecked"
    warned = f", {_counted(check.warnings or 0, 'warning')}" if check.warnings else ""
    return f"{_counted(check.errors or 0, 'error')}{warned}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _show(result: Result) -> None:
    from rich.table import Table
    from rich.text import Text

    title = f"{result.plan.workload} in {result.plan.precision.id} on {result.plan.device.name}, compute-sanitizer {result.version}"
    table = Table(title=Text(printed(title)), title_justify="left")
    for column in ("engine", "case", "shape", *result.tools, "seconds"):
        table.add_column(column)
    for checks in _rows(result):
        first = checks[0]
        shape = "x".join(str(size) for size in first.shape.values())
        seconds = f"{sum(check.seconds for check in checks):.1f}"
        words = (first.engine, f"{first.set}[{first.case}]", shape, *map(_words, checks), seconds)
        table.add_row(*(Text(printed(word)) for word in words))
    out = console(_WIDTH_OF_A_FILE)
    out.print(table)
    for line in _lines(result):
        out.print(Text(printed(line)), soft_wrap=True)


def _rows(result: Result) -> Iterator[list[Check]]:
    """The checks of one engine on one case, in the order of the tools."""
    rows: dict[tuple[str, str, int], list[Check]] = {}
    for check in result.checks:
        rows.setdefault((check.engine, check.set, check.case), []).append(check)
    yield from rows.values()


def _lines(result: Result) -> Iterator[str]:
    for check in result.checks:
        where = f"{check.engine} on {check.set}[{check.case}], {check.tool}"
        for text in (*check.messages, *([] if check.reason is None else [check.reason])):
            yield f"{where}: {text}"
    refused = [cell for _, cell in result.plan.cells() if cell.unsupported is not None]
    for name, reason in {cell.engine.id: cell.unsupported for cell in refused}.items():
        yield f"{name}: not checked on {_counted(sum(cell.engine.id == name for cell in refused), 'case')}: {reason}"
    cached = {check.engine: None for check in result.checks if check.allocator == "caching"}
    if cached:
        yield f"{', '.join(cached)}: with torch's caching allocator, behind which memcheck misses writes next to a tensor"
    for file in result.differing:
        yield f"{file} was changed while the checks ran: run them again"
    for tool, found in result.totals().items():
        rest = f", {_counted(found.unchecked, 'cell')} unchecked" if found.unchecked else ""
        counts = f"{_counted(found.errors, 'error')}, {_counted(found.warnings, 'warning')}"
        yield f"{tool}: {counts} on {_counted(found.cells - found.unchecked, 'cell')}{rest}"
