"""A run or a sweep: configuration, plan, blocks, report, table."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mkframe import canonical
from mkframe.cli.output import silence_stdout
from mkframe.cli.progress import Progress
from mkframe.cli.targets import shipped_targets
from mkframe.config.app import JobResult, SweepJob, run_hydra
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import MkframeError, RunError, UnreadableError, UsageError
from mkframe.model.outcome import Outcome
from mkframe.model.plan import RunPlan
from mkframe.plan.build import build_plan
from mkframe.plan.choice import device_for
from mkframe.plan.estimate import estimate
from mkframe.plan.history import load_history, remember
from mkframe.plan.host import measure_host
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry
from mkframe.probe.cards import identity, load_card
from mkframe.report.build import NO_SANITIZER
from mkframe.report.table import table_of
from mkframe.report.write import Written, write_report
from mkframe.run.coordinator import new_ledger, run_plan
from mkframe.run.device_lock import device_lock
from mkframe.run.journal import NAME as JOURNAL
from mkframe.run.journal import Journal
from mkframe.run.ledger import Ledger
from mkframe.run.resume import head_of, resume
from mkframe.run.signals import Signals
from mkframe.sanitize.statement import SanitizerRun, read_run
from mkframe.settings.nodes import Config, TargetGroup

INDEX = "index.json"
_SANITIZERS = "sanitizers="
_SHOWN_REASONS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    plan: RunPlan
    targets: tuple[TargetGroup, ...]
    note: str | None


def main(argv: Sequence[str]) -> int:
    """`--quiet` prints nothing but errors; `--json` prints one JSON document per job on standard output instead of the table."""
    quiet, as_json = "--quiet" in argv, "--json" in argv
    words = [word for word in argv if word not in ("--quiet", "--json")]
    plugin_paths, overrides = split_plugin_paths(words, os.environ)
    registry = load_registry(plugin_paths)
    rest, sanitizer_run = _sanitizer_run(overrides)
    command = _RunCommand(registry, quiet=quiet or as_json, as_json=as_json, sanitizer_run=sanitizer_run)
    folder = _folder_to_resume(rest)
    if folder is not None:
        return command.resume(folder, plugin_paths)
    return run_hydra(
        rest,
        registry,
        prepare=command.prepare,
        job=command.job,
        finish_sweep=command.finish_sweep,
        plugin_paths=plugin_paths,
        tell=command.tell,
    )


def _folder_to_resume(words: Sequence[str]) -> Path | None:
    """The folder of `resume=FOLDER`, which takes no other override: the configuration of that run is in its journal."""
    named = [word.removeprefix("resume=") for word in words if word.startswith("resume=")]
    if not named:
        return None
    if len(words) > 1 or not named[0]:
        raise UsageError("resume=FOLDER takes a run folder and no other override but plugin_path; the rest stands in its journal")
    return Path(named[0]).expanduser().absolute()


def _sanitizer_run(words: Sequence[str]) -> tuple[list[str], SanitizerRun | None]:
    """The words without `sanitizers=FILE`, and what that file holds. Raises UsageError, UnreadableError."""
    named = [word.removeprefix(_SANITIZERS) for word in words if word.startswith(_SANITIZERS)]
    rest = [word for word in words if not word.startswith(_SANITIZERS)]
    if len(named) > 1 or "" in named:
        raise UsageError("sanitizers=FILE takes one result file of mkframe sanitize")
    return rest, read_run(Path(named[0]).expanduser()) if named else None


class _RunCommand:
    def __init__(self, registry: Registry, *, quiet: bool, as_json: bool, sanitizer_run: SanitizerRun | None = None) -> None:
        self._registry = registry
        self._quiet = quiet
        self._as_json = as_json
        self._sanitizer_run = sanitizer_run
        self._told: set[str] = set()

    def prepare(self, config: Config) -> _Job:
        resolved = device_for(config, self._registry)
        plan = build_plan(config, self._registry, resolved.device)
        if self._sanitizer_run is not None:
            self._sanitizer_run.check_plan(plan)
        return _Job(plan=plan, targets=config.targets.groups, note=resolved.note)

    def tell(self, note: str | None) -> None:
        """Says something about the run, once."""
        if note is not None and note not in self._told and not self._quiet:
            self._told.add(note)
            print(f"mkframe: {note}", file=sys.stderr)

    def job(self, job: _Job, folder: Path) -> JobResult:
        plan = job.plan
        try:
            for note in (job.note, *plan.notes):
                self.tell(note)  # not before: a mistake of the user is one line and nothing else
            if not any(case.runnable for case in plan.cases):
                raise _nothing_to_report((cell.engine.id, cell.unsupported) for _, cell in plan.cells())
            ledger = new_ledger(plan)
            if self._sanitizer_run is not None:
                self._sanitizer_run.check_sources(ledger.sources, all_of_them=False)  # what is not yet imported is checked at the end
            with Signals() as signals:  # from here on the end of this job is that of a whole sweep
                journal = Journal(folder)
                journal.begin(asdict(head_of(ledger)))
                result = self._run(ledger, journal, folder, job.targets, signals)
        except (MkframeError, KeyboardInterrupt):
            _give_back(folder)
            raise
        if result.report is None:
            _give_back(folder)
        return result

    def resume(self, folder: Path, plugin_paths: Sequence[str]) -> int:
        """Goes on with the run in `folder`, and writes its report."""
        resumed = resume(folder, self._registry, plugin_paths)
        if self._sanitizer_run is not None:
            self._sanitizer_run.check_plan(resumed.ledger.plan)
        with Signals() as signals:
            result = self._run(resumed.ledger, resumed.journal, folder, shipped_targets(), signals)
        if result.error is not None:
            print(f"mkframe: {result.error}", file=sys.stderr)
        return result.exit_code

    def _run(self, ledger: Ledger, journal: Journal, folder: Path, targets: tuple[TargetGroup, ...], signals: Signals) -> JobResult:
        """Measures what is missing, then writes and shows the report. Whatever else goes wrong once somebody has asked for the end,
        the result says so: no other job may begin."""
        try:
            return self._measured(ledger, journal, folder, targets, signals)
        except MkframeError as error:
            if not signals.heard:
                raise
            return JobResult(exit_code=error.exit_code, error=str(error), interrupted=True)

    def _measured(self, ledger: Ledger, journal: Journal, folder: Path, targets: tuple[TargetGroup, ...], signals: Signals) -> JobResult:
        with journal:
            with device_lock(ledger.plan.device, ledger.plan.wait_s, self.tell):
                run_plan(ledger, journal, self._progress(ledger.plan), signals)
            if not ledger.hellos:
                raise RunError(f"the run ended before anything was measured{_why(ledger)}")
            journal.check_there()
            try:
                written = write_report(folder, ledger, load_card(*identity(ledger.plan.device)), self._sanitizers(ledger))
            except UnreadableError as error:
                raise UnreadableError(
                    f"{error}; what was measured is in the journal: resume={_relative(folder)} writes the report"
                ) from error
        if written is None:  # the workers found out what the plan could not know
            raise _nothing_to_report((state.plan.engine.id, state.reason) for state in ledger.cells.values())
        remember(written.report.document())
        code = exit_code(ledger)
        try:
            self._show(written, targets, code)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read our output has gone; the run counts all the same
            silence_stdout()
        except OSError as error:
            silence_stdout()
            print(f"mkframe: cannot write to standard output: {error.strerror}; the report is {_relative(written.path)}", file=sys.stderr)
            code = 2  # as for every other command: a part of an output must not be taken for the whole
        return JobResult(exit_code=code, report=written.path.name, error=_summary(ledger, folder), interrupted=signals.heard)

    def _sanitizers(self, ledger: Ledger) -> str:
        """What the report says of sanitizers. Measurements are not lost over a file that turns out to be of other sources: it is told."""
        if self._sanitizer_run is None:
            return NO_SANITIZER
        try:
            self._sanitizer_run.check_sources(ledger.sources, all_of_them=True)
        except UsageError as error:
            print(f"mkframe: {error}; the report says: {NO_SANITIZER}", file=sys.stderr)
            return NO_SANITIZER
        return self._sanitizer_run.sentence(ledger.plan)

    def _progress(self, plan: RunPlan) -> Progress:
        """With an estimate of the time only where somebody can see it."""
        if self._quiet or not sys.stderr.isatty():
            return Progress(self._quiet)
        return Progress(self._quiet, estimate(plan, self._registry.workload(plan.workload), load_history(), measure_host()))

    def finish_sweep(self, root: Path, jobs: tuple[SweepJob, ...]) -> None:
        """Writes index.json: every job with its overrides, folder, exit code, report and its SHA-256, or its error."""
        entries = [
            {
                "number": job.number,
                "overrides": list(job.overrides),
                "exit_code": job.result.exit_code,
                "report": None if job.result.report is None else f"{job.folder}/{job.result.report}",
                "sha256": None if job.result.report is None else canonical.sha256((root / job.folder / job.result.report).read_bytes()),
                "error": job.result.error,
            }
            for job in jobs
        ]
        path = root / INDEX
        canonical.write_atomically(path, canonical.dumps({"format": "index/1", "jobs": entries}).encode())
        if not self._quiet:
            print(f"index: {_relative(path)}")

    def _show(self, written: Written, targets: tuple[TargetGroup, ...], code: int) -> None:
        document = written.report.document()
        if self._as_json:
            print(json.dumps({"report": str(_relative(written.path)), "exit_code": code, "cells": _cells(document)}))
        elif not self._quiet:
            from mkframe.cli.show_table import show

            show(table_of(document, targets))
            print(f"report: {_relative(written.path)}")


def exit_code(ledger: Ledger) -> int:
    """0 where every cell that is supported passed and the run was not cut short, else 1."""
    fine = (Outcome.PASSED, Outcome.UNSUPPORTED)
    return 0 if ledger.stopped is None and all(outcome in fine for outcome in ledger.outcomes().values()) else 1


def _summary(ledger: Ledger, folder: Path) -> str | None:
    """One line where the exit code is not 0."""
    if exit_code(ledger) == 0:
        return None
    if ledger.stopped is not None:
        stopped, rest = ledger.stopped, f"resume={_relative(folder)} measures the rest"
        then = f", {rest}" if stopped.cure is None else f"; {stopped.cure}, then {rest}"
        return f"the run ended early, {stopped.reason}; what was measured is in the report{then}"
    failed = [(key, outcome) for key, outcome in ledger.outcomes().items() if outcome not in (Outcome.PASSED, Outcome.UNSUPPORTED)]
    (name, case, engine), outcome = failed[0]
    more = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{len(failed)} of {len(ledger.cells)} cells did not pass: {engine} on {name}[{case}]: {outcome}{more}"


def _why(ledger: Ledger) -> str:
    stopped = ledger.stopped
    if stopped is None:
        return ""
    return f": {stopped.reason}" + ("" if stopped.cure is None else f"; {stopped.cure} and start the run again")


def _nothing_to_report(cells: Iterable[tuple[str, str | None]]) -> RunError:
    """`cells`: engines with the reason why they are unsupported."""
    reasons = list(dict.fromkeys(f"{engine}: {reason}" for engine, reason in cells))
    more = f"; and {len(reasons) - _SHOWN_REASONS} more" if len(reasons) > _SHOWN_REASONS else ""
    return RunError(f"every cell is unsupported, so there is nothing to report: {'; '.join(reasons[:_SHOWN_REASONS])}{more}")


def _cells(document: dict[str, object]) -> list[dict[str, object]]:
    """The cells for machine-readable output: what became of each, and its median in microseconds."""
    block = document["mkframe"]
    assert isinstance(block, dict), "our own reports carry their block"
    medians = _medians(document)
    keys = ("set", "case", "shape", "engine", "outcome", "reason")
    return [
        {**{key: cell[key] for key in keys}, "p50_us": medians.get((cell["set"], str(cell["shape"]), cell["engine"]))}
        for cell in block["cells"]
    ]


def _medians(document: dict[str, object]) -> dict[tuple[str, str, str], float]:
    found = {}
    for name, cases in document.items():
        for case in cases if isinstance(cases, list) else ():
            if isinstance(case, dict):
                for engine, result in case["engines"].items():
                    if "stream_summary" in result:
                        found[name, str(case["shape"]), engine] = result["stream_summary"]["p50_ms"] * 1e3
    return found


def _give_back(folder: Path) -> None:
    """Removes a run folder in which nothing was measured; one that holds anything else stays."""
    journal = folder / JOURNAL
    try:
        if journal.read_bytes().count(b"\n") <= 1:
            journal.unlink()
            folder.rmdir()
    except OSError:
        return


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
