"""Run folders: made or taken so that no two runs ever write into the same one."""

import os
from pathlib import Path

from mkframe.errors import UnreadableError

JOURNAL = "journal.jsonl"
INDEX = "index.json"
_TRACES = ("report*.json", "samples-*.npz", JOURNAL, INDEX)
_TRIES = 1000


def claim_run_folder(path: Path, *, named: bool) -> Path:
    """Makes the folder of one run and returns it (absolute).

    A folder that the user named may exist as long as nothing of a run lies in it; the empty journal made here is the claim,
    so that a second run that names the same folder is refused. Any other folder is made exclusively, with -2, -3, ... behind
    its name where it is taken. Raises UnreadableError.
    """
    try:
        folder = _named(path.absolute()) if named else _fresh(path.absolute())
        os.close(os.open(folder / JOURNAL, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return folder


def claim_sweep_folder(path: Path, *, named: bool) -> Path:
    """Makes the folder of a sweep and returns it (absolute): as `claim_run_folder`, but its jobs' folders are the claim."""
    try:
        folder = _named(path.absolute()) if named else _fresh(path.absolute())
    except OSError as error:
        raise _unwritable(path, error) from error
    if next(folder.glob(f"*/{JOURNAL}"), None) is not None:
        raise _taken(path)
    return folder


def claim_job_folder(path: Path) -> Path:
    """Makes the folder of one job inside a sweep, exclusively: two sweeps, or two jobs, never share one."""
    try:
        path.mkdir(parents=True)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return claim_run_folder(path, named=True)


def _named(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(20, "it is a file and no folder")
    path.mkdir(parents=True, exist_ok=True)
    if any(next(path.glob(pattern), None) is not None for pattern in _TRACES):
        raise _taken(path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied")
    return path


def _fresh(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, _TRIES):
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            candidate.mkdir()
        except FileExistsError:
            continue
        return candidate
    raise FileExistsError(17, f"{_TRIES} folders of that name exist")


def _taken(path: Path) -> UnreadableError:
    return UnreadableError(f"{path} holds a run already; name another folder with out=DIR")


def _unwritable(path: Path, error: OSError) -> UnreadableError:
    return UnreadableError(f"cannot write {path}: {error.strerror or error}; name another folder with out=DIR")
