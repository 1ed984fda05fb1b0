"""The clocks around the rounds of a report of ours: which rounds there are, and whether cells may have passed in them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from mkframe.model.device import ClockReading
from mkframe.model.report import RoundRecord
from mkframe.stability import unstable_rounds
from mkframe.validate.block_parts import block_cells, block_of, workers
from mkframe.validate.comparison_parts import Path, whole
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_OF_A_GPU = ("memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons", "other_processes")

Round = tuple[str, int, int]
"""(shape set, index of the case in it, round)."""


def rounds(subject: Subject) -> Iterator[Finding]:
    """Every round is one of a case of the report and was read by no more workers than there were; no cell passed in a round that was
    throttled, shared or slow. A warning: no clocks around a round of a case whose cells all passed, or clocks of several parts."""
    block = block_of(subject.document)
    if not block:
        return
    cells = block_cells(subject)
    known = {cell.key[:2] for cell in cells}
    place: Path = ("mkframe", "rounds")
    seen: Counter[Round] = Counter()
    records: list[RoundRecord] = []
    for index, record in enumerate(block["rounds"]):
        at = (record["set"], whole(record["case"]) or 0, whole(record["round"]) or 0)
        if at[:2] not in known:
            yield error("round-clocks", f"no cell is of {shown(at[0])}, case {shown(at[1])}", (*place, index))
            continue
        seen[at] += 1
        if seen[at] == len(workers(subject)) + 1 and workers(subject):
            yield error(
                "round-clocks", f"round {at[2]} of {at[0]}[{at[1]}] stands here more often than there were workers", (*place, index)
            )
        if block["device"]["kind"] == "cpu":
            yield from _of_a_gpu(record, (*place, index))
        records.append(_record(record, at))
    yield from _unstable(subject, records)
    yield from _missing(subject, seen)


def _of_a_gpu(record: dict[str, Any], place: Path) -> Iterator[Finding]:
    for moment in ("before", "after"):
        found = [name for name in _OF_A_GPU if record[moment].get(name) is not None]
        if found:
            yield error("round-clocks", f"{found[0]} is {shown(record[moment][found[0]])}, and it ran on a CPU", (*place, moment, found[0]))


def _record(record: dict[str, Any], at: Round) -> RoundRecord:
    before, after = (_reading(record[moment]) for moment in ("before", "after"))
    return RoundRecord(set=at[0], case=at[1], process=0, round=at[2], before=before, after=after)


def _reading(stated: dict[str, Any]) -> ClockReading:
    return ClockReading(**{**stated, "throttle_reasons": whole(stated["throttle_reasons"])})


def _unstable(subject: Subject, records: list[RoundRecord]) -> Iterator[Finding]:
    bad: dict[tuple[str, int], str] = {}
    for (name, case, _), why in unstable_rounds(records).items():
        bad.setdefault((name, case), why)
    for cell in block_cells(subject):
        if cell.passed and cell.key[:2] in bad:
            yield error("round-clocks", f"{cell.text} passed, and {bad[cell.key[:2]]}", (*cell.path, "outcome"))


def _missing(subject: Subject, seen: Counter[Round]) -> Iterator[Finding]:
    """A worker that died took the clocks of its round along, and a round measured in parts has several: neither is an error."""
    total = whole(block_of(subject.document)["timing"]["rounds"]) or 0
    found: Counter[tuple[str, int]] = Counter()
    for (name, case, index), _ in seen.items():
        found[name, case] += 0 <= index < total
    died = {cell.key[:2] for cell in block_cells(subject) if not cell.passed and cell.supported}
    passed = {cell.key[:2] for cell in block_cells(subject) if cell.passed} - died
    lacking = sorted(key for key in passed if found[key] < total)
    if lacking:
        name, case = lacking[0]
        why = f"{name}[{case}] has clocks around {found[name, case]} of {total} rounds: nobody can tell whether the others were throttled"
        yield warning(
            "round-clocks", why if len(lacking) == 1 else f"{why}; {len(lacking) - 1} more cases lack some", ("mkframe", "rounds")
        )
    parts = [key for key, times in seen.items() if times > 1 and key[:2] in passed]
    if parts:
        name, case, index = parts[0]
        why = f"round {index} of {name}[{case}] has several clock readings: it was measured in parts"
        yield warning("round-clocks", why, ("mkframe", "rounds"))


ROUND_RULES: tuple[Rule, ...] = (
    Rule(
        id="round-clocks",
        format=COMPARISON,
        severities=(Severity.ERROR, Severity.WARNING),
        says="rounds are those of the cases, with clocks around each, and no cell passed in one that was throttled, shared or slow",
        check=rounds,
        needs_schema=True,
    ),
)
