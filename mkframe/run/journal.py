"""The journal of a run: one line per finished block, on disk before the next block starts."""

import os
from pathlib import Path
from typing import IO

from mkframe import canonical
from mkframe.errors import UnreadableError
from mkframe.model.plan import CasePlan, RunPlan
from mkframe.run.messages import BlockDone

NAME = "journal.jsonl"
FORMAT = "journal/1"


class Journal:
    """Append-only. The first line says which plan the blocks belong to.

    Raises UnreadableError where the folder cannot be written, or the disk is full.
    """

    def __init__(self, folder: Path, plan: RunPlan) -> None:
        self._path = folder / NAME
        try:
            self._file: IO[str] = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise UnreadableError(
                f"cannot write in the run folder {folder}: {error.strerror}; choose another with hydra.run.dir=..."
            ) from error
        self._append({"format": FORMAT, "workload": plan.workload, "config_sha256": canonical.digest(dict(plan.config))})

    def block(self, case: CasePlan, process: int, block: BlockDone) -> None:
        """One finished block: times in ms, every sample."""
        self._append(
            {
                "set": case.set,
                "case": case.index,
                "process": process,
                "round": block.round,
                "engine": block.engine,
                "late": block.late,
                "stream_ms": block.stream_ms.tolist(),
                "host_ms": block.host_ms.tolist(),
            }
        )

    def close(self) -> None:
        self._file.close()

    def _append(self, entry: dict[str, object]) -> None:
        try:
            self._file.write(canonical.line(entry))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise UnreadableError(f"cannot write {self._path}: {error.strerror}; free some space and run again") from error
