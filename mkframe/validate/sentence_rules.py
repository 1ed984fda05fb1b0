"""The generated sentences of a report of ours since schema 1.2: all of them, word for word, in their order, and no other."""

import re
from collections.abc import Iterator
from string import digits

from mkframe.errors import ConfigError
from mkframe.model.precision import Precision
from mkframe.sentences import limitations, replay_checks, wordings
from mkframe.settings.contracts import check_precision
from mkframe.validate.age import newer
from mkframe.validate.block_parts import block_of
from mkframe.validate.comparison_parts import Path
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.prose_rules import figures
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.run_facts import run_facts

_SEEDS = re.compile(r"(?<=\(seeds: )[^)]*")
_ALIKE = 12
"""Sentences that begin alike for so many characters are one sentence, told in two ways."""


def sentences(subject: Subject) -> Iterator[Finding]:
    """Before schema 1.2 other words stood around the figures: there these alone are compared."""
    if not block_of(subject.document):
        return
    facts = None if newer(subject) is None else run_facts(subject)
    if facts is None:
        yield from figures(subject)
        return
    day = facts.recorded_on
    yield from _limitations(subject.document["limitations"], [wordings(text, day) for text in limitations(facts)])
    told, worded = subject.document["source_replay_checks"], wordings(replay_checks(facts), day)
    if told not in worded:
        yield _differs(told, worded, ("source_replay_checks",))


def _limitations(stated: list[str], expected: list[tuple[str, ...]]) -> Iterator[Finding]:
    """`expected`: the sentences in their order, each in all words in which it may stand."""
    known = {_ordered(text): index for index, worded in enumerate(expected) for text in worded}
    missing, strange, before = dict(enumerate(expected)), [], -1
    for place, text in enumerate(stated):
        index = known.get(_ordered(text))
        if index is None or index not in missing:
            strange.append(place)
            continue
        del missing[index]
        if index < before:
            yield error("limitations", f"{shown(text)} stands elsewhere in a report that a run writes", ("limitations", place))
        before = max(before, index)
    for place in strange:
        alike = next((index for index, worded in missing.items() if _alike(stated[place], worded[0])), None)
        if alike is None:
            why = f"no run with this block writes {shown(stated[place])}"
            yield error("limitations", why, ("limitations", place))
        else:
            yield _differs(stated[place], missing.pop(alike), ("limitations", place))
    for worded in missing.values():
        yield error("limitations", f"the sentence {shown(worded[0])} is missing, and follows from the block", ("limitations",))


def _ordered(text: str) -> str:
    """Seeds are keys of an object, and have no order."""
    return _SEEDS.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text, count=1)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (here, there) in pairs if here != there), min(len(one), len(other)))


def _alike(one: str, other: str) -> bool:
    """Some begin with a figure, which may be what differs."""
    return _shared(one.lstrip(digits), other.lstrip(digits)) >= _ALIKE


def _differs(told: str, worded: tuple[str, ...], place: Path) -> Finding:
    """Of several wordings the nearest is named."""
    at, nearest = max((_shared(told, text), text) for text in worded)
    return error("limitations", f"from character {at} on it says {shown(told[at:])}, and the block gives {shown(nearest[at:])}", place)


def precision(subject: Subject) -> Iterator[Finding]:
    """The precision in prose is that of its contract, word for word."""
    if newer(subject) is None:
        return
    told, contract = subject.document["precision"], Precision(**block_of(subject.document)["precision"])
    try:
        check_precision(contract)
    except ConfigError:
        return  # the rules `settings` and `config` say so
    expected = contract.describe()
    if told != expected:
        yield error("precision", f"it is {shown(told)}, and the contract of the block reads {shown(expected)}", ("precision",))


SENTENCE_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=(Severity.ERROR,), says=says, check=check, needs_schema=True)
    for id, check, says in (
        ("limitations", sentences, "the generated sentences of a report of ours are those that a run with its block writes"),
        ("precision", precision, "the precision in prose is that of the contract in the block, word for word"),
    )
)
