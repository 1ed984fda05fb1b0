"""Barriers of a block, a cluster and the grid: bare, and as a step of store, barrier and load through L2."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkframe.model.device_card import BarrierFloor, Scope
from mkframe.probe import fit
from mkframe.probe.gpu import U32, Gpu, Launch, ProbeFault, Slice
from mkframe.probe.rounds import Slope

_CHAIN, _FEW, _MANY = 20, 1, 11
_BARE_CHAIN, _BARE_FEW, _BARE_MANY = 4, 64, 320
_REPLAYS = 7
_BLOCKS = (128, 512)
_CLUSTERS = (2, 4, 8)


@dataclass(frozen=True, kw_only=True, slots=True)
class BarrierCase:
    """One barrier on one launch shape. `group` counts the blocks that it joins."""

    scope: Scope
    grid: int
    block: int
    cluster: int
    group: int

    @property
    def name(self) -> str:
        return f"{self.scope} barrier, grid {self.grid} block {self.block} cluster {self.cluster}"

    def exchange(self, steps: int) -> Launch:
        arguments = (Slice("exchange_p"), Slice("exchange_q"), U32(steps), U32(self.group), Slice("ticket"))
        return self._launch(f"exchange_{self.scope}", arguments)

    def bare(self, count: int) -> Launch:
        return self._launch(f"barrier_{self.scope}", (U32(count), Slice("ticket"), Slice("done")))

    def _launch(self, kernel: str, arguments: tuple[Slice | U32, ...]) -> Launch:
        return Launch(
            kernel=kernel,
            grid=self.grid,
            block=self.block,
            cluster=self.cluster,
            cooperative=self.scope is Scope.GRID,
            arguments=arguments,
        )

    def slopes(self) -> tuple[Slope, Slope]:
        """The step, then the bare barrier."""
        step = Slope(
            name=f"{self.name}, step",
            short=(self.exchange(_FEW),) * _CHAIN,
            long=(self.exchange(_MANY),) * _CHAIN,
            units=_CHAIN * (_MANY - _FEW),
            replays=_REPLAYS,
        )
        bare = Slope(
            name=f"{self.name}, bare",
            short=(self.bare(_BARE_FEW),) * _BARE_CHAIN,
            long=(self.bare(_BARE_MANY),) * _BARE_CHAIN,
            units=_BARE_CHAIN * (_BARE_MANY - _BARE_FEW),
            replays=_REPLAYS,
        )
        return step, bare


def buffer_bytes(gpu: Gpu) -> dict[str, int]:
    threads = gpu.facts.multiprocessors * max(_BLOCKS)
    return {"exchange_p": 4 * threads, "exchange_q": 8 * threads, "ticket": 4, "done": 4 * gpu.facts.multiprocessors}


def barrier_cases(gpu: Gpu) -> tuple[BarrierCase, ...]:
    """One block a multiprocessor. What does not fit on the device at once is left out: a grid barrier would never end."""
    return tuple(case for case in _cases(gpu) if gpu.resident(case.exchange(_FEW)) >= (case.grid if case.scope is Scope.GRID else 1))


def _cases(gpu: Gpu) -> Iterator[BarrierCase]:
    units = gpu.facts.multiprocessors
    for block in _BLOCKS:
        yield BarrierCase(scope=Scope.BLOCK, grid=units, block=block, cluster=1, group=1)
        for cluster in _CLUSTERS if gpu.facts.clusters else ():
            if units >= cluster:
                yield BarrierCase(scope=Scope.CLUSTER, grid=units // cluster * cluster, block=block, cluster=cluster, group=cluster)
        yield BarrierCase(scope=Scope.GRID, grid=units, block=block, cluster=1, group=units)


def check_barriers(gpu: Gpu, cases: Sequence[BarrierCase]) -> None:
    """Every exchange must hand each value on: a barrier that lets a stale one through leaves a smaller sum. Raises ProbeFault."""
    for case in cases:
        threads = case.grid * case.block
        for steps in (_FEW, _MANY):
            chain = gpu.chain((case.exchange(steps),) * _CHAIN)
            gpu.fill("exchange_p", 0)
            gpu.fill("ticket", 0)
            gpu.run(chain)
            wrong = int(np.count_nonzero(gpu.words(Slice("exchange_p"), threads) != _CHAIN * (steps + 1)))
            if wrong:
                raise ProbeFault(f"{case.name}: {wrong} of {threads} values were not handed on over {steps} steps")
        chain = gpu.chain((case.bare(_BARE_MANY),))
        gpu.fill("done", 0)
        gpu.run(chain)
        if np.any(gpu.words(Slice("done"), case.grid) != _BARE_MANY):
            raise ProbeFault(f"{case.name}: not every block passed {_BARE_MANY} barriers")
    gpu.fill("ticket", 0)


def barrier_floors(cases: Sequence[BarrierCase], found: Mapping[str, list[float]]) -> tuple[BarrierFloor, ...]:
    return tuple(
        BarrierFloor(
            scope=case.scope,
            grid=case.grid,
            block=case.block,
            cluster=case.cluster,
            bare=fit.times(found[case.slopes()[1].name]),
            step=fit.times(found[case.slopes()[0].name]),
        )
        for case in cases
    )
