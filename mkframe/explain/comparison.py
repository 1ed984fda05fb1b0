"""The page of a comparison report, ours or somebody else's."""

from collections import Counter
from typing import Any

from mkframe.explain.page import at_most, figure, length, listed, many, said, words
from mkframe.explain.ranking import Case, cases, failures, in_order, shape_text, step_ms, undecided_pairs
from mkframe.validate.energy_parts import maybe, objects

Document = dict[str, Any]

_SAMPLE = {
    "per_call": "one call between two events",
    "recorded": "one call between two events, the host not held back",
    "replay": "many graph replays back to back, divided by their number",
    "unrolled": "the slope between two chains of calls",
    "cold": "calls whose data do not lie in the cache",
}
_CACHES = {
    "per_call": "Caches are warm: each call finds what the one before it left",
    "recorded": "Caches are warm: each call finds what the one before it left",
    "replay": "Caches are warm: each replay finds what the one before it left",
    "unrolled": "Inputs and outputs rotate over several sets, weights stay where they are: warm where that fits into L2",
    "cold": "Caches are cold: data rotate over more than L2 holds, or L2 is evicted before each call",
}


def measured(document: Document) -> list[str]:
    """Device, precision, engines, shapes, sources."""
    found = list(cases(document))
    engines = list(dict.fromkeys(engine for case in found for engine in (*(name for name, _ in case.medians_ms), *case.failed)))
    sets = Counter(case.set for case in found)
    workload, device, date = words(document, "mkframe", "workload"), words(document, "device"), words(document, "recorded_on")
    return said(
        f"Median times of {many(len(engines), 'engine')}: {listed(engines)}",
        f"Shapes: {', '.join(f'{count} of {name}' for name, count in list(sets.items())[:10])}",
        None if workload is None else f"Workload: {workload}",
        f"Device: {device or 'unnamed'}" + (f", {date}" if date else ""),
        _prefixed("Precision: ", words(document, "precision")),
        _sources(document),
    )


def _prefixed(prefix: str, text: str | None) -> str | None:
    return None if text is None else prefix + text


def _sources(document: Document) -> str | None:
    count, commit = length(document, "source_sha256"), words(document, "source_commit")
    if count is None:
        return None
    return f"Sources: hashes of {many(count, 'file')}, " + (f"commit {commit}" if commit else "no commit")


def how(document: Document) -> list[str]:
    """Protocol, samples, caches, clock, floors, checks."""
    return said(_protocol(document), _caches(document), _clock(document), *_floors(document), _twins(document), _changed_input(document))


def _timing(document: Document) -> str | None:
    return words(document, "timing") or words(document, "mkframe", "timing", "protocol")


def _protocol(document: Document) -> str:
    name = _timing(document)
    rounds, samples = figure(document, "rounds"), figure(document, "samples_per_round")
    plan = f"; {many(int(rounds), 'round')} of {many(int(samples), 'sample')}" if rounds is not None and samples is not None else ""
    processes = figure(document, "mkframe", "timing", "processes")
    spread = f" over {int(processes)} process{'' if processes == 1 else 'es'}" if processes is not None else ""
    if name is None:
        return f"Timing protocol: the report names none{plan}"
    return f"Timing protocol {name}" + (f" (a sample is {_SAMPLE[name]})" if name in _SAMPLE else "") + plan + spread


def _caches(document: Document) -> str:
    stated, name = words(document, "mkframe", "timing", "cache_state"), _timing(document)
    if stated is not None:
        return f"Cache state, as the run says: {stated}"
    return _CACHES.get(name or "", "Cache state: the report does not say it; repeated calls on the same data are usually warm")


def _clock(document: Document) -> str:
    step, stated = step_ms(document, list(cases(document)))
    if step is None:
        return "Step of the stream clock: unknown"
    return f"The stream clock moves in steps of {step * 1e3:g} us, " + ("as the report says" if stated else "seen from the medians")


def _floors(document: Document) -> list[str]:
    """The smallest median of each floor over the processes."""
    least: dict[str, float] = {}
    for _, floor in objects(document, "mkframe", "timing", "floors"):
        name, clock, p50 = words(floor, "name"), words(floor, "clock"), figure(floor, "summary", "p50_ms")
        if name is not None and p50 is not None and clock in (None, "stream"):
            least[name] = min(p50, least.get(name, p50))
    return [
        f"Floor, {name}: {p50 * 1e3:.3g} us; no time is less, and a time near it is the clock's" for name, p50 in list(least.items())[:8]
    ]


def _twins(document: Document) -> str | None:
    medians = _medians(document)
    twins = [
        (twin, medians.get((words(cell, "set"), shape_text(maybe(cell, "shape")), words(cell, "engine"))))
        for _, cell in objects(document, "mkframe", "cells")
        if (twin := figure(cell, "twin", "stream_summary", "p50_ms")) is not None
    ]
    shares = [100 * twin / whole_ms for twin, whole_ms in twins if whole_ms]
    if not twins:
        return None
    ends = f": empty kernels of the same launch take {min(shares):.0f} to {max(shares):.0f} % of the time" if shares else ""
    return f"Launch twins were timed for {many(len(twins), 'cell')}{ends}"


def _medians(document: Document) -> dict[tuple[str | None, str, str | None], float]:
    """Median stream time in ms by set, shape and engine."""
    return {(case.set, case.shape, engine): p50 for case in cases(document) for engine, p50 in case.medians_ms}


