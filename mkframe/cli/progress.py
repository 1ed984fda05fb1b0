"""What a person sees while a run goes on: one line with cell, round and time left, on a terminal only; failures always."""

import sys

from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan


class Progress:
    """An observer. The line appears on a terminal (unless `quiet`); a cell that fails is told at once, one line on stderr."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: Bar | None = None

    def started(self, blocks: int) -> None:
        if not self._quiet and sys.stderr.isatty():
            self._bar = Bar(blocks)

    def doing(self, case: CasePlan, engine: str | None, what: str) -> None:
        if self._bar is not None:
            shape = "x".join(str(value) for value in case.shape.values())
            self._bar.tell(f"{case.set} {shape} {engine or ''}: {what}")

    def block_done(self) -> None:
        if self._bar is not None:
            self._bar.advance()

    def blocks_dropped(self, count: int) -> None:
        if self._bar is not None:
            self._bar.shrink(count)

    def cell_failed(self, case: CasePlan, engine: str | None, outcome: Outcome, reason: str) -> None:
        if not self._quiet:
            shape = "x".join(str(value) for value in case.shape.values())
            print(f"mkframe: {engine or 'every engine'} on {case.set} {shape}: {outcome}: {reason}", file=sys.stderr)

    def finished(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Bar:
    """rich's progress line on stderr."""

    def __init__(self, blocks: int) -> None:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        self._total = blocks
        self._progress = RichProgress(
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("blocks,", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("left:", table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            console=Console(stderr=True),
            transient=True,
            expand=True,
        )
        self._task = self._progress.add_task("starting", total=blocks)
        self._progress.start()

    def tell(self, text: str) -> None:
        self._progress.update(self._task, description=text)

    def advance(self) -> None:
        self._progress.advance(self._task)

    def shrink(self, count: int) -> None:
        self._total -= count
        self._progress.update(self._task, total=self._total)

    def close(self) -> None:
        self._progress.stop()
