"""What samples say beside their summaries: host and stream belong together sample by sample, workers are those that measured floors, and
a cell has samples only where it came so far."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from mkframe.validate.block_parts import BlockCell
from mkframe.validate.finding import Finding, error, shown, warning
from mkframe.validate.summary_rules import HOST_OUTSIDE
from mkframe.validate.two_clocks import DRIFT

if TYPE_CHECKING:
    from mkframe.validate.rebuild import Sampled
    from mkframe.validate.samples_file import CellSamples

PAIRS, CELLS = "samples-pairs", "samples-cells"


def pairs(document: dict[str, Any], sampled: "Iterable[Sampled]") -> Iterator[Finding]:
    """The host's clock starts before and stops after the stream's, in every single sample: sorted apart they would not fit."""
    if document["timing"] not in HOST_OUTSIDE:
        return
    for one in sampled:
        short = one.stream.stream_ms > one.host_ms * (1 + DRIFT)
        if short.any():
            row, column = (int(index[0]) for index in np.nonzero(short))
            place = f"in round {one.stream.rounds[row]}, sample {column}"
            why = f"in {int(short.sum())} samples the host's time is below the stream's, first {place}"
            yield error(PAIRS, f"{one.cell.text}: {why}", one.cell.path)


def cells(document: dict[str, Any], sampled: "Iterable[Sampled]", known: frozenset[int], names: frozenset[str]) -> Iterator[Finding]:
    """`known`: the workers that measured floors; `names`: what the samples file holds."""
    timing = document["mkframe"]["timing"]
    rounds, owner = timing["rounds"], dict[int, int]()
    for one in sampled:
        cell = one.cell
        if cell.since_1_2 and (why := out_of_turn(one.stream, timing["round_process"], owner)) is not None:
            yield error(CELLS, f"{cell.text}: {why}", cell.path)
        if cell.since_1_2 and f"{'/'.join(map(str, cell.key))}/workers.npy" not in names:
            yield error(CELLS, f"{cell.text}: no array tells which worker took a round", cell.path)
        strange = sorted(set(one.stream.process) - known)
        if strange and cell.since_1_2:
            yield error(CELLS, f"{cell.text}: rounds of worker {strange[0]}, which measured no floors", cell.path)
        if not cell.passed:
            yield from _not_passed(cell, len(one.stream.rounds) == rounds)


def out_of_turn(stream: "CellSamples", round_process: list[int], owner: dict[int, int]) -> str | None:
    """Processes measure one after the other, and a worker that ended is followed by one with a higher number; each belongs to one process.
    `owner`: worker -> process, of the cells before this one too; it grows."""
    taken = list(zip(stream.process, stream.rounds, strict=True))
    for (worker, index), (following, later) in pairwise(taken):
        if following < worker:
            return f"worker {worker} took round {index}, and worker {following} round {later}: workers are counted up"
    for worker, index in taken:
        if owner.setdefault(worker, round_process[index]) != round_process[index]:
            return f"worker {worker} took rounds of process {round_process[index]}, and of process {owner[worker]} elsewhere"
    return None


def _not_passed(cell: BlockCell, complete: bool) -> Iterator[Finding]:
    """A cell is timed after it was checked. Complete samples of one that did not pass may be right: its last checks failed."""
    record = cell.record
    if not cell.supported:
        yield error(CELLS, f"{cell.text} is called unsupported, and there are samples of it", cell.path)
    elif record["check"] is None or not record["checks"]:
        yield error(CELLS, f"{cell.text} was {shown(record['outcome'])} before any check, and there are samples of it", cell.path)
    elif complete:
        why = f"{cell.text} is called {record['outcome']}, and all of its rounds were measured: {shown(record['reason'])}"
        yield warning(CELLS, why, cell.path)
