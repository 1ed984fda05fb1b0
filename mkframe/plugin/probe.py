"""Imports other people's plugins in a process of their own first: what ends, hangs or forks a process at import does it there.

Nothing in Python survives a segmentation fault, `_exit` from C or a loop without an end, so only another process can find out.
"""

import ctypes
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from mkframe.plugin.asking import importing
from mkframe.plugin.folders import open_folders

LIMIT_S = 30.0
"""An import may take this long: torch comes with many plugins, and from a cold disk it takes its time."""
_CHILD = (
    "import json, os, sys; job = json.load(sys.stdin); os.dup2(os.open(os.devnull, os.O_RDWR), 0); sys.path[:] = job['path']; "
    "from mkframe.plugin.probe import child_main; child_main(job['folders'], job['modules'], job['report'])"
)
_POLL_S = 0.005
_PR_SET_PDEATHSIG = 1
_WHEN = {False: "it is imported", True: "the program ends"}


def unsafe_modules(folders: Sequence[str], modules: Sequence[str]) -> dict[str, str]:
    """Import name -> one clause, for each of `modules` that a process does not survive. `folders`: the plugin folders they stand in.

    Without modules no process is started; with good ones it is one for all of them.
    """
    found: dict[str, str] = {}
    left = list(modules)
    while left:
        number, reason = _tried(folders, left)
        if reason is None:
            break
        if number is None:  # all were imported, and then the process ended badly: one of them made it so
            found |= _blamed(folders, left)
            break
        found[left.pop(number)] = reason  # and again without it: the end of the others was not seen
    return found


def _blamed(folders: Sequence[str], modules: Sequence[str]) -> dict[str, str]:
    each = {module: _tried(folders, [module])[1] for module in modules}
    return {module: reason for module, reason in each.items() if reason is not None}


def _tried(folders: Sequence[str], modules: Sequence[str]) -> tuple[int | None, str | None]:
    """(which of the modules ended the process, how); (None, how) where the process ended badly after them, (None, None) if well."""
    with _child(folders, modules) as (child, report):
        begun, buffer = -1, b""
        deadline = time.monotonic() + LIMIT_S
        while select.select([report], [], [], max(0.0, deadline - time.monotonic()))[0]:
            data = os.read(report, 4096)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                what, _, number = line.partition(b" ")
                if what == b"forked":  # the copy tells it, perhaps when the process is further on
                    at = _which(int(number), modules)
                    return at, f"it forks the process when {_WHEN[at is None]}"
                begun, deadline = int(number), time.monotonic() + LIMIT_S
        at = _which(begun, modules)
        when = f"when {_WHEN[at is None]}"
        if not _ended_by(child, deadline):
            return at, f"it does not come to an end within {LIMIT_S:g} s {when}"
        code = child.returncode
        if at is None and code == 0:
            return None, None
        how = f"kills the process with {signal.Signals(-code).name}" if code < 0 else f"ends the process with code {code}"
        return at, f"it {how} {when}"


def _which(number: int, modules: Sequence[str]) -> int | None:
    return max(number, 0) if number < len(modules) else None


@contextmanager
def _child(folders: Sequence[str], modules: Sequence[str]) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The process, in a group that ends with the block, and the end of the pipe that it reports to."""
    report, theirs = os.pipe()
    job = {"path": sys.path, "folders": list(folders), "modules": list(modules), "report": theirs}
    command = [sys.executable, *subprocess._args_from_interpreter_flags(), "-c", _CHILD]  # type: ignore[attr-defined]
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # whatever a plugin prints, it prints again when it is loaded
            pass_fds=(theirs,),
            start_new_session=True,
        )
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(theirs)
    try:
        assert child.stdin is not None, "it is a pipe"
        with suppress(BrokenPipeError), child.stdin:
            child.stdin.write(json.dumps(job).encode("ascii"))
        yield child, report
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        os.close(report)


def _ended_by(child: "subprocess.Popen[bytes]", deadline: float) -> bool:
    try:
        child.wait(max(_POLL_S, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def child_main(folders: Sequence[str], modules: Sequence[str], report: int) -> None:
    """What the child process does: a line on `report` before each module and one after the last, then it ends as programs end. A copy of
    the process says which module made it, and ends at once."""
    os.set_inheritable(report, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # who asked is gone: nobody would end an import that hangs
    process, at, leave = os.getpid(), 0, os._exit  # now: `importing` refuses to leave

    def forked() -> None:
        os.write(report, b"forked %d\n" % at)
        leave(0)

    os.register_at_fork(after_in_child=forked)
    with importing():
        for _ in open_folders(folders):
            pass
        for at, module in enumerate(modules):  # `forked` reads it
            os.write(report, b"at %d\n" % at)
            with suppress(BaseException):  # told where the plugin is loaded
                importlib.import_module(module)
            if os.getpid() != process:  # forked from C
                forked()
    os.write(report, b"at %d\n" % len(modules))
