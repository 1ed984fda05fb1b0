"""NVIDIA's compute-sanitizer: where it is, which version it is, and how it is called."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mkframe.errors import UnreadableError, UsageError
from mkframe.text import one_line

NAME = "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
ERROR_EXIT_CODE = 86
"""What compute-sanitizer returns where the program ended well and the tool found errors; no code that a program ends with by itself."""
_VERSION = re.compile(r"\bVersion (\d[\w.]*)")
_ANSWER_S = 60.0
_PADDING_BYTES = 512
_MOST_PRINTED = 20
_LONGEST_QUOTE = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Sanitizer:
    """An installed compute-sanitizer. `pads`: it can put unusable bytes behind every allocation."""

    path: str
    version: str
    pads: bool

    def command(self, tool: str, log: Path, limit_s: float) -> list[str]:
        """The words in front of the program that is to be checked; what the tool says goes to the file `log`.

        Only the program itself is instrumented, not what it starts. API calls that fail are left to the program: torch tries some that may.
        """
        words = [self.path, "--tool", tool, "--target-processes", "application-only"]
        words += ["--error-exitcode", str(ERROR_EXIT_CODE), "--log-file", str(log)]
        words += ["--print-limit", str(_MOST_PRINTED), "--show-backtrace", "no"]
        words += ["--launch-timeout", str(int(limit_s) + 1)]  # by itself it gives up on programs that take long to their first CUDA call
        if tool == "memcheck":
            words += ["--report-api-errors", "no"]
            if self.pads:  # else a write behind a buffer may hit the next one, and that is no error
                words += ["--padding", str(_PADDING_BYTES)]
        return words


def find(named: str | None, environ: Mapping[str, str] = os.environ) -> Sanitizer:
    """The executable that is named, else the one in PATH, in CUDA_HOME or where CUDA toolkits are usually installed.

    Raises UsageError where there is none, UnreadableError where it does not say what it is.
    """
    path = _path(named, environ)
    said = _said(path, "--version")
    version = _VERSION.search(said)
    if version is None or "compute sanitizer" not in said.lower():
        raise UnreadableError(f"{path} --version does not name a version of Compute Sanitizer, but says: {one_line(said)[:_LONGEST_QUOTE]}")
    return Sanitizer(path=path, version=version[1], pads="--padding" in _said(path, "--help"))


def _path(named: str | None, environ: Mapping[str, str]) -> str:
    if named is not None:
        found = shutil.which(named, path=environ.get("PATH"))
        if found is None:
            raise UsageError(f"--sanitizer {named}: there is no such program that can be started")
        return os.path.abspath(found)
    folders = [Path(environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if environ.get(name)]
    folders += [Path("/usr/local/cuda/bin")]
    places = os.pathsep.join([environ.get("PATH", ""), *map(str, folders)])
    found = shutil.which(NAME, path=places)
    if found is None:
        raise UsageError(
            f"{NAME} is not there: not in PATH, CUDA_HOME or /usr/local/cuda; it comes with the CUDA toolkit "
            "(package cuda-sanitizer), or name it with --sanitizer PROGRAM"
        )
    return found


def _said(path: str, word: str) -> str:
    command: Sequence[str] = (path, word)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = "no answer" if isinstance(error, subprocess.TimeoutExpired) else error.strerror
        raise UnreadableError(f"{path} {word} cannot be asked: {why}") from error
    return (done.stdout + done.stderr).decode(errors="replace")
