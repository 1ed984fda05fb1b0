"""`python -m mkframe conformance engine=MINE`: everything that an engine must satisfy, as a list with reasons."""

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mkframe.config.one_job import one_job, shape_set_names
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.conformance.messages import Setup
from mkframe.conformance.requirements import REQUIREMENTS, Finding, Phase, Result
from mkframe.conformance.runner import Runner
from mkframe.conformance.setup import setup_of
from mkframe.errors import MkframeError, SelectionError, UsageError
from mkframe.model.plan import GRAPH_SUFFIX
from mkframe.plugin.loader import load_registry

_HELP = """usage: mkframe conformance engine=ENGINE [plugin_path=DIR] [overrides] [--timeout SECONDS] [--format text|json]
       mkframe conformance --list

Asks an engine everything that it must satisfy, in processes of their own, and prints one line for each requirement.
Exit code 0 where none fails, 1 where one does, 2 where the engine does not exist.

  --list             the requirements
  --timeout SECONDS  longest silence of the engine, 120 by default
  --format FORM      text for people (default), or one JSON document"""
_TIMEOUT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Options:
    words: tuple[str, ...]
    form: str = "text"
    timeout_s: float = _TIMEOUT_S
    listing: bool = False
    help: bool = False


def main(argv: list[str]) -> int:
    """Exit code 0, 1 where a requirement fails, 2 for a wrong command line."""
    options = _options(argv)
    if options.help:
        print(_HELP)
        return 0
    if options.listing:
        _list(options.form)
        return 0
    plugin_paths, words = split_plugin_paths(options.words, os.environ)
    engine_id = _engine(words)
    findings = _findings(engine_id, words, plugin_paths, options)
    failed = any(finding.result is Result.FAIL for finding in findings)
    if options.form == "json":
        rows = [{"name": f.name, "text": f.text, "result": str(f.result), "reason": f.reason} for f in findings]
        print(json.dumps({"format": "conformance/1", "engine": engine_id, "passed": not failed, "requirements": rows}, indent=2))
    else:
        counts = {result: sum(finding.result is result for finding in findings) for result in Result}
        print(f"{engine_id}: {counts[Result.PASS]} passed, {counts[Result.FAIL]} failed, {counts[Result.SKIP]} skipped")
    return 1 if failed else 0


def _findings(engine_id: str, words: Sequence[str], plugin_paths: tuple[str, ...], options: _Options) -> list[Finding]:
    """The words are checked before anything is asked; where the engine itself stands against a configuration, the requirements say so."""
    first = [requirement for requirement in REQUIREMENTS if requirement.phase is Phase.PLUGIN]
    rest = [requirement for requirement in REQUIREMENTS if requirement.phase is not Phase.PLUGIN]
    workload = next((word.removeprefix("workload=") for word in reversed(words) if word.startswith("workload=")), None)
    bare = Setup(engine=engine_id, workload=workload, plugin_paths=plugin_paths)
    whole = _possible_setup(engine_id, words, plugin_paths)
    with Runner(options.timeout_s, _tell if options.form == "text" else _say_nothing) as runner:
        runner.ask(bare, first)
        passed = {finding.name for finding in runner.findings if finding.result is Result.PASS}
        usable = {"loads", "option defaults"} <= passed
        runner.ask((whole or _setup(engine_id, words, plugin_paths)) if usable else bare, rest)
        return runner.findings


def _possible_setup(engine_id: str, words: Sequence[str], plugin_paths: tuple[str, ...]) -> Setup | None:
    """What the words ask for, or None where it is not for them that there is no setup. Raises UsageError for a mistake in the words."""
    try:
        return _setup(engine_id, words, plugin_paths)
    except UsageError:
        try:
            _setup(engine_id, [word for word in words if word.startswith(("engine=", "workload="))], plugin_paths)
        except MkframeError:
            return None
        raise
    except MkframeError:
        return None


def _setup(engine_id: str, words: Sequence[str], plugin_paths: tuple[str, ...]) -> Setup:
    registry = load_registry(plugin_paths)
    named = [word.partition("=")[0] for word in words]
    overrides = list(words)
    if "workload" not in named:
        workloads = [workload for workload, engine in registry.engines if engine == engine_id]
        if not workloads:
            raise SelectionError(f"no engine is called {engine_id!r}; mkframe engines lists them")
        overrides.insert(0, f"workload={workloads[0]}")
    if "shape" not in named:
        overrides.append(f"shape=[{','.join(shape_set_names(overrides, registry))}]")
    config = one_job(overrides, "conformance", registry, plugin_paths)
    return setup_of(config, registry, engine_id, own_shapes="shape" in named, own_precision="precision" in named)


def _engine(words: Sequence[str]) -> str:
    """The id of the one engine under test. Raises UsageError."""
    named = [word.removeprefix("engine=") for word in words if word.startswith("engine=")]
    if len(named) != 1:
        raise UsageError("conformance tests one engine: give engine=ENGINE once; mkframe engines lists them")
    name = named[0].strip("[]'\" ")
    if not name or "," in name or name in ("all", "baselines"):
        raise UsageError(f"conformance tests one engine, not {named[0]!r}; give engine=ENGINE")
    if name.endswith(GRAPH_SUFFIX):
        raise UsageError(f"conformance tests the graph form with its engine: give engine={name.removesuffix(GRAPH_SUFFIX)}")
    return name


def _options(argv: Sequence[str]) -> _Options:
    words: list[str] = []
    form, timeout_s, listing = "text", _TIMEOUT_S, False
    rest = iter(argv)
    for word in rest:
        name, _, attached = word.partition("=")
        if word in ("-h", "--help"):
            return _Options(words=(), help=True)
        if word == "--list":
            listing = True
        elif name == "--format":
            form = attached or next(rest, "")
            if form not in ("text", "json"):
                raise UsageError(f"--format takes text or json, not {form!r}")
        elif name == "--timeout":
            timeout_s = _seconds(attached or next(rest, ""))
        else:
            words.append(word)
    return _Options(words=tuple(words), form=form, timeout_s=timeout_s, listing=listing)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"--timeout takes seconds above 0, not {text!r}")
    return value


def _list(form: str) -> None:
    if form == "json":
        print(json.dumps([{"name": item.name, "text": item.text} for item in REQUIREMENTS], indent=2))
    else:
        for item in REQUIREMENTS:
            print(f"{item.name:<20} {item.text}")


def _tell(finding: Finding) -> None:
    print(f"{finding.result:<5} {finding.name}: {finding.reason}")
    sys.stdout.flush()


def _say_nothing(finding: Finding) -> None: ...
