"""What the command and its child process say to each other. Plain data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mkframe.conformance.requirements import Result
from mkframe.model.device import Device


class Broken(Exception):
    """A requirement does not hold; the message is the reason, one clause."""


class NotAsked(Exception):
    """A requirement cannot be asked here; the message is the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseOf:
    """One case to ask about: where it stands (`development[3]`), its seed and its fields. `generated` is no shape set's."""

    label: str
    seed: int
    values: Mapping[str, int]
    generated: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """Whom to ask, and about what. `left_out` counts cases of shape sets that are too large for a test of conformance.

    Before the configuration is known (Phase.PLUGIN) only `engine`, `workload` (None: whichever has the engine) and
    `plugin_paths` are filled.
    """

    engine: str
    workload: str | None
    plugin_paths: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    precisions: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    cases: tuple[CaseOf, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """The process has imported what it needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """A sign of life: what it turns to now."""

    doing: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The answer to one requirement. `healthy`: the process can be asked on."""

    result: Result
    reason: str
    healthy: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The user asked for something that does not exist: one line."""

    reason: str


Event = Ready | Beat | Ended | Refused
