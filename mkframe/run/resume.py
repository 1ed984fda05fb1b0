"""Goes on with a run that ended early: the plan comes from its journal's first line, the finished blocks from the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mkframe import __version__, canonical
from mkframe.config.load import from_public
from mkframe.errors import DeviceError, MkframeError, UnreadableError, UsageError
from mkframe.model.device import Device
from mkframe.model.plan import RunPlan
from mkframe.plan.build import build_plan
from mkframe.plan.devices import resolve
from mkframe.plugin.registry import Registry
from mkframe.run.journal import FIRST_ENTRY, NAME, Journal
from mkframe.run.journal_values import Misfit, check_digests, record_as
from mkframe.run.ledger import Ledger
from mkframe.run.messages import CaseReady
from mkframe.run.replay import Replay
from mkframe.run.sources import sources_now
from mkframe.run.stopped import Changed, check_sources
from mkframe.settings.nodes import DeviceConfig, DeviceKind
from mkframe.stamp import COMMIT, Source, commit_fault
from mkframe.validate.finding import shown

_HAS_UUID = {"cpu": False, "cuda": True}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """A run as far as it got. The journal is locked and open for what is missing."""

    ledger: Ledger
    journal: Journal


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadDevice:
    """The device of a run: `uuid` on a GPU alone."""

    kind: str
    name: str
    uuid: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The first line of a journal, without its format: what a resumed run must find unchanged, and nothing that names this machine.

    `mkframe`: its version. `config_sha256`: of `config`. `source_sha256`: of every file of the framework that took part, by name.
    """

    mkframe: str
    config: Mapping[str, Any]
    config_sha256: str
    device: HeadDevice
    source_commit: str | None
    source_dirty: bool | None
    source_sha256: Mapping[str, str]


def head_of(ledger: Ledger) -> Head:
    plan, source = ledger.plan, ledger.source
    return Head(
        mkframe=__version__,
        config=dict(plan.config),
        config_sha256=canonical.digest(dict(plan.config)),
        device=HeadDevice(kind=plan.device.kind, name=plan.device.name, uuid=plan.device.uuid),
        source_commit=source.commit,
        source_dirty=source.dirty,
        source_sha256=dict(ledger.sources),
    )


def resume(folder: Path, registry: Registry, plugin_paths: Sequence[str]) -> Resumed:
    """Rebuilds plan and ledger of the run in `folder`.

    Raises UnreadableError for a folder without a usable journal or with a run that is still going on, UsageError where the code
    or a plugin is not what it was, DeviceError where the device is another one.
    """
    if not (folder / NAME).is_file():
        raise UnreadableError(f"resume: {folder} holds no {NAME}; name the folder of one run")
    journal = Journal(folder)
    try:
        recorded = journal.read()
        head = _head(recorded.head, journal.line(1))
        ledger = _rebuilt(head, registry, plugin_paths, journal.line(1))
        modules = tuple(_plugin_modules(ledger.plan, registry))
        replay = Replay(ledger)
        for number, entry in enumerate(recorded.entries, start=FIRST_ENTRY):
            try:
                replay.take(entry)
            except Misfit as error:
                raise UnreadableError(
                    f"{journal.line(number)} does not fit what stands before it ({error}); start the run again"
                ) from error
            if isinstance(entry.event, CaseReady):
                _check_files(entry.event.sources, modules, journal.line(number))
        _check_commit(head, journal.line(1))
    except MkframeError:
        journal.close()
        raise
    return Resumed(ledger=ledger, journal=journal)


def _head(document: Mapping[str, Any], where: str) -> Head:
    try:
        head = record_as(Head, document, "it")
        if canonical.digest(dict(head.config)) != head.config_sha256:
            raise Misfit("config is not what config_sha256 says")
        if head.device.kind not in _HAS_UUID or (head.device.uuid is None) is _HAS_UUID[head.device.kind]:
            raise Misfit(f"device must be a cpu, or a cuda device with its uuid, not {head.device.kind!r} with {head.device.uuid!r}")
        check_digests(head.source_sha256, "source_sha256")
        if head.source_commit is not None and not COMMIT.fullmatch(head.source_commit):
            raise Misfit(f"source_commit must be 40 hexadecimal digits, not {shown(head.source_commit)}")
    except Misfit as error:
        raise UnreadableError(f"{where} is no head of a journal ({error}); start the run again") from error
    return head


def _check_files(recorded: Mapping[str, str], plugin_modules: Sequence[str], where: str) -> None:
    """Raises UsageError, naming `where`, for a file that is not what it was."""
    try:
        check_sources(recorded, sources_now(recorded, plugin_modules))
    except Changed as error:
        raise UsageError(f"{where}: {error}") from error


def _check_commit(head: Head, where: str) -> None:
    """Raises UsageError, naming `where`, for a commit that is not that of this code."""
    ours = tuple(file for file in head.source_sha256 if file.startswith("mkframe/"))
    fault = commit_fault(Source(commit=head.source_commit, dirty=head.source_dirty), ours)
    if fault is not None:
        raise UsageError(f"{where}: {fault}; go back to the code of that run, or start the run again")


def _rebuilt(head: Head, registry: Registry, plugin_paths: Sequence[str], where: str) -> Ledger:
    _check_files(head.source_sha256, (), where)
    config = replace(from_public(head.config), plugin_path=tuple(plugin_paths))
    plan = build_plan(config, registry, _device(head.device, config.device))
    if canonical.digest(dict(plan.config)) != head.config_sha256:
        raise UsageError("resume: the configuration in the journal is of another version; start the run again")
    return Ledger(plan, Source(commit=head.source_commit, dirty=head.source_dirty), dict(head.source_sha256))


def _plugin_modules(plan: RunPlan, registry: Registry) -> Iterator[str]:
    """Those of the workload and the engines of a plan. What they import later, a worker sees."""
    yield registry.workloads[plan.workload].module
    for _, cell in plan.cells():
        yield registry.engines[plan.workload, cell.engine.engine].module


def _device(recorded: HeadDevice, config: DeviceConfig) -> Device:
    """The very device that the run had."""
    device = resolve(replace(config, kind=DeviceKind(recorded.kind), index=None, uuid=recorded.uuid)).device
    if device.name != recorded.name:
        raise DeviceError(f"resume: the run was on {recorded.name}, and this is {device.name}; a report holds one device")
    return device
