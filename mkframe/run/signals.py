"""Signals of a run: the first one ends the measuring, the report is written, and no second one gets in between."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_STOPPING = {
    signal.SIGINT: "interrupted from the keyboard",
    signal.SIGTERM: "terminated by a signal",
    signal.SIGHUP: "its terminal was closed",
}


class Interrupted(KeyboardInterrupt):
    """Somebody wants the run to end. The message says who."""


class Signals:
    """Holds SIGINT, SIGTERM and SIGHUP for the time of a run and its report. Usable in the main thread only.

    The first signal raises Interrupted, and only inside `interruptible`: what was measured is journaled and entered whole or not at all.
    One that comes elsewhere raises it when `interruptible` is entered next. All others are ignored. A signal that was ignored
    before stays so: under nohup a run outlives its terminal, in the background of a script it outlives a Ctrl-C.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._first: str | None = None
        self._interruptible = False

    def __enter__(self) -> "Signals":
        minded = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._note) for number in minded}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def heard(self) -> bool:
        """Whether somebody wants the end, also where nothing has been raised for it yet."""
        return self._first is not None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        self._interruptible = True
        try:
            if self._first is not None:
                raise Interrupted(self._first)
            yield
        finally:
            self._interruptible = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._first is None:
            self._first = _STOPPING[signal.Signals(number)]
            if self._interruptible:
                raise Interrupted(self._first)
