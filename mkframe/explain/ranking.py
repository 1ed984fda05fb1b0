"""Engines of one case in the order of their medians, and which neighbours the clock cannot tell apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mkframe.explain.page import figure, listed
from mkframe.model.outcome import within_a_step
from mkframe.validate.energy_parts import Node, maybe, objects


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One shape of one set. `medians_ms`: median stream time of each engine that has one, fastest first; `failed`: engines that did not
    pass."""

    set: str
    shape: str
    medians_ms: tuple[tuple[str, float], ...]
    failed: tuple[str, ...]


def cases(document: Node) -> Iterator[Case]:
    """Every case of every shape set, in the order of the file."""
    for name, value in document.items():
        if not isinstance(value, list):
            continue
        for _, node in objects(document, name):
            engines = maybe(node, "engines")
            if isinstance(engines, dict):
                yield _case(name, node, engines)


def _case(name: str, node: Node, engines: dict[str, Any]) -> Case:
    medians = [(engine, p50) for engine, cell in engines.items() if (p50 := figure(cell, "stream_summary", "p50_ms")) is not None]
    failed = tuple(engine for engine, cell in engines.items() if maybe(cell, "passed") is not True)
    return Case(set=name, shape=shape_text(maybe(node, "shape")), medians_ms=tuple(sorted(medians, key=lambda one: one[1])), failed=failed)


def shape_text(shape: Any) -> str:
    """`rows=1 channels=7 hidden=13`."""
    return " ".join(f"{name}={value}" for name, value in shape.items() if isinstance(value, int))[:200] if isinstance(shape, dict) else "?"


def step_ms(document: Node, found: Sequence[Case]) -> tuple[float | None, bool]:
    """The step of the stream clock, and whether the report states it; else the one that its medians lie on."""
    stated = figure(document, "mkframe", "timing", "timer_step_ms")
    if stated is not None and stated > 0:
        return stated, True
    import numpy as np  # here: the other pages do without

    from mkframe.stats import event_step_ms

    medians = [p50 for case in found for _, p50 in case.medians_ms]
    return event_step_ms(np.array(medians, dtype=np.float64)), False


def in_order(case: Case, step: float | None, most: int = 12) -> str:
    """`a 8.19 ~ b 8.19 < c 9.22`, in us: ~ where neighbours are no more than a step apart, = where they are equal and the step is
    unknown."""
    said = []
    for index, (engine, p50) in enumerate(case.medians_ms[:most]):
        if index:
            said.append(_between(case.medians_ms[index - 1][1], p50, step))
        said.append(f"{engine} {p50 * 1e3:.2f}")
    rest = len(case.medians_ms) - most
    return " ".join(said) + (f" and {rest} slower ones" if rest > 0 else "")


def _between(before: float, p50: float, step: float | None) -> str:
    if within_a_step(before, p50, step):
        return "~"
    return "=" if before == p50 else "<"


def undecided_pairs(case: Case, step: float | None) -> int:
    """Pairs of engines, neighbours or not, that are no more than a step apart."""
    if step is None:
        return 0
    count, left = 0, 0
    for right, (_, p50) in enumerate(case.medians_ms):
        while not within_a_step(case.medians_ms[left][1], p50, step):
            left += 1
        count += right - left
    return count


def failures(found: Sequence[Case]) -> list[str]:
    """A line for each engine that did not pass everywhere."""
    where: dict[str, list[str]] = {}
    for case in found:
        for engine in case.failed:
            where.setdefault(engine, []).append(f"{case.set} {case.shape}")
    return [f"{engine} did not pass, and has no times: {listed(places, 3)}" for engine, places in where.items()]
