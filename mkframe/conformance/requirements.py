"""The requirements, in the order in which they are asked. docs/conformance.md explains them."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where a requirement is asked: every phase has a process of its own.

    PLUGIN before any configuration exists, QUESTIONS without torch, CELLS with bound cells, TRACES in a process in which the
    engine has done nothing before.
    """

    PLUGIN = "plugin"
    QUESTIONS = "questions"
    CELLS = "cells"
    TRACES = "traces"


class Result(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """`needs`: requirements without which this one cannot be asked."""

    name: str
    text: str
    phase: Phase
    needs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What was found of one requirement; `reason` is one line, and for a pass says what it rests on."""

    name: str
    text: str
    result: Result
    reason: str


_PLUGIN = (
    ("loads", "imports, and declares what the contract asks for: id, devices, precisions, options, signatures"),
    ("light import", "does not import torch before it is bound"),
    ("option defaults", "every option has a default of its own type that the engine accepts"),
    ("option types", "an option refuses a value of another type"),
)
_QUESTIONS = (
    ("implementation", "implementation() names what runs, as a text"),
    ("sources", "sources() names files that can be read"),
    ("unsupported total", "unsupported() answers a reason or None for every case, and never raises"),
    ("unsupported steady", "unsupported() gives the same answer again"),
    ("unsupported cheap", "unsupported() takes less than a millisecond"),
    ("scratch declared", "scratch() declares tensors with a known dtype, role and size under names of their own, the same every time"),
    ("kernels declared", "kernels() names kernels that fit the architecture that is asked about, the same every time"),
)
_CELLS = (
    ("binds", "bind() returns Launches for every case that unsupported() lets through, and they can be called"),
    ("correct shapes", "right on the workload's shape sets, in every precision"),
    ("correct generated", "right on small odd shapes that were generated, in every precision"),
    ("poison nan", "writes every output, whatever it held before (NaN)"),
    ("poison second", "writes every output, whatever it held before (a finite pattern)"),
    ("input negated", "follows an input that was negated in place"),
    ("input fresh", "follows an input that was replaced in place"),
    ("inputs intact", "leaves inputs and weights as they were, bit for bit"),
    ("shifted buffers", "a second binding to buffers at other addresses is right too"),
    ("after timing", "is still right after many calls"),
    ("joined", "has done all of its work when a call ends: no thread and no side stream brings it later"),
    ("in bounds", "writes nothing next to its tensors"),
    ("no state", "keeps nothing between cells: cells bound in either order are right, and the instance stays as it was"),
    ("interleaved", "two bindings with different data, called in turns, do not disturb each other"),
    ("plain tensors", "runs without inference_mode or no_grad around it, and leaves the tensors where they were"),
    ("graph capture", "can be captured in a CUDA graph that follows its input"),
    ("memory constant", "a hundred calls more need no memory more"),
    ("determinism", "reported only: whether two calls give the same bits"),
)
_TRACES = (
    ("no threads", "leaves no thread of its own behind, and starts none once it is warm"),
    ("no children", "leaves no process behind"),
    ("torch state", "leaves torch's global state as it was"),
    ("process state", "leaves signal handlers, current folder and environment as they were"),
    ("silent", "prints nothing"),
)
_AFTER_TOTAL = ("unsupported steady", "unsupported cheap", "scratch declared", "kernels declared")
_BOUND = ("loads", "option defaults", "unsupported total", "scratch declared", "binds")


def _all() -> Iterator[Requirement]:
    for phase, rows in ((Phase.PLUGIN, _PLUGIN), (Phase.QUESTIONS, _QUESTIONS), (Phase.CELLS, _CELLS), (Phase.TRACES, _TRACES)):
        for name, text in rows:
            yield Requirement(name=name, text=text, phase=phase, needs=_needs(name, phase))


def _needs(name: str, phase: Phase) -> tuple[str, ...]:
    if name == "loads":
        return ()
    if phase is Phase.PLUGIN:
        return ("loads",)
    if phase is Phase.QUESTIONS:
        return ("loads", "option defaults", "unsupported total") if name in _AFTER_TOTAL else ("loads", "option defaults")
    if name == "joined":  # an output that never comes is another fault than one that comes late
        return (*_BOUND, "poison nan")
    return _BOUND[:-1] if name == "binds" else _BOUND


REQUIREMENTS: tuple[Requirement, ...] = tuple(_all())
