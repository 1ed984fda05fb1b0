"""One program under one tool: started, waited for, and ended with everything that it has started."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mkframe.processes import descendants, end
from mkframe.sanitize.job import Answer, Job, read_answer, write_job
from mkframe.sanitize.tool import Sanitizer
from mkframe.text import one_line

_CHILD = (
    "import json, sys; job = sys.argv[1]; sys.path[:] = json.load(open(job, encoding='ascii'))['path']; "
    "from mkframe.sanitize.child import main; sys.exit(main(job))"
)
_POLL_S = 0.1
_LONGEST_COMPLAINT = 200


class Stopped(Exception):
    """Somebody wants the end: the program was killed, or was not started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a program under a tool ended. `code`: exit code of the tool, None where it was killed after `limit_s`. `log`: what the tool
    wrote. `answer`: what the program answered, None where it did not. `complaint`: the last line that either printed."""

    code: int | None
    log: str
    answer: Answer | None
    complaint: str
    seconds: float


def run_under(sanitizer: Sanitizer, tool: str, job: Job, limit_s: float, stop: threading.Event, uuid: str | None, exact: bool) -> Ended:
    """Runs the program for `job` on the GPU `uuid`. `exact`: torch gives every tensor an allocation of its own.

    Raises Stopped once `stop` is set, OSError where nothing can be started.
    """
    with tempfile.TemporaryDirectory(prefix="mkframe-sanitize-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log, answer, file, printed = folder / "log", folder / "answer", folder / "job", folder / "printed"
        write_job(file, replace(job, answer=str(answer)))
        command = [*sanitizer.command(tool, log, limit_s), sys.executable]
        command += [*subprocess._args_from_interpreter_flags(), "-c", _CHILD, str(file)]  # type: ignore[attr-defined]
        began = time.monotonic()
        with printed.open("wb") as output:
            code = _run(command, output.fileno(), folder, _environment(os.environ, uuid, exact), began + limit_s, stop)
        return Ended(
            code=code,
            log=log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "",
            answer=read_answer(answer),
            complaint=_last_line(printed),
            seconds=time.monotonic() - began,
        )


def _environment(environ: Mapping[str, str], uuid: str | None, exact: bool) -> dict[str, str]:
    found = {name: value for name, value in environ.items() if name != "PYTORCH_NO_CUDA_MEMORY_CACHING"}
    if exact:
        found["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # torch looks whether it is set, not what it says
    found["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no processes beside the one that is checked
    return found if uuid is None else found | {"CUDA_VISIBLE_DEVICES": uuid}


def _run(command: list[str], output: int, folder: Path, environ: Mapping[str, str], deadline: float, stop: threading.Event) -> int | None:
    """The exit code, or None after the deadline. The process leads a session of its own, which ends with this function."""
    if stop.is_set():
        raise Stopped
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=dict(environ), start_new_session=True
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(_POLL_S)
            if stop.is_set():
                raise Stopped
            if time.monotonic() > deadline:
                return None
    finally:
        end(descendants(child.pid))  # the tool starts its program in ways that leave the group behind
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _last_line(file: Path) -> str:
    lines = [one_line(line) for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:_LONGEST_COMPLAINT] if lines else ""
