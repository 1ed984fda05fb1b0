"""`python -m mkframe compile`: every kernel of the selected engines, compiled without a GPU, with what can be known of it."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mkframe.cli.output import console
from mkframe.cli.printed import printed
from mkframe.config.one_job import one_job
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import KernelError, UsageError
from mkframe.kernels import SHARED_BYTES, Compiled, arch_of, compile_kernels, target
from mkframe.kernels.key import compiler
from mkframe.model.kernel import Kernel, Target
from mkframe.plan.devices import resolve
from mkframe.plan.kernels import Refusal, Use, Wanted, wanted_kernels
from mkframe.plugin.loader import load_registry
from mkframe.settings.nodes import Config, DeviceKind

_HELP = """usage: mkframe compile [engine=ENGINE] [shape=SET] ['device.arch=[sm_90a,sm_86]'] [overrides] [--format text|json]

Compiles every kernel that the selected engines launch, for every architecture, and prints registers, spills, shared memory, PTX
and the instructions that the kernel promises. No GPU is needed. Kernels go to the disk cache, where a run finds them.
Exit code 0 where all is as promised, 1 where a kernel does not compile, spills or lacks an instruction.

  device.arch    one or more of {archs}; without it the device that is named or there, else all of them
  --format FORM  text for people (default), or one JSON document"""
_KEY = "device.arch"
_COLUMNS = ("kernel", "arch", "registers", "spilled", "shared", "block", "cluster", "PTX lines", "PTX SHA-256", "expected instructions")
_SHORT_HASH = 12
_WIDTH_OF_A_FILE = 200
_SECONDS_PLACES = 3


def main(argv: list[str]) -> int:
    """Exit code 0, 1 where a kernel is not as promised, 2 for a wrong command line."""
    words, archs, form = _options(argv)
    if form is None:
        print(_HELP.format(archs=", ".join(SHARED_BYTES)))
        return 0
    plugin_paths, rest = split_plugin_paths(words, os.environ)
    registry = load_registry(plugin_paths)
    config = one_job(rest, "compile", registry, plugin_paths)
    targets = _targets(config, archs)
    wanted = wanted_kernels(config, registry, targets)
    rows = [row for one in targets for row in _rows(one, wanted.kernels[one])]
    document = _document(config, targets, wanted, rows)
    if form == "json":
        print(json.dumps(document, indent=2))
    else:
        _show(document, wanted.refusals)
    return 0 if document["passed"] else 1


def _options(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...], str | None]:
    """(overrides and Hydra's flags, architectures named, the form or None for --help). Raises UsageError."""
    words: list[str] = []
    archs: tuple[str, ...] = ()
    form = "text"
    rest = iter(argv)
    for word in rest:
        name, _, attached = word.partition("=")
        if word in ("-h", "--help"):
            return [], (), None
        if name == "--format":
            form = attached or next(rest, "")
            if form not in ("text", "json"):
                raise UsageError(f"--format takes text or json, not {form!r}")
        elif name == _KEY:
            archs = _archs(attached)
        else:
            words.append(word)
    return words, archs, form


def _archs(text: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(item.strip(" '\"") for item in text.strip(" '\"").removeprefix("[").removesuffix("]").split(",")))
    if "" in named:
        raise UsageError(f"{_KEY}={text}: give one architecture or a list, as in '{_KEY}=[sm_90a,sm_86]'")
    return named


def _targets(config: Config, archs: Sequence[str]) -> tuple[Target, ...]:
    """Those that are named; else the device's, where the configuration names one or one is there; else all."""
    card = config.device.card
    of_card = () if card is None else (target(arch_of(card.compute_capability), card.multiprocessors),)
    if archs:
        return tuple(next((one for one in of_card if one.arch == arch), target(arch)) for arch in archs)
    if of_card:
        return of_card
    if config.device.kind is not DeviceKind.CPU:
        capability = resolve(config.device).device.compute_capability
        if capability is not None:
            return (target(arch_of(capability)),)
    return tuple(target(arch) for arch in SHARED_BYTES)


def _rows(one: Target, kernels: Mapping[Kernel, Use]) -> Iterator[dict[str, Any]]:
    if not kernels:
        return
    print(f"{one.arch}: {len(kernels)} kernel{'' if len(kernels) == 1 else 's'}", file=sys.stderr, flush=True)
    for kernel, found in compile_kernels(tuple(kernels), one).items():
        use = kernels[kernel]
        row = {
            "name": kernel.name,
            "module": kernel.module,
            "config": asdict(kernel.config),
            "arch": one.arch,
            "engines": use.engines,
            "cases": use.cases,
            "shared_bytes": kernel.shared_bytes,
            "block": kernel.block,
            "cluster": kernel.cluster,
        }
        yield row | ({"problems": [str(found)]} if isinstance(found, KernelError) else _evidence(kernel, found))


def _evidence(kernel: Kernel, found: Compiled) -> dict[str, Any]:
    problems = [f"lacks the instruction {text}" for text in found.lacks(kernel.expects)]
    if found.frame_bytes:
        problems.insert(0, f"spills: {found.frame_bytes} bytes of local memory a thread")
    return {
        "entry": found.entry,
        "registers": found.registers,
        "spill_bytes": found.frame_bytes,
        "parameters": [asdict(parameter) for parameter in found.parameters],
        "ptx_lines": found.ptx_lines,
        "ptx_sha256": found.ptx_sha256,
        "cubin_bytes": len(found.cubin),
        "cubin_sha256": found.cubin_sha256,
        "compile_s": round(found.compile_s, _SECONDS_PLACES),
        "from_cache": found.cached,
        "expects": {text: found.count(text) for text in kernel.expects},
        "instructions": dict(found.instructions),
        "problems": problems,
    }


def _document(config: Config, targets: Sequence[Target], wanted: Wanted, rows: list[dict[str, Any]]) -> dict[str, Any]:
    failed = [refusal for refusal in wanted.refusals if refusal.failed]
    return {
        "format": "compile/1",
        "workload": config.workload.id,
        "precision": config.precision.id,
        "archs": [one.arch for one in targets],
        "compiler": list(compiler()) if rows else [],
        "passed": not failed and not any(row["problems"] for row in rows),
        "kernels": rows,
        "refused": [asdict(refusal) for refusal in wanted.refusals],
        "not_compiled_ahead": wanted.without,
    }


def _show(document: dict[str, Any], refusals: Sequence[Refusal]) -> None:
    from rich.table import Table
    from rich.text import Text

    rows = document["kernels"]
    out = console(_WIDTH_OF_A_FILE)
    if rows:
        title = f"kernels of {document['workload']} in {document['precision']}, {', '.join(document['compiler'][:1])}"
        table = Table(title=Text(title), title_justify="left")
        for column in _COLUMNS:
            table.add_column(column)
        for row in rows:
            table.add_row(*(Text(printed(word)) for word in _words(row)))
        out.print(table)
    lines = [f"{row['name']} ({row['arch']}, {row['cases'][0]}): {problem}" for row in rows for problem in row["problems"]]
    lines += _refused(refusals)
    lines += [f"{engine}: {reason}" for engine, reason in document["not_compiled_ahead"].items()]
    taken = sum(row.get("from_cache", False) for row in rows)
    broken = sum(bool(row["problems"]) for row in rows)
    lines.append(f"{len(rows)} kernels: {len(rows) - broken} as promised, {broken} not; {taken} from the cache")
    for line in lines:
        out.print(Text(printed(line)), soft_wrap=True)


def _words(row: Mapping[str, Any]) -> tuple[str, ...]:
    launch = (str(row["shared_bytes"]), str(row["block"]), str(row["cluster"]))
    if "registers" not in row:
        return row["name"], row["arch"], "-", "-", *launch, "-", "-", "does not compile"
    evidence = ", ".join(f"{text} {number}" for text, number in row["expects"].items())
    return (
        row["name"],
        row["arch"],
        str(row["registers"]),
        str(row["spill_bytes"]),
        *launch,
        str(row["ptx_lines"]),
        row["ptx_sha256"][:_SHORT_HASH],
        evidence,
    )


def _refused(refusals: Sequence[Refusal]) -> Iterator[str]:
    """One line for each engine, architecture and reason, with the cases that it stands for."""
    grouped: dict[tuple[str, str, str, bool], list[str]] = {}
    for one in refusals:
        grouped.setdefault((one.engine, one.arch, one.reason, one.failed), []).append(one.case)
    for (engine, arch, reason, failed), cases in grouped.items():
        more = f" and {len(cases) - 1} more cases" if len(cases) > 1 else ""
        yield f"{engine} ({arch}, {cases[0]}{more}): {'failed' if failed else 'not supported'}: {reason}"
