"""Every cell of a plan under every tool."""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from typing import Any

from mkframe.model.plan import CasePlan, CellPlan, RunPlan
from mkframe.redact import storable
from mkframe.run.signals import Interrupted, Signals
from mkframe.run.sources import merge
from mkframe.sanitize.job import Answer, Job
from mkframe.sanitize.log import Findings, UnreadableLog, read_log
from mkframe.sanitize.process import Ended, Stopped, run_under
from mkframe.sanitize.result import Check, Outcome, Result, to_check
from mkframe.sanitize.tool import ERROR_EXIT_CODE, Sanitizer
from mkframe.stamp import source

_CALLS = 2
_SECONDS_PLACES = 2
Tell = Callable[[int, int, Check], None]


class Runner:
    """Checks `jobs` cells at a time: nothing is timed here. `limit_s`: the longest time of one program. `tell` gets the number of checks
    that are done, of how many, and the newest."""

    def __init__(self, plan: RunPlan, sanitizer: Sanitizer, tools: Sequence[str], *, limit_s: float, jobs: int, tell: Tell) -> None:
        self._plan = plan
        self._sanitizer = sanitizer
        self._tools = tuple(tools)
        self._limit_s = limit_s
        self._jobs = jobs
        self._tell = tell
        self._stop = threading.Event()

    def run(self) -> Result:
        """A signal ends it early: what was not checked by then is UNCHECKED."""
        before = source()
        wanted = [(case, cell, tool) for case, cell in to_check(self._plan) for tool in self._tools]
        found: dict[int, tuple[Check, Answer | None]] = {}
        with Signals() as signals:
            pool = ThreadPoolExecutor(self._jobs)
            try:
                with signals.interruptible():
                    futures = {pool.submit(self._check, *item): index for index, item in enumerate(wanted)}
                    self._collect(futures, found, len(wanted))
            except Interrupted:
                pass
            finally:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
            interrupted = signals.heard
        checks = [
            found[index][0] if index in found else self._made(*item, _unchecked("the run was interrupted"), None, exact=True)
            for index, item in enumerate(wanted)
        ]
        sources, differing = _sources([answer for _, answer in found.values() if answer is not None])
        return Result(
            plan=self._plan,
            source=before,
            version=self._sanitizer.version,
            tools=self._tools,
            checks=tuple(checks),
            sources=sources,
            differing=differing,
            interrupted=interrupted,
        )

    def _collect(self, futures: dict[Future[Any], int], found: dict[int, tuple[Check, Answer | None]], count: int) -> None:
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            self._tell(len(found), count, future.result()[0])

    def _check(self, case: CasePlan, cell: CellPlan, tool: str) -> tuple[Check, Answer | None]:
        """A graph whose call allocates can be captured with torch's caching allocator only: that is tried second, and told."""
        for exact in (True, False):
            ended = None
            try:
                job, uuid = self._job(case, cell), self._plan.device.uuid
                ended = run_under(self._sanitizer, tool, job, self._limit_s, self._stop, uuid, exact)
                judgement = judged(ended, tool, self._limit_s)
            except Stopped:
                judgement = _unchecked("the run was interrupted")
            except OSError as error:
                judgement = _unchecked(f"cannot be started: {error.strerror or error}")
            answer = None if ended is None else ended.answer
            uncaptured = answer is not None and answer.capture_failed
            if not uncaptured or judgement[0] is Outcome.ERRORS:  # an error that was found is not to be hidden by the other allocator
                break
        return self._made(case, cell, tool, judgement, ended, exact), answer

    def _job(self, case: CasePlan, cell: CellPlan) -> Job:
        plan = self._plan
        return Job(
            workload=plan.workload,
            precision=plan.precision.id,
            device_kind=plan.device.kind,
            engine=cell.engine.engine,
            graph=cell.engine.graph,
            options=dict(cell.engine.options),
            case=asdict(case.case),
            seed=case.seed,
            answer="",
            path=tuple(sys.path),
            plugin_paths=plan.plugin_paths,
            unsafe_plugins=dict(plan.unsafe_plugins),
        )

    def _made(self, case: CasePlan, cell: CellPlan, tool: str, judgement: "_Judgement", ended: Ended | None, exact: bool) -> Check:
        outcome, findings, reason = judgement
        return Check(
            set=case.set,
            case=case.index,
            shape=dict(case.shape),
            seed=case.seed,
            engine=cell.engine.id,
            implementation=cell.engine.implementation,
            options=dict(cell.engine.options),
            tool=tool,
            outcome=outcome,
            errors=None if findings is None else findings.errors,
            warnings=None if findings is None else findings.warnings,
            messages=() if findings is None else findings.messages,
            reason=reason,
            calls=0 if ended is None or ended.answer is None else ended.answer.calls,
            allocator="exact" if exact else "caching",
            seconds=0.0 if ended is None else round(ended.seconds, _SECONDS_PLACES),
        )


_Judgement = tuple[Outcome, Findings | None, str | None]


def _unchecked(reason: str) -> _Judgement:
    return Outcome.UNCHECKED, None, storable(reason)


def judged(ended: Ended, tool: str, limit_s: float) -> _Judgement:
    """Outcome, counts and reason. Zero errors count only where log, exit code and the program itself all say that everything was done:
    a tool that loses its program sums up zero errors too."""
    why = _fate(ended, limit_s)
    try:
        findings = read_log(ended.log, tool)
    except UnreadableLog as error:
        return _unchecked(f"{error}; {why}" if why else str(error))
    if findings.errors:
        return Outcome.ERRORS, findings, None if why is None else storable(why)
    if why is not None:
        return _unchecked(why)
    if findings.complaint is not None:
        return _unchecked(f"the tool says: {findings.complaint}")
    if ended.code == ERROR_EXIT_CODE and not findings.warnings:
        return _unchecked(f"the tool sums up no error and ends with code {ended.code}, which stands for some")
    return Outcome.CLEAN, findings, None


def _fate(ended: Ended, limit_s: float) -> str | None:
    """What kept the program from its work, or None."""
    if ended.code is None:
        return f"it came to no end within {limit_s:g} s; --timeout SECONDS gives it more"
    answer = ended.answer
    if answer is not None and answer.reason is not None:
        return answer.reason
    said = f": {ended.complaint}" if ended.complaint else ""
    if answer is None:
        how = f"was killed with {_signal(-ended.code)}" if ended.code < 0 else f"ended with code {ended.code}"
        return f"the program gave no answer, and the tool {how}{said}"
    if answer.calls != _CALLS:
        return f"the program made {answer.calls} of {_CALLS} calls"
    if ended.code not in (0, ERROR_EXIT_CODE):
        return f"the program did its work, and then the tool ended with code {ended.code}{said}"
    return None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _sources(answers: Sequence[Answer]) -> tuple[dict[str, str], tuple[str, ...]]:
    """All files that were imported, and those that two programs found with other contents."""
    known: dict[str, str] = {}
    differing: dict[str, None] = {}
    for answer in answers:
        differing.update(dict.fromkeys(file for file, digest in answer.sources.items() if known.get(file, digest) != digest))
        known = merge(known, answer.sources)
    return known, tuple(differing)
