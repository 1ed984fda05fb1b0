"""Who may watch a run."""

from typing import Protocol

from mkframe.model.outcome import Outcome
from mkframe.model.plan import CasePlan


class Observer(Protocol):
    """Told of every step. Must not raise and must be quick: the worker waits for nobody, but the coordinator does."""

    def started(self, blocks: int) -> None: ...

    def starting(self, process: int) -> None:
        """A worker is being started for this process of the plan."""

    def doing(self, case: CasePlan, engine: str | None, what: str) -> None: ...

    def block_done(self) -> None: ...

    def blocks_dropped(self, count: int) -> None: ...

    def cell_failed(self, case: CasePlan, engine: str | None, outcome: Outcome, reason: str) -> None: ...

    def trying_again(self, case: CasePlan, engine: str | None, reason: str) -> None:
        """The worker was killed from outside; what it had not finished is tried once more in another one."""

    def finished(self) -> None: ...
