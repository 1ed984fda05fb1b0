"""Code of a plugin runs inside these: what it prints and warns of must not reach what mkframe writes itself."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import NoReturn

from mkframe.text import told


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Around one question: prints go to stderr; warnings, which would show folders of this machine, are dropped; nothing leaves."""
    with _staying(), contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Around imports: whatever is written to stdout goes to stderr, also by compiled code and child processes; nothing leaves."""
    _flush()
    try:
        kept = os.dup(1)
    except OSError:  # stdout is closed
        kept = None
    try:
        if kept is not None:
            with contextlib.suppress(OSError):
                os.dup2(2, 1)
        with _staying(), contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _flush()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


@contextlib.contextmanager
def _staying() -> Iterator[None]:
    """`os._exit`, which would end the program without a word, raises SystemExit here. In a child that was forked meanwhile, and for
    a plugin that has kept the name when all this is over, it ends the process as ever."""
    leave, process, inside = os._exit, os.getpid(), True

    def refuse(status: int) -> NoReturn:
        if inside and os.getpid() == process:
            raise SystemExit(f"os._exit({status!r})")
        leave(status)

    os._exit = refuse
    try:
        yield
    finally:
        os._exit, inside = leave, False


def _flush() -> None:
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()


@contextlib.contextmanager
def failing_as(kind: type[Exception], what: str) -> Iterator[None]:
    """`asking`, and whatever the plugin raises, SystemExit too, becomes a `kind`: `WHAT failed: ZeroDivisionError: ...`."""
    try:
        with asking():
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise kind(f"{what} failed: {told(error)}") from error
