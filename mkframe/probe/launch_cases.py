"""Launch floors: one kernel node in a chain, by slope, for many launch shapes and a few bodies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkframe.model.device_card import Body, LaunchFloor
from mkframe.probe import fit
from mkframe.probe.gpu import U32, Gpu, Launch, ProbeFault, Slice
from mkframe.probe.rounds import Slope

SHORT, LONG, REPLAYS = 20, 120, 11
_BLOCKS = (128, 512)
_CLUSTERS = (1, 2, 4, 8)
_TOUCH_BLOCK = 128
_LARGE_SHARED = 200 * 1024
_MODES = {Body.PARAMETERS: 0, Body.STORE: 1, Body.LOAD: 2, Body.ROUND_TRIP: 3}
_STORED = 0x5EED1234  # launch.cu: touch
_UNTOUCHED = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchCase:
    """One launch floor to measure. `reason` says why it cannot be."""

    body: Body
    launch: Launch
    resident_blocks: int
    reason: str | None

    @property
    def name(self) -> str:
        one = self.launch
        kind = ("cooperative " if one.cooperative else "") + ("programmatic" if one.programmatic else "full")
        return f"launch {self.body} grid {one.grid} block {one.block} shared {one.shared_bytes} cluster {one.cluster} {kind}"

    def slope(self) -> Slope:
        return Slope(name=self.name, short=(self.launch,) * SHORT, long=(self.launch,) * LONG, units=LONG - SHORT, replays=REPLAYS)


def buffer_bytes(gpu: Gpu) -> dict[str, int]:
    """What the touching kernels need: one word a thread."""
    return {"touch_p": 4 * gpu.facts.multiprocessors * _TOUCH_BLOCK, "touch_q": 4 * gpu.facts.multiprocessors * _TOUCH_BLOCK}


def launch_cases(gpu: Gpu) -> tuple[LaunchCase, ...]:
    """Empty kernels over grids, blocks, shared memory, clusters and kinds of launch; and what a kernel that touches memory adds."""
    return tuple(_case(gpu, body, launch) for body, launch in (*_empty(gpu), *_touching(gpu)))


def _empty(gpu: Gpu) -> Iterator[tuple[Body, Launch]]:
    units = gpu.facts.multiprocessors
    large = min(_LARGE_SHARED, gpu.facts.shared_bytes_per_block)
    for grid in dict.fromkeys((1, max(1, units // 4), units, 4 * units)):
        for block in _BLOCKS:
            for shared in (0, large):
                for cluster in _CLUSTERS if gpu.facts.clusters else (1,):
                    if grid % cluster == 0:
                        yield from _kinds(gpu, grid, block, shared, cluster)


def _kinds(gpu: Gpu, grid: int, block: int, shared: int, cluster: int) -> Iterator[tuple[Body, Launch]]:
    for programmatic in (False, True) if gpu.facts.clusters else (False,):
        for cooperative in (False, True):
            kernel = "empty_programmatic" if programmatic else "empty"
            yield (
                Body.EMPTY,
                Launch(
                    kernel=kernel,
                    grid=grid,
                    block=block,
                    shared_bytes=shared,
                    cluster=cluster,
                    cooperative=cooperative,
                    programmatic=programmatic,
                ),
            )


def _touching(gpu: Gpu) -> Iterator[tuple[Body, Launch]]:
    for grid in (1, gpu.facts.multiprocessors):
        for body, mode in _MODES.items():
            for programmatic in (False, True) if gpu.facts.clusters else (False,):
                kernel = "touch_programmatic" if programmatic else "touch"
                arguments = (Slice("touch_p"), Slice("touch_q"), U32(mode))
                yield body, Launch(kernel=kernel, grid=grid, block=_TOUCH_BLOCK, arguments=arguments, programmatic=programmatic)


def _case(gpu: Gpu, body: Body, launch: Launch) -> LaunchCase:
    resident = gpu.resident(launch)
    reason = None
    if resident == 0:
        reason = "no block or cluster of this launch fits on the device"
    elif launch.cooperative and resident < launch.grid:
        reason = f"a cooperative launch needs all blocks on the device at once, and {resident} of {launch.grid} fit"
    return LaunchCase(body=body, launch=launch, resident_blocks=resident, reason=reason)


def check_launches(gpu: Gpu, cases: Sequence[LaunchCase]) -> None:
    """Runs every touching kernel in the chain that is timed, and looks at what it left. Raises ProbeFault."""
    for case in cases:
        if case.body is Body.EMPTY or case.reason is not None:
            continue
        threads = case.launch.grid * case.launch.block
        chain = gpu.chain((case.launch,) * SHORT)
        gpu.fill("touch_p", 0)
        gpu.fill("touch_q", _UNTOUCHED)
        gpu.run(chain)
        index = np.arange(threads, dtype=np.uint32)
        p = np.full(threads, SHORT if case.body is Body.ROUND_TRIP else 0, np.uint32)
        q = index ^ np.uint32(_STORED) if case.body is Body.STORE else np.full(threads, _UNTOUCHED, np.uint32)
        for buffer, expected in (("touch_p", p), ("touch_q", q)):
            wrong = int(np.count_nonzero(gpu.words(Slice(buffer), threads) != expected))
            if wrong:
                raise ProbeFault(f"{case.name}: {wrong} of {threads} words of {buffer} are wrong")


def launch_floors(cases: Sequence[LaunchCase], found: Mapping[str, list[float]]) -> tuple[LaunchFloor, ...]:
    return tuple(
        LaunchFloor(
            body=case.body,
            grid=case.launch.grid,
            block=case.launch.block,
            shared_bytes=case.launch.shared_bytes,
            cluster=case.launch.cluster,
            cooperative=case.launch.cooperative,
            programmatic=case.launch.programmatic,
            resident_blocks=case.resident_blocks,
            time=None if case.reason else fit.times(found[case.name]),
            reason=case.reason,
        )
        for case in cases
    )
