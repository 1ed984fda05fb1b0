"""Every figure of a report of ours that its samples give, rebuilt and held against what the report says.

Not rebuilt: floors and launch twins, whose samples are not kept; with one process intervals and the intervals of ratios, because their
resamples depend on the version of numpy; a clock's step on a CPU, and one told from more samples than STEP_SAMPLES.
"""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkframe import stats
from mkframe.errors import UnreadableError
from mkframe.stats import Samples
from mkframe.validate.block_parts import BlockCell, Key, block_cells, key_of, workers
from mkframe.validate.comparison_parts import HOST, STREAM, TIMES
from mkframe.validate.finding import Finding, error, shown, warning
from mkframe.validate.rebuilt_clock import clock
from mkframe.validate.rebuilt_pairs import cells as of_cells
from mkframe.validate.rebuilt_pairs import pairs
from mkframe.validate.rule import Subject
from mkframe.validate.samples_file import CellSamples, SamplesFile
from mkframe.validate.samples_rule import PLACE

ARCHIVE, SUMMARY, INTERVAL, VERDICT, STEP = "samples-file", "rebuilt-summary", "rebuilt-interval", "rebuilt-verdict", "rebuilt-step"
_ARRAYS = ("stream_ms", "host_ms", "rounds", "workers")
_ROUNDING = 1e-12
_FITTED = 1e-9  # intervals go through Student's t and logarithms, which differ between machines
_NO_NUMBER = (ArithmeticError, ValueError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """A cell with its samples."""

    cell: BlockCell
    stream: CellSamples
    host_ms: Samples


def rebuilt(subject: Subject, data: bytes) -> Iterator[Finding]:
    """The document holds to its schema; `data` is its samples file."""
    document, cells = subject.document, block_cells(subject)
    try:
        file = SamplesFile(data, "beside the report", len(cells))
    except UnreadableError as problem:
        yield error(ARCHIVE, str(problem), PLACE)
        return
    yield from _strangers(file, cells)
    sampled: dict[Key, Sampled] = {}
    whole = True
    for cell in cells:
        found = _sampled(file, document, cell)
        if isinstance(found, Finding):
            whole = False
            yield found
        elif found is not None:
            sampled[cell.key] = found
    with np.errstate(all="ignore"):
        yield from pairs(document, sampled.values())
        yield from clock(document, sampled.values())
        yield from of_cells(document, sampled.values(), workers(subject), file.names)
        for one in sampled.values():
            yield from _summaries(one)
        if whole:
            yield from _step(document, sampled)
        if any(cell.since_1_2 for cell in cells):
            yield from _intervals(document, sampled)
            yield from _verdicts(document, sampled)
        else:
            why = "intervals and verdicts are not rebuilt: reports before schema 1.2 may have them by an older rule"
            yield warning(INTERVAL, why, ("mkframe", "cells"))


def _strangers(file: SamplesFile, cells: list[BlockCell]) -> Iterator[Finding]:
    known = {f"{_name(cell)}/{array}.npy" for cell in cells for array in _ARRAYS}
    strange = sorted(file.names - known)
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        yield error(ARCHIVE, f"it holds {shown(strange[0])}{more}, which no cell of the report has", PLACE)


def _name(cell: BlockCell) -> str:
    return "/".join(map(str, cell.key))


def _sampled(file: SamplesFile, document: dict[str, Any], cell: BlockCell) -> Sampled | Finding | None:
    """The samples of a cell, why they cannot be had, or None for a cell that did not pass and has none."""
    if not cell.passed and not any(f"{_name(cell)}/{array}.npy" in file.names for array in _ARRAYS):
        return None
    timing = document["mkframe"]["timing"]
    try:
        stream = file.cell(_name(cell), tuple(timing["round_process"]))
        host_ms = file.host_ms(_name(cell))
    except UnreadableError as problem:
        return error(ARCHIVE, str(problem), cell.path)
    rounds, per_round = timing["rounds"], timing["samples_per_round"]
    why = None
    if host_ms.shape != stream.stream_ms.shape:
        why = f"stream and host times have the shapes {stream.stream_ms.shape} and {host_ms.shape}"
    elif stream.stream_ms.shape[1] != per_round:
        why = f"a round has {stream.stream_ms.shape[1]} samples, and samples_per_round is {per_round}"
    elif stream.rounds[-1] >= rounds or (cell.passed and len(stream.rounds) != rounds):
        why = f"the rounds are {_spelled(stream.rounds)}, and a cell that passed has 0 to {rounds - 1}"
    elif not _one_process_each(stream, timing["round_process"]):
        why = "one worker took rounds of several processes"
    return (
        Sampled(cell=cell, stream=stream, host_ms=host_ms) if why is None else error(ARCHIVE, f"samples of {cell.text}: {why}", cell.path)
    )


def _spelled(rounds: tuple[int, ...]) -> str:
    return ", ".join(map(str, rounds[:8])) + (", ..." if len(rounds) > 8 else "")


def _one_process_each(stream: CellSamples, round_process: list[int]) -> bool:
    process: dict[int, int] = {}
    pairs = zip(stream.process, stream.rounds, strict=True)
    return all(
        index < len(round_process) and process.setdefault(worker, round_process[index]) == round_process[index] for worker, index in pairs
    )


def _summaries(one: Sampled) -> Iterator[Finding]:
    if not one.cell.passed or one.cell.entry is None:
        return
    for name, samples in ((STREAM, one.stream.stream_ms), (HOST, one.host_ms)):
        expected, stated = stats.summarize(samples), one.cell.entry.result.get(name, {})
        for figure in ("count", *TIMES):
            given, value = stated.get(figure), getattr(expected, figure)
            if given is not None and not math.isclose(given, value, rel_tol=_ROUNDING):
                why = f"{figure} is {shown(given)}, and the samples give {shown(value)}"
                yield error(SUMMARY, why, (*one.cell.entry.path, name, figure))


def _step(document: dict[str, Any], sampled: dict[Key, Sampled]) -> Iterator[Finding]:
    block = document["mkframe"]
    streams = [one.stream.stream_ms.ravel() for one in sampled.values()]
    if block["device"]["kind"] != "cuda" or not streams or sum(stream.size for stream in streams) > stats.STEP_SAMPLES:
        return
    expected, stated = stats.event_step_ms(np.concatenate(streams)), block["timing"]["timer_step_ms"]
    if (expected is None) is not (stated is None) or (stated is not None and not math.isclose(stated, expected or 0.0, rel_tol=_ROUNDING)):
        why = f"timer_step_ms is {shown(stated)}, and the samples show {shown(expected)}"
        yield error(STEP, why, ("mkframe", "timing", "timer_step_ms"))


def _intervals(document: dict[str, Any], sampled: dict[Key, Sampled]) -> Iterator[Finding]:
    step_ms = document["mkframe"]["timing"]["timer_step_ms"]
    for one in sampled.values():
        stated = one.cell.record["interval"]
        if stated is None or not one.cell.passed or len(set(one.stream.process)) < 2:
            continue
        place = (*one.cell.path, "interval")
        try:
            ends = stats.median_interval(one.stream.stream_ms, one.stream.process, step_ms, seed=0)
        except _NO_NUMBER:
            yield error(INTERVAL, "the samples give no interval that float64 holds", place)
            continue
        for name, value in zip(("low_ms", "high_ms"), ends, strict=True):
            if not math.isclose(stated[name], value, rel_tol=_FITTED):
                yield error(INTERVAL, f"{name} is {shown(stated[name])}, and the samples give {shown(value)}", (*place, name))


def _verdicts(document: dict[str, Any], sampled: dict[Key, Sampled]) -> Iterator[Finding]:
    step_ms = document["mkframe"]["timing"]["timer_step_ms"]
    for index, record in enumerate(document["mkframe"]["verdicts"]):
        keys = key_of(record), key_of(record, "baseline")
        one, other = (None if key is None else sampled.get(key) for key in keys)
        if one is None or other is None:
            continue
        place = ("mkframe", "verdicts", index)
        try:
            found = stats.compare(
                one.stream.stream_ms,
                other.stream.stream_ms,
                one.stream.process,
                step_ms,
                zlib.crc32(repr(one.cell.key).encode()),
                other_process=other.stream.process,
            )
        except _NO_NUMBER:
            yield error(VERDICT, "the samples give no ratio that float64 holds", place)
            continue
        if not math.isclose(record["ratio"], found.ratio, rel_tol=_FITTED):
            yield error(VERDICT, f"ratio is {shown(record['ratio'])}, and the samples give {shown(found.ratio)}", (*place, "ratio"))
        if min(len(set(each.stream.process)) for each in (one, other)) < 2:
            yield from _of_one_process(record, found.ratio, place)
            continue
        for name, value in (("ratio_low", found.low), ("ratio_high", found.high)):
            if not math.isclose(record[name], value, rel_tol=_FITTED):
                yield error(VERDICT, f"{name} is {shown(record[name])}, and the samples give {shown(value)}", (*place, name))
        if record["verdict"] != found.verdict:
            yield error(VERDICT, f"verdict is {record['verdict']}, and the samples give {found.verdict}", (*place, "verdict"))


def _of_one_process(record: dict[str, Any], ratio: float, place: tuple[str | int, ...]) -> Iterator[Finding]:
    """What holds whatever the resamples are."""
    word = record["verdict"]
    if word == "SAME":
        yield error(VERDICT, "verdict is SAME, and one process shows no sameness", (*place, "verdict"))
    elif word != "UNDECIDED" and abs(ratio - 1) < stats.ONE_PROCESS_LIMIT:
        yield error(VERDICT, f"verdict is {word}, and one process decides nothing below 5 %", (*place, "verdict"))
