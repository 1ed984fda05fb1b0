"""The figures in generated sentences of a report of ours from before schema 1.2: what they count and name is what the block says. Their
other words changed between versions; these figures did not. Later ones are compared word for word: sentence_rules.py."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from mkframe.validate.block_parts import block_cells, block_of
from mkframe.validate.comparison_parts import whole
from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.rule import Subject

_PLAN = re.compile(r"Timing protocol (\S{1,80}): (\d{1,20}) rounds of (\d{1,20}) samples, (\d{1,20}) warm-up")
_SEEDS = re.compile(r"Random inputs and weights of workload (.{1,200}?) \(seeds: ([^)]*)\)", re.DOTALL)
_LATE = re.compile(r"(\d{1,20}) held samples")
_SPREAD = re.compile(r"Rounds are spread over (\d{1,20}) processes")
_INCOMPLETE = re.compile(r"INCOMPLETE: the run ended early, (\d{1,20}) cells")
_ENDED = re.compile(r"Cells without numbers: ([^.]*)\.")
_PASSED = re.compile(r"(\d{1,20}) of (\d{1,20}) cells passed\.")


def figures(subject: Subject) -> Iterator[Finding]:
    """Protocol, rounds, samples, warm-ups, seeds, processes, late samples, outcomes and their numbers, where the prose tells them."""
    block = block_of(subject.document)
    texts: list[str] = subject.document["limitations"]
    expected = _expected(subject, block)
    early = next((index for index, text in enumerate(texts) if text.startswith("INCOMPLETE")), None)
    if early is not None and block["incomplete"] and (told := _INCOMPLETE.match(texts[early])):
        missing = str(sum(cell.record["outcome"] == "incomplete" for cell in block_cells(subject)))
        if _figures(told) != (missing,):
            why = f"it tells of {_figures(told)[0]} incomplete cells, and the block has {missing}"
            yield error("limitations", why, ("limitations", early))
    for name, (pattern, values) in expected.items():
        found = next(((index, match) for index, text in enumerate(texts) if (match := pattern.match(text))), None)
        if found is None and values is not None:
            yield error("limitations", f"no sentence tells {name}", ("limitations",))
        elif found is not None and values is None:
            yield error("limitations", f"it tells {name}, and the block knows of none", ("limitations", found[0]))
        elif found is not None and values is not None and _figures(found[1]) != values:
            why = f"it tells {name} as {', '.join(_figures(found[1]))}, and the block says {', '.join(values)}"
            yield error("limitations", why, ("limitations", found[0]))
    for word, name, there in _WORDS:
        index = next((index for index, text in enumerate(texts) if text.startswith(word) or (word[0].islower() and word in text)), None)
        if (index is not None) is not there(block):
            place = ("limitations",) if index is None else ("limitations", index)
            yield error("limitations", f"{'no' if index is None else 'a'} sentence speaks of {name}, and the block says otherwise", place)
    yield from _checked(subject)


_WORDS: tuple[tuple[str, str, Callable[[dict[str, Any]], bool]], ...] = (
    ("INCOMPLETE", "an early end", lambda block: block["incomplete"] is True),
    ("CPU run:", "a CPU", lambda block: block["device"]["kind"] == "cpu"),
    ("enqueued behind a delay kernel", "a delay", lambda block: block["device"]["kind"] != "cpu" and block["timing"]["hold"] is True),
    ("Energy was not measured.", "no energy", lambda block: block["energy"]["status"] == "not_measured"),
    ("All rounds share one process", "one process", lambda block: whole(block["timing"]["processes"]) == 1),
)


def _expected(subject: Subject, block: dict[str, Any]) -> dict[str, tuple[re.Pattern[str], tuple[str, ...] | None]]:
    """What is told -> the sentence, and the figures in it; None where there must be no such sentence."""
    timing = block["timing"]
    plan = (timing["protocol"], *(str(whole(timing[name])) for name in ("rounds", "samples_per_round", "warmups")))
    seeds = ", ".join(sorted(f"{name} {whole(seed)}" for name, seed in block["seeds"].items()))
    late = sum(whole(cell.record["late_samples"]) or 0 for cell in block_cells(subject))
    processes = whole(timing["processes"]) or 1
    ends = Counter(str(cell.record["outcome"]) for cell in block_cells(subject))
    del ends["incomplete"], ends["passed"]
    ended = ", ".join(sorted(f"{count} {outcome}" for outcome, count in ends.items()))
    return {
        "protocol, rounds, samples and warm-ups": (_PLAN, plan),
        "workload and seeds": (_SEEDS, (", ".join(sorted(block["workload"].split(", "))), seeds)),
        "late samples": (_LATE, (str(late),) if late else None),
        "processes": (_SPREAD, (str(processes),) if processes > 1 else None),
        "cells without numbers": (_ENDED, (ended,) if ended else None),
    }


def _figures(match: re.Match[str]) -> tuple[str, ...]:
    """Numbers without leading zeros, lists in alphabetical order: keys of an object have none."""
    return tuple(str(int(text)) if text.isdecimal() else ", ".join(sorted(text.split(", "))) for text in match.groups())


def _checked(subject: Subject) -> Iterator[Finding]:
    cells = block_cells(subject)
    wanted = (str(sum(cell.passed for cell in cells)), str(sum(cell.supported for cell in cells)))
    found = _PASSED.match(str(subject.document["source_replay_checks"]))
    if found is None or _figures(found) != wanted:
        told = "nothing of that" if found is None else " of ".join(_figures(found))
        why = f"{' of '.join(wanted)} cells passed, and it tells {shown(told)}"
        yield error("limitations", why, ("source_replay_checks",))
