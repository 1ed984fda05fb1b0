"""What a person sees while a run goes on: one line with cell, round and time left, on a terminal only; failures always."""

import sys
from time import monotonic
from typing import Any

from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan
from mkframe.plan.budget import seconds
from mkframe.plan.estimate import Estimate
from mkframe.run.time_left import TimeLeft, step_of


class Progress:
    """An observer. The line appears on a terminal (unless `quiet`); a cell that fails is told at once, one line on stderr.

    `expected` is what the plan is expected to take; without it the line shows no time left.
    """

    def __init__(self, quiet: bool, expected: Estimate | None = None) -> None:
        self._quiet = quiet
        self._expected = expected
        self._bar: Bar | None = None
        self._time_left: TimeLeft | None = None

    def started(self, blocks: int) -> None:
        if not self._quiet and sys.stderr.isatty():
            self._time_left = None if self._expected is None else TimeLeft(self._expected, monotonic())
            self._bar = Bar(blocks, self._time_left)

    def starting(self, process: int) -> None:
        if self._time_left is not None:
            self._time_left.starting(process, monotonic())
        if self._bar is not None:
            self._bar.tell(f"starting process {process}")

    def doing(self, case: CasePlan, engine: str | None, what: str) -> None:
        if self._time_left is not None:
            self._time_left.enter(step_of(what), case.key, engine, monotonic())
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
        if self._time_left is not None:
            self._time_left.drop(case.key, engine)
        if not self._quiet:
            print(f"mkframe: {_told(case, engine)}: {outcome}: {reason}", file=sys.stderr)

    def trying_again(self, case: CasePlan, engine: str | None, reason: str) -> None:
        if not self._quiet:
            print(f"mkframe: {_told(case, engine)}: {reason}; trying once more", file=sys.stderr)

    def finished(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Bar:
    """rich's progress line on stderr, with the time left by our own account."""

    def __init__(self, blocks: int, time_left: TimeLeft | None) -> None:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, ProgressColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column
        from rich.text import Text

        class TimeLeftColumn(ProgressColumn):
            max_refresh = 0.5

            def render(self, task: Any) -> Text:
                return Text(left_text(time_left))

        self._total = blocks
        self._progress = RichProgress(
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("blocks,", table_column=Column(no_wrap=True)),
            TimeLeftColumn(table_column=Column(no_wrap=True)),
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


def _told(case: CasePlan, engine: str | None) -> str:
    shape = "x".join(str(value) for value in case.shape.values())
    return f"{engine or 'every engine'} on {case.set} {shape}"


def left_text(time_left: TimeLeft | None) -> str:
    """`about 3 min 20 s left:`, or nothing where it is not known."""
    return "" if time_left is None else f"about {seconds(time_left.left_s(monotonic()))} left:"
