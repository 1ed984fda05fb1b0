"""The files that the words of a command line stand for: files, globs, folders and standard input."""

import glob
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import BinaryIO

from mkframe.cli.printed import printed
from mkframe.errors import UnreadableError
from mkframe.validate import Result
from mkframe.validate.finding import error
from mkframe.validate.reader import RULE

STDIN = "-"
TAKEN = ("report*.json", "card*.json", "*-card.json")
"""What is taken from a folder, at any depth: reports as runs name them, and device cards."""

_MAGIC = re.compile(r"[*?\[]")


def standard_input() -> BinaryIO:
    """The bytes of standard input. Raises UnreadableError where it is closed."""
    if sys.stdin is None:
        raise UnreadableError("standard input is closed")
    return sys.stdin.buffer


def inputs(words: Sequence[str], say: Callable[[str], None]) -> Iterator[str | Result]:
    """The files that `words` name, in their order; a Result instead where a word gives none. `say` is told what a folder held.

    A word that is no file and holds *, ? or [ is a glob, for shells that leave it as it is.
    """
    for word in words:
        if word == STDIN:
            yield word
            continue
        for name in _globbed(word) or (_nothing(word, "no file matches this pattern"),):
            if isinstance(name, str) and os.path.isdir(name):
                yield from _of_folder(name, say)
            else:
                yield name


def _nothing(name: str, why: str) -> Result:
    return Result(path=name, format=None, findings=(error(RULE, why),))


def _globbed(word: str) -> Sequence[str]:
    if not _MAGIC.search(word) or "\0" in word or os.path.lexists(word):
        return (word,)
    return sorted(glob.glob(word, recursive=True))


def _of_folder(folder: str, say: Callable[[str], None]) -> Iterator[str | Result]:
    taken = 0
    for name in _files(folder):
        taken += isinstance(name, str)
        yield name
    if taken:
        say(f"{printed(folder)}: {taken} file{'s' if taken > 1 else ''} taken ({', '.join(TAKEN)})")
    else:
        yield _nothing(folder, f"a folder without any {' or '.join(TAKEN)} in it or below; name the files themselves")


def _files(folder: str) -> Iterator[str | Result]:
    """Files of TAKEN in `folder` and below, folder by folder, each sorted. Links to folders are not followed: they may go in circles."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as problem:
            yield _nothing(here, f"the folder cannot be listed: {problem.strerror or problem}")
            continue
        below = []
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            elif any(fnmatchcase(entry.name, pattern) for pattern in TAKEN) and not os.path.isdir(entry.path):
                yield entry.path
        waiting += reversed(below)
