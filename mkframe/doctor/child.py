"""Short-lived child processes: what may hang or crash does it there."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

_KILL_GRACE_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a child ended: `code` None where it was too slow or could not be started; `error` says so in words."""

    code: int | None
    output: str
    error: str

    @property
    def last_error(self) -> str:
        """The last line that it complained with."""
        lines = [line.strip() for line in self.error.splitlines() if line.strip()]
        return lines[-1][:200] if lines else f"exit code {self.code}"


def run_child(command: Sequence[str], timeout_s: float) -> Ended:
    """Runs a command without input in a process group of its own. A child that is too slow is killed and hardly waited for: one
    that hangs in a driver cannot be killed at all."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Ended(code=None, output="", error=f"cannot be started: {error.strerror or error}")
    try:
        output, complaint = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_KILL_GRACE_S)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        return Ended(code=None, output="", error=f"no answer within {timeout_s:g} s")
    return Ended(code=child.returncode, output=output, error=complaint)
