"""Which source this package is: the commit of its checkout, or the stamp that its wheel carries."""

import importlib
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mkframe.errors import UsageError

COMMIT_VARIABLE = "MKFRAME_SOURCE_COMMIT"
DIRTY_VARIABLE = "MKFRAME_SOURCE_DIRTY"

_HERE = Path(__file__).resolve()
_GIT_SECONDS = 10.0
COMMIT = re.compile(r"[0-9a-f]{40}")
_OUR_PROJECT = re.compile(r'^name\s*=\s*"mkframe"\s*$', re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """`commit`: 40 lower-case hex digits. `dirty`: uncommitted changes or new files; None where nobody knows."""

    commit: str | None
    dirty: bool | None


def source_commit() -> str | None:
    """The commit of this source, or None. Raises UsageError for a variable that is no commit."""
    return source().commit


def source_dirty() -> bool | None:
    """Whether this source differs from `source_commit`, or None where that is unknown. Raises UsageError likewise."""
    return source().dirty


def source() -> Source:
    """The first of these that exists: the checkout that holds this package, the variables MKFRAME_SOURCE_COMMIT (with
    MKFRAME_SOURCE_DIRTY, 0 or 1), the wheel's stamp. Both answers come from the same one, so that they belong together.

    Raises UsageError when a variable that counts holds something else.
    """
    return _checkout(_HERE) or _variables() or _wheel() or Source(commit=None, dirty=None)


def commit_fault(recorded: Source, files: Iterable[str]) -> str | None:
    """Why this code cannot be the one that says `recorded` of itself: one clause, or None. `files` are modules of this package that took
    part, as mkframe/NAME.py. A later commit that leaves them alone is no fault, and nor is a commit that nobody knew.

    Raises UsageError as `source` does.
    """
    if recorded.commit is None:
        return None
    if _checkout(_HERE) is None:
        now = source().commit
        return None if now == recorded.commit else f"source_commit is {recorded.commit}, and that of this code is {now or 'unknown'}"
    root = _HERE.parents[1]
    if _git(root, "cat-file", "-e", f"{recorded.commit}^{{commit}}") is None:
        return f"source_commit is {recorded.commit}, which this checkout does not have"
    if recorded.dirty is False:
        changed = _git(root, "diff", "--name-only", recorded.commit, "--", *(f":(literal){file}" for file in files)) or ""
        if changed:
            return f"source_commit is {recorded.commit} without changes, and {changed.splitlines()[0]} is another file there"
    return None


def _checkout(module: Path) -> Source | None:
    """The checkout of this very project around `module`. An installation inside another project's checkout is none."""
    root = module.parents[1]
    project = root / "pyproject.toml"
    if not (root / ".git").exists() or not project.is_file():
        return None
    if not _OUR_PROJECT.search(project.read_text(encoding="utf-8", errors="replace")):
        return None
    tracked = _git(root, "ls-files", "--", module.relative_to(root).as_posix())
    commit = (_git(root, "rev-parse", "--verify", "HEAD") or "").strip()
    if not tracked or not COMMIT.fullmatch(commit):
        return None
    changes = _git(root, "status", "--porcelain", "--untracked-files=normal")
    return Source(commit=commit, dirty=None if changes is None else bool(changes.strip()))


def _variables() -> Source | None:
    commit, dirty = os.environ.get(COMMIT_VARIABLE, ""), os.environ.get(DIRTY_VARIABLE, "")
    if not commit:
        return None
    if not COMMIT.fullmatch(commit):
        raise UsageError(f"{COMMIT_VARIABLE}={commit!r} is not a commit: give 40 lower-case hex digits or leave it unset")
    if dirty not in ("", "0", "1"):
        raise UsageError(f"{DIRTY_VARIABLE}={dirty!r}: give 0 (as committed) or 1 (changed), or leave it unset")
    return Source(commit=commit, dirty=None if dirty == "" else dirty == "1")


def _wheel() -> Source | None:
    try:
        stamp = importlib.import_module("mkframe._stamp")
    except ImportError:
        return None
    return Source(commit=stamp.COMMIT, dirty=stamp.DIRTY)


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None when it is missing, fails or takes too long. Asks nobody, locks nothing, looks at no folder
    above `root`, and ignores the GIT_ variables of a hook that we may run in."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    # A checkout that is mounted into a container belongs to another user; its code runs here already.
    command = ["git", "-C", str(root), "-c", f"safe.directory={root}", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
