"""The journal of a run: one line per event that the report rests on, on disk before anything else happens.

Its unit is the block: case x process x round x engine. The run folder's lock is a lock on this file.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mkframe import canonical
from mkframe.errors import UnreadableError
from mkframe.run.journal_codec import JOURNALLED, Entry, decode, encode
from mkframe.run.stopped import Stopped, UnwritableJournal
from mkframe.validate.parser import parse

NAME = "journal.jsonl"
FORMAT = "journal/1"
FIRST_ENTRY = 2
"""The line of the first entry; line 1 is the head."""


class Journal:
    """Append-only and exclusive: one process writes a journal at a time, and its lock ends with that process.

    Raises UnreadableError where the folder cannot be written, the disk is full, or another run holds the journal.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise UnreadableError(f"cannot write {self._path}: {error.strerror}; choose another folder with out=DIR") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise UnreadableError(f"{folder} belongs to a run that is still going on; wait for it, or stop it") from error
        self._start = self._size()

    def begin(self, head: Mapping[str, Any]) -> None:
        """Writes the first line: what the blocks belong to."""
        self._append({"format": FORMAT, **head}, "free some space and start the run again, or choose another folder with out=DIR")
        self._start = self._size()

    def write(self, entry: Entry) -> None:
        """Appends an event, if the report rests on it, and waits until it is on disk."""
        if type(entry.event).__name__ in JOURNALLED:
            self._append(encode(entry), f"free some space, then resume={self._path.parent}")

    def take_back(self) -> None:
        """Removes what was appended since the journal was begun or read: a run that can measure nothing more leaves it as it was."""
        os.ftruncate(self._descriptor, self._start)

    def check_there(self) -> None:
        """Raises UnwritableJournal where somebody has removed the file: what goes on being written would be nowhere."""
        if os.fstat(self._descriptor).st_nlink == 0:
            raise UnwritableJournal(
                f"{self._path} was removed while the run went on, and what was measured with it; start the run again",
                Stopped(reason=f"{NAME} was removed while the run went on"),
                gone=True,
            )

    def close(self) -> None:
        with suppress(OSError):  # everything that counts was synchronised, or told to be lost
            os.close(self._descriptor)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def read(self) -> "Recorded":
        """What the journal holds. A last line that was cut short by a crash is removed: its block counts as not measured.

        Raises UnreadableError for anything else that is no journal.
        """
        data = self._path.read_bytes()
        whole, _, torn = data.rpartition(b"\n")
        if torn:
            os.ftruncate(self._descriptor, len(data) - len(torn))
        self._start = self._size()
        if not whole:
            raise UnreadableError(f"{self._path} is empty: nothing was measured there; start the run again")
        head, *lines = self._documents(whole)
        if head.pop("format", None) != FORMAT:
            raise UnreadableError(f"{self.line(1)}: it does not begin as a journal of this version ({FORMAT}) and cannot be resumed")
        entries = tuple(decode(line, self.line(number)) for number, line in enumerate(lines, start=FIRST_ENTRY))
        return Recorded(head=head, entries=entries)

    def line(self, number: int) -> str:
        """Names a line in a message; lines count from 1."""
        return f"{self._path}, line {number}"

    def _documents(self, data: bytes) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(data.split(b"\n"), start=1):
            parsed = parse(line)
            if parsed.faults:
                raise UnreadableError(f"{self.line(number)} is not JSON ({parsed.faults[0].message}); the run cannot be resumed")
            if not isinstance(parsed.document, dict):
                raise UnreadableError(f"{self.line(number)} is no object; the run cannot be resumed")
            yield parsed.document

    def _append(self, document: dict[str, Any], advice: str) -> None:
        """Raises UnwritableJournal, with `advice`, where the line is not on disk afterwards."""
        self.check_there()
        data = memoryview(canonical.line(document).encode())
        size = self._size()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)  # half a line would hide what comes after it
            raise UnwritableJournal(
                f"cannot write {self._path}: {error.strerror}; {advice}",
                Stopped(reason=f"cannot write {NAME}: {error.strerror}", cure="free some space"),
            ) from error

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A journal as it was read: its first line without the format, and its events in order, from line FIRST_ENTRY on."""

    head: Mapping[str, Any]
    entries: tuple[Entry, ...]
