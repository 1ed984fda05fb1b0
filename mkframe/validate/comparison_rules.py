"""What a comparison report must hold beyond its schema, whoever wrote it: shapes, engines, compilers, dates, keys, the timer's step.
The laws of summaries: summary_rules.py.

Every check takes any JSON object and yields findings at their exact place: one for each fault, not one for each formula that it breaks.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import islice
from typing import Any

from mkframe.validate.comparison_parts import (
    ASSESSMENT,
    DEVELOPMENT,
    Path,
    Shape,
    above,
    amount,
    cases,
    entries,
    measured,
    median_ms,
    shape_sets,
    table,
    whole,
)
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.limited import MAX_FINDINGS
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.schema_rule import unknown_key
from mkframe.validate.schemas import schema

_E, _W = Severity.ERROR, Severity.WARNING

EVENT_STEPS_MS = tuple(32e-6 * 2.0**k for k in range(5, -1, -1))
_ON_A_STEP_MS = 1e-6
_LEAST_MEDIANS = 8
_DATE = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")


def engine_set(subject: Subject) -> Iterator[Finding]:
    """Every shape carries the engines that most shapes carry."""
    found = [(case.path, frozenset(case.engines)) for case in cases(subject) if case.engines]
    if not found:
        return
    usual = Counter(engines for _, engines in found).most_common(1)[0][0]
    ordered = sorted(usual)
    for path, engines in found:
        lacking, more = len(usual) - len(usual & engines), engines - usual
        parts = [f"lacks {_few((name for name in ordered if name not in engines), lacking)}"] if lacking else []
        parts += [f"alone has {_few(sorted(more), len(more))}"] if more else []
        if parts:
            yield warning("engine-set", f"beside the engines of most shapes this one {' and '.join(parts)}", (*path, "engines"))


def _few(names: Iterable[str], count: int) -> str:
    """The first three of `count` names."""
    return ", ".join(shown(name) for name in islice(names, 3)) + (f" and {count - 3} more" if count > 3 else "")


def duplicate_shape(subject: Subject) -> Iterator[Finding]:
    """A shape stands once in its set."""
    first: dict[tuple[str, Shape], Path] = {}
    for case in cases(subject):
        if case.shape:
            before = first.setdefault((case.set, case.shape), case.path)
            if before != case.path:
                yield error("duplicate-shape", f"the same shape as item {before[1]} of this set", (*case.path, "shape"))


def shape_in_both(subject: Subject) -> Iterator[Finding]:
    """No shape is in both development and assessment: assessment shapes are never tuned on."""
    tuned: dict[Shape, Path] = {}
    for case in cases(subject):
        if case.set == DEVELOPMENT and case.shape:
            tuned.setdefault(case.shape, case.path)
    for case in cases(subject):
        if case.set == ASSESSMENT and case.shape in tuned:
            why = f"the same shape as item {tuned[case.shape][1]} of {DEVELOPMENT}: assessment shapes are never tuned on"
            yield error("shape-in-both", why, (*case.path, "shape"))


def gpu_output(subject: Subject) -> Iterator[Finding]:
    """mean <= max error, violations <= elements, passed exactly where nothing was beyond tolerance."""
    for name, output in table(subject.document, "compiler").items():
        if name.endswith("_gpu_output") and isinstance(output, dict) and (wrong := output_faults(output, output.get("passed"))):
            yield error("gpu-output", "; ".join(wrong), ("compiler", name))


def output_faults(output: Mapping[str, Any], passed: Any) -> list[str]:
    """What contradicts itself in a comparison with a reference. `passed` is left out unless it is a boolean."""
    largest, average = amount(output.get("max_abs_error")), amount(output.get("mean_abs_error"))
    violations, elements = whole(output.get("violations")), whole(output.get("elements"))
    wrong = []
    if largest is not None and average is not None and above(average, largest):
        wrong.append(f"mean_abs_error is {shown(average)}, above max_abs_error, which is {shown(largest)}")
    if violations is not None and elements is not None and violations > elements >= 1:
        wrong.append(f"{shown(violations)} violations in {shown(elements)} elements")
    if isinstance(passed, bool) and violations is not None and violations >= 0 and passed is not (violations == 0):
        wrong.append(f"passed is {shown(passed)} with {shown(violations)} violations")
    return wrong


def timer_step(subject: Subject) -> Iterator[Finding]:
    """Medians of one shape that are closer than one step of the timer, by more than 1 ns, cannot be ranked."""
    step_ms = step_of(subject)
    if step_ms is None:
        return
    for case in cases(subject):
        found = {engine: median_ms(result) for engine, result in case.engines.items() if isinstance(result, dict)}
        pairs, closest = _close(sorted((p50, engine) for engine, p50 in found.items() if p50 is not None), step_ms - _ON_A_STEP_MS)
        if pairs:
            noun = "pair of stream medians is" if pairs == 1 else "pairs of stream medians are"
            why = f"{pairs} {noun} closer than one step of the timer ({step_ms * 1e3:.4g} us), first {_few(closest, 2)}: do not rank them"
            yield warning("timer-step", why, case.path)


def _close(medians: list[tuple[float, str]], limit_ms: float) -> tuple[int, tuple[str, ...]]:
    """How many pairs of ascending medians differ by less than `limit_ms`, and the engines of the first."""
    pairs, start = 0, 0
    first: tuple[str, ...] = ()
    for index, (p50, engine) in enumerate(medians):
        while start < index and p50 - medians[start][0] >= limit_ms:
            start += 1
        if index > start and not pairs:
            first = (medians[start][1], engine)
        pairs += index - start
    return pairs, first


def step_of(subject: Subject) -> float | None:
    """Step of the stream clock in ms: what a report of ours says, else the largest of 32 ns x 2^k, up to 1.024 us, on which
    more than half of at least eight medians lie. None where it is unknown."""
    if "mkframe" in subject.document:
        return amount(table(subject.document, "mkframe", "timing").get("timer_step_ms")) or None
    medians = [p50 for entry in entries(subject) if (p50 := median_ms(entry.result)) is not None]
    if len(medians) < _LEAST_MEDIANS:
        return None
    return next((step for step in EVENT_STEPS_MS if 2 * sum(_lies_on(p50, step) for p50 in medians) > len(medians)), None)


def _lies_on(value_ms: float, step_ms: float) -> bool:
    return abs(math.remainder(value_ms, step_ms)) <= _ON_A_STEP_MS


def calendar_date(subject: Subject) -> Iterator[Finding]:
    """recorded_on is a day that the calendar has."""
    day = subject.document.get("recorded_on")
    if isinstance(day, str) and _DATE.fullmatch(day) and not _exists(day):
        yield error("date", f"recorded_on is {shown(day)}, and the calendar has no such day", ("recorded_on",))


def _exists(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def source_commit(subject: Subject) -> Iterator[Finding]:
    """A commit names the sources."""
    if subject.document.get("source_commit", "absent") is None:
        yield warning("source-commit", "source_commit is null: no commit names the sources that produced the numbers", ("source_commit",))


def unknown_keys(subject: Subject) -> Iterator[Finding]:
    """Keys have a meaning in the format. In a report of others an unknown one may be an addition; in ours it is a mistake."""
    tell = error if "mkframe" in subject.document else warning
    for path, known in islice(_unknown(subject), MAX_FINDINGS + 1):  # words for those that nobody reads take long
        yield tell("unknown-key", unknown_key(str(path[-1]), known), path)


def _unknown(subject: Subject) -> Iterator[tuple[Path, list[str]]]:
    """Where an unknown key stands, and what is known there. `compiler`, `sanitizers` and `packages` take any, and inside
    `mkframe` the schema refuses them."""
    document, root = subject.document, schema(COMPARISON)
    of = {name: list(root["$defs"][name]["properties"]) for name in ("case", "engine", "summary", "gpu_output")}
    sets = dict(shape_sets(document))
    yield from _beside(document, (), [*root["properties"]], sets)
    for name, found in sets.items():
        for index, case in enumerate(found):
            yield from _beside(case, (name, index), of["case"])
    for entry in entries(subject):
        yield from _beside(entry.result, entry.path, of["engine"])
    for path, summary in measured(subject):
        yield from _beside(summary, path, of["summary"])
    for name, output in table(document, "compiler").items():
        if name.endswith("_gpu_output"):
            yield from _beside(output, ("compiler", name), of["gpu_output"])


def _beside(node: Any, path: Path, known: list[str], others: Iterable[str] = ()) -> Iterator[tuple[Path, list[str]]]:
    for key in node if isinstance(node, dict) else ():
        if key not in known and key not in others:
            yield (*path, key), known


COMPARISON_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=severities, says=says, check=check)
    for id, severities, check, says in (
        ("date", (_E,), calendar_date, "recorded_on is a day that the calendar has"),
        ("duplicate-shape", (_E,), duplicate_shape, "a shape stands once in its shape set"),
        ("shape-in-both", (_E,), shape_in_both, "no shape stands in both development and assessment"),
        ("gpu-output", (_E,), gpu_output, "errors, violations and passed of every compiler.*_gpu_output agree"),
        ("engine-set", (_W,), engine_set, "every shape carries the same engines"),
        ("timer-step", (_W,), timer_step, "no two stream medians of a shape are closer than one step of the timer"),
        ("source-commit", (_W,), source_commit, "a commit names the sources"),
        ("unknown-key", (_E, _W), unknown_keys, "every key has a meaning in the format (an error only in reports of ours)"),
    )
)
