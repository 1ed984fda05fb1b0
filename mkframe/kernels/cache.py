"""Compiled kernels on disk: one file for each key in the user's cache folder, whole or not at all, and one writer at a time."""

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mkframe import canonical
from mkframe.errors import UnreadableError
from mkframe.kernels.result import Compiled, Damaged, Entry, decode, encode
from mkframe.user_cache import cache_folder

_SUFFIX = ".kernel"
_LOCK = ".lock"
_POLL_S = 0.02
_PATIENCE_S = 1.0

Tell = Callable[[str], None]


def kernels_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`kernels` in the user's cache folder."""
    return cache_folder(environ) / "kernels"


def to_stderr(text: str) -> None:
    print(f"mkframe: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A file of the cache. `entry` is None where it is damaged; `written` is the file's time, seconds since the epoch."""

    path: Path
    key: str
    entry: Entry | None
    bytes: int
    written: float


@dataclass(slots=True)
class KernelCache:
    """What is kept in `folder`. Nothing here fails a run: a folder that cannot be used and a damaged entry are told once each."""

    folder: Path
    tell: Tell = to_stderr
    _told: set[str] = field(default_factory=set)
    _memory: dict[str, Compiled] = field(default_factory=dict)

    def load(self, key: str) -> Compiled | None:
        """The kernel under a key, None where there is none that can be used. What was loaded or stored once is kept in memory too."""
        if key in self._memory:
            return self._memory[key]
        path = self._path(key)
        try:
            entry = decode(path.read_bytes())
            if entry.key != key:
                raise Damaged("it belongs to another key")
        except FileNotFoundError:
            return None
        except Damaged as damage:
            self._once(f"damaged {key}", f"kernel cache: {path.name} is damaged ({damage}); the kernel is compiled again")
            return None
        except OSError as error:
            self._unusable(error)
            return None
        return self._memory.setdefault(key, entry.compiled)

    def store(self, entry: Entry) -> None:
        """Puts an entry in place of whatever stands there."""
        self._memory[entry.key] = entry.compiled
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            canonical.write_atomically(self._path(entry.key), encode(entry))
        except (OSError, UnreadableError) as error:
            self._unusable(error)

    @contextmanager
    def writing(self, keys: Sequence[str]) -> Iterator[Callable[[str], None]]:
        """Holds the locks of `keys` against other processes, and gives a function that lets go of one of them early. Waits for whoever
        holds one; a Ctrl-C ends the wait. In a folder without locks everybody writes, which costs time alone."""
        held: dict[str, int] = {}

        def release(key: str) -> None:
            descriptor = held.pop(key, None)
            if descriptor is not None:
                self._path(key, _LOCK).unlink(missing_ok=True)  # whoever waits for it looks into the cache before it compiles
                os.close(descriptor)

        try:
            for key in sorted(set(keys)):  # in one order, so that two processes never wait for each other
                descriptor = self._locked(key)
                if descriptor is not None:
                    held[key] = descriptor
            yield release
        finally:
            for key in list(held):
                release(key)

    def listed(self) -> Iterator[Listed]:
        """The entries, by key. Raises UnreadableError where the folder cannot be read."""
        for path in self._files(_SUFFIX):
            try:
                data, status = path.read_bytes(), path.stat()
            except OSError:  # gone meanwhile, or not ours
                continue
            key = path.name.removesuffix(_SUFFIX)
            entry: Entry | None
            try:
                entry = decode(data)
            except Damaged:
                entry = None
            yield Listed(path=path, key=key, entry=entry, bytes=status.st_size, written=status.st_mtime)

    def clear(self, older_than_s: float = 0.0, now: float | None = None) -> tuple[int, int]:
        """Removes entries, and what interrupted processes left behind, that were written at least `older_than_s` seconds ago. Returns
        (entries, bytes of all files). A lock that is held stays. Raises UnreadableError where a file cannot be removed."""
        moment = time.time() if now is None else now
        entries = freed = 0
        for suffix in (_SUFFIX, ".part", _LOCK):
            for path in self._files(suffix):
                try:
                    status = path.stat()
                    if moment - status.st_mtime < older_than_s or (suffix == _LOCK and _is_held(path)):
                        continue
                    path.unlink()
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise UnreadableError(f"cannot remove {path}: {error.strerror or error}") from error
                entries += suffix == _SUFFIX
                freed += status.st_size
        return entries, freed

    def _path(self, key: str, suffix: str = _SUFFIX) -> Path:
        return self.folder / f"{key}{suffix}"

    def _files(self, suffix: str) -> list[Path]:
        try:
            return sorted(path for path in self.folder.iterdir() if path.name.endswith(suffix))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableError(f"cannot read {self.folder}: {error.strerror or error}") from error

    def _locked(self, key: str) -> int | None:
        """The descriptor of a lock that is held now, None where the folder takes none."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path(key, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            self._unusable(error)
            return None
        try:
            self._wait(descriptor)
        except OSError as error:
            os.close(descriptor)
            self._unusable(error)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _wait(self, descriptor: int) -> None:
        began = time.monotonic()
        while not _taken(descriptor):
            if time.monotonic() - began > _PATIENCE_S:
                self._once("waiting", "kernel cache: waiting for another process that compiles the same kernel")
            time.sleep(_POLL_S)

    def _unusable(self, error: Exception) -> None:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = getattr(cause, "strerror", None) or cause
        self._once("unusable", f"kernel cache: {self.folder} cannot be used ({reason}); every process compiles its kernels again")

    def _once(self, what: str, text: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self.tell(text)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return not _taken(descriptor)
    finally:
        os.close(descriptor)
