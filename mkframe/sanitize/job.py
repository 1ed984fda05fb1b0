"""What the process under the tool is asked, and what it answers: JSON, so that nothing but files passes the tool."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One cell. `answer`: the file for the answer. `path`: sys.path of the asking process."""

    workload: str
    precision: str
    device_kind: str
    engine: str
    graph: bool
    options: Mapping[str, Any]
    case: Mapping[str, Any]
    seed: int
    answer: str
    path: tuple[str, ...]
    plugin_paths: tuple[str, ...] = ()
    unsafe_plugins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """`calls`: calls whose output was compared and right. `reason`: why the rest was not done, None where all was.
    `capture_failed`: the reason is that the call cannot be captured. `sources`: file -> SHA-256 of what was imported."""

    calls: int
    reason: str | None
    capture_failed: bool
    sources: Mapping[str, str]


def write_job(path: Path, job: Job) -> None:
    path.write_text(json.dumps(asdict(job)), encoding="ascii")


def write_answer(path: Path, answer: Answer) -> None:
    path.write_text(json.dumps(asdict(answer)), encoding="ascii")


def read_answer(path: Path) -> Answer | None:
    """The answer, or None where there is none that can be read: the process ended before it was whole, or an engine wrote it over."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="ascii"))
        kinds = {"calls": int, "reason": str | None, "capture_failed": bool, "sources": dict}
        return Answer(**found) if all(isinstance(found[name], kind) for name, kind in kinds.items()) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