def _changed_input(document: Document) -> str:
    followed = [
        maybe(cell, "replay_changed_input")
        for name, value in document.items()
        if isinstance(value, list)
        for _, case in objects(document, name)
        if isinstance(engines := maybe(case, "engines"), dict)
        for cell in engines.values()
        if maybe(cell, "passed") is True
    ]
    count = sum(one is True for one in followed)
    return f"Checked: {count} of {many(len(followed), 'cell')} that passed followed a changed input; a cell that did not pass has no times"


def follows(document: Document) -> list[str]:
    """Failures first, then what may be ranked."""
    found = list(cases(document))
    step, _ = step_ms(document, found)
    lines = [*failures(found), *_outcomes(document)]
    lines += _undecided(found, step)
    lines += _verdicts(document)
    lines.append(_legend(document, step))
    return [*lines, *at_most([f"{case.set} {case.shape}: {in_order(case, step)}" for case in found if case.medians_ms], "shape")]


def _undecided(found: list[Case], step: float | None) -> list[str]:
    """Pairs that the clock cannot tell apart."""
    pairs = [count for case in found if (count := undecided_pairs(case, step))]
    if step is None or not any(len(case.medians_ms) > 1 for case in found):
        return []
    if not pairs:
        return ["All engines of a shape are more than one step of the clock apart"]
    told, shapes = many(sum(pairs), "pair"), many(len(pairs), "shape")
    return [f"UNDECIDED, no more than one step of the clock apart: {told} of engines in {shapes} (~ below)"]


def _legend(document: Document, step: float | None) -> str:
    if isinstance(maybe(document, "mkframe", "verdicts"), list):
        return (
            "Medians in us, in order: = equal, ~ no more than a step of the clock apart. Only a verdict ranks: < says which median is "
            "smaller, not that another run would find the same"
        )
    unseen = "how far rounds and processes differ is not in the file, so a small lead may be none"
    if step is None:
        return f"Medians in us, in order (= equal); {unseen}, and the step of the clock is unknown"
    return f"Medians in us, in order: < more than a step of the clock apart, ~ UNDECIDED; {unseen}"


def _outcomes(document: Document) -> list[str]:
    """Cells without numbers, and why, where our block tells."""
    reasons: dict[str, list[str]] = {}
    for _, cell in objects(document, "mkframe", "cells"):
        outcome = words(cell, "outcome")
        if outcome is not None and outcome != "passed":
            what = f"{words(cell, 'engine')}: {outcome}: {words(cell, 'reason') or 'no reason given'}"
            reasons.setdefault(what, []).append(f"{words(cell, 'set')} {shape_text(maybe(cell, 'shape'))}")
    lines = [f"{what} ({listed(places, 2)})" for what, places in reasons.items()]
    ended = ["The run ended early: cells are missing"] if maybe(document, "mkframe", "incomplete") is True else []
    return [*ended, *at_most(lines, "reason")]


def _verdicts(document: Document) -> list[str]:
    """How often each engine got each verdict against the fastest baseline of its form, undecided ones with their reason."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    for _, one in objects(document, "mkframe", "verdicts"):
        engine, verdict, reason = words(one, "engine"), words(one, "verdict"), words(one, "reason")
        if engine is None or verdict is None:
            continue
        counts.setdefault(engine, Counter())[verdict] += 1
        if verdict == "UNDECIDED" and reason:
            reasons.setdefault(engine, Counter())[reason] += 1
    return at_most([_verdict_line(engine, got, reasons.get(engine, Counter())) for engine, got in counts.items()], "engine")


def _verdict_line(engine: str, got: Counter[str], reasons: Counter[str]) -> str:
    times = ", ".join(f"{verdict} {many(count, 'time')}" for verdict, count in got.items())
    why = f" ({listed([reason for reason, _ in reasons.most_common()], 2)})" if reasons else ""
    return f"{engine} against the fastest baseline of its form: {times}{why}"


def does_not_follow(document: Document) -> list[str]:
    """What the report itself says, and what no report of this kind shows."""
    stated = [words(document, "limitations", index) for index in range(min(length(document, "limitations") or 0, 30))]
    return said(
        *(f'The report says: "{one}"' for one in stated if one is not None),
        _left_over([one for one in stated if one is not None], document),
        _no_samples(document),
        _one_process(document),
        _launch_share(document),
        "Nothing is said of other devices, precisions, shapes or versions than these.",
    )


def _left_over(stated: list[str], document: Document) -> str | None:
    """Some reports of schema 1.2 carry a sentence of the rule before it."""
    newer = any("rates" in cell for _, cell in objects(document, "mkframe", "cells"))
    if not newer or not any(one.endswith("intervals resample processes, then rounds, then samples.") for one in stated):
        return None
    return "That intervals are resampled, as the report says: since schema 1.2 they are Student's t over the processes' medians"


def _no_samples(document: Document) -> str | None:
    if maybe(document, "mkframe", "samples") is not None:
        return None
    return "How the samples were spread: the file holds summaries without samples, so they cannot be computed again"


def _one_process(document: Document) -> str | None:
    if figure(document, "mkframe", "timing", "processes") != 1:
        return None
    return "What another process would have measured: all rounds share one, and processes differ by more than rounds do"


def _launch_share(document: Document) -> str | None:
    if any(maybe(cell, "twin", "stream_summary") is not None for _, cell in objects(document, "mkframe", "cells")):
        return None
    if words(document, "mkframe", "device", "kind") == "cpu":
        return None  # a call there is no launch
    return "What the kernels alone take: stream times hold launches, and no launch twins were timed to take them off"
