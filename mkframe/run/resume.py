"""Goes on with a run that ended early: the plan comes from its journal's first line, the finished blocks from the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mkframe import __version__, canonical
from mkframe.config.load import from_public
from mkframe.config.nodes import DeviceConfig, DeviceKind
from mkframe.errors import DeviceError, MkframeError, UnreadableError, UsageError
from mkframe.model.device import Device
from mkframe.model.plan import RunPlan
from mkframe.plan.build import build_plan
from mkframe.plan.devices import resolve
from mkframe.plugin.registry import Registry
from mkframe.run.journal import NAME, Journal
from mkframe.run.ledger import Ledger
from mkframe.run.sources import imported_sources
from mkframe.stamp import Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """A run as far as it got. The journal is locked and open for what is missing."""

    ledger: Ledger
    journal: Journal


def head_of(ledger: Ledger) -> dict[str, Any]:
    """The first line of a journal: what a resumed run must find unchanged, and nothing that names this machine."""
    plan = ledger.plan
    return {
        "mkframe": __version__,
        "config": dict(plan.config),
        "config_sha256": canonical.digest(dict(plan.config)),
        "device": {"kind": plan.device.kind, "name": plan.device.name, "uuid": plan.device.uuid},
        "source_commit": ledger.source.commit,
        "source_dirty": ledger.source.dirty,
        "source_sha256": dict(ledger.sources),
    }


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
        try:
            plan, ledger = _rebuilt(recorded.head, registry, plugin_paths)
            for entry in recorded.entries:
                ledger.apply(entry)
        except (KeyError, TypeError, AttributeError) as error:
            raise UnreadableError(
                f"{folder / NAME} does not fit its own plan ({type(error).__name__}: {error}); start the run again"
            ) from error
        _same_plan(recorded.head, plan)
    except MkframeError:
        journal.close()
        raise
    return Resumed(ledger=ledger, journal=journal)


def _rebuilt(head: Mapping[str, Any], registry: Registry, plugin_paths: Sequence[str]) -> tuple[RunPlan, Ledger]:
    now = imported_sources(())
    for file, digest in head["source_sha256"].items():
        if now.get(file, digest) != digest:
            raise UsageError(
                f"resume: {file} has changed since the run began; a report holds one code: go back to it, or start the run again"
            )
    config = replace(from_public(head["config"]), plugin_path=tuple(plugin_paths))
    plan = build_plan(config, registry, _device(head["device"], config.device))
    return plan, Ledger(plan, Source(commit=head["source_commit"], dirty=head["source_dirty"]), dict(head["source_sha256"]))


def _device(recorded: Mapping[str, Any], config: DeviceConfig) -> Device:
    """The very device that the run had."""
    kind = DeviceKind(recorded["kind"])
    device = resolve(replace(config, kind=kind, index=None, uuid=recorded["uuid"])).device
    if device.name != recorded["name"]:
        raise DeviceError(f"resume: the run was on {recorded['name']}, and this is {device.name}; a report holds one device")
    return device


def _same_plan(head: Mapping[str, Any], plan: RunPlan) -> None:
    if canonical.digest(dict(plan.config)) != head["config_sha256"]:
        raise UsageError("resume: the configuration in the journal was changed, or is of another version; start the run again")
