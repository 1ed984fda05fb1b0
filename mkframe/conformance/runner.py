"""Asks the requirements one by one in a child process. What kills or silences the child costs the requirement at hand alone."""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import TypeVar

from mkframe.conformance.child import child_main
from mkframe.conformance.messages import Beat, Ended, Ready, Refused, Setup
from mkframe.conformance.requirements import Finding, Phase, Requirement, Result
from mkframe.errors import RunError, UsageError
from mkframe.processes import GroupLeader

_START_TIMEOUT_S = 300.0
_GRACE_S = 2.0


Answer = TypeVar("Answer", Ready, Ended)


class _Gone(Exception):
    """The child ended or fell silent; the message says how."""


class Runner:
    """Findings in the order in which they are made. As a context manager it leaves no process behind.

    `timeout_s`: the longest silence of the child, between two cells say. `tell` gets every finding as it is made.
    """

    def __init__(self, timeout_s: float, tell: Callable[[Finding], None]) -> None:
        self._timeout_s = timeout_s
        self._tell = tell
        self._child: _Child | None = None
        self.findings: list[Finding] = []

    def ask(self, setup: Setup, requirements: Sequence[Requirement]) -> None:
        """Asks one after the other. Raises UsageError where the user named what does not exist, RunError where no child starts."""
        for requirement in requirements:
            missing = next((name for name in requirement.needs if not self._holds(name)), None)
            if missing is not None:
                self._found(requirement, Result.SKIP, f"needs {missing!r}, which does not hold")
            else:
                self._found(requirement, *self._asked(setup, requirement))
        self._stop()

    def _asked(self, setup: Setup, requirement: Requirement) -> tuple[Result, str]:
        if self._child is not None and self._child.phase is not requirement.phase:
            self._stop()
        if self._child is None:
            self._child = _Child(setup, requirement.phase)
            try:
                self._child.next_event(_START_TIMEOUT_S, Ready)
            except _Gone as gone:
                self._stop()
                raise RunError(f"conformance: the process for {requirement.phase} could not start: {gone}") from gone
        try:
            self._child.send(requirement.name)
            event = self._child.next_event(self._timeout_s, Ended)
        except _Gone as gone:
            self._stop()
            return Result.FAIL, str(gone)
        if not event.healthy:
            self._stop()
        return event.result, event.reason

    def _holds(self, name: str) -> bool:
        return any(finding.name == name and finding.result is Result.PASS for finding in self.findings)

    def _found(self, requirement: Requirement, result: Result, reason: str) -> None:
        finding = Finding(name=requirement.name, text=requirement.text, result=result, reason=reason)
        self.findings.append(finding)
        self._tell(finding)

    def _stop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()


class _Child:
    def __init__(self, setup: Setup, phase: Phase) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
        self.phase = phase
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=child_main, args=(theirs, setup, phase), name=f"mkframe-conformance-{phase}")
        self._process.start()
        self._leader = GroupLeader(self._process)
        theirs.close()
        self._doing = ""

    def send(self, name: str) -> None:
        self._doing = ""
        try:
            self._connection.send(name)
        except (BrokenPipeError, ConnectionResetError):
            raise _Gone(self._death()) from None

    def next_event(self, timeout_s: float, wanted: type[Answer]) -> Answer:
        """The next event of type `wanted`. Raises _Gone, or UsageError where the child refuses."""
        while True:
            try:
                if not self._connection.poll(timeout_s):
                    raise _Gone(self._at(f"no sign of life for {timeout_s:g} s"))
                event = self._connection.recv()
            except (EOFError, ConnectionResetError):
                raise _Gone(self._death()) from None
            if isinstance(event, Refused):
                raise UsageError(event.reason)
            if isinstance(event, Beat):
                self._doing = event.doing
            elif isinstance(event, wanted):
                return event

    def kill(self) -> None:
        self._leader.kill()
        self._connection.close()

    def _at(self, what: str) -> str:
        return f"{self._doing}: {what}" if self._doing else what

    def _death(self) -> str:
        if not self._leader.ended_within(_GRACE_S):
            return self._at("the process closed its connection")
        self._leader.reap()
        code = self._process.exitcode
        assert code is not None, "it has been waited for"
        return self._at(f"the process was killed by {signal.Signals(-code).name}" if code < 0 else f"the process exited with code {code}")
