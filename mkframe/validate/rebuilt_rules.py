"""The strict profile: a report of ours, with the samples beside it, and every figure that they give rebuilt from them."""

from collections.abc import Iterable, Iterator
from functools import partial

from mkframe.validate.finding import Finding, Severity, error
from mkframe.validate.formats import COMPARISON, ENERGY
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.samples_rule import PLACE, samples_bytes

STRICT = "strict"


def strict(subject: Subject) -> Iterator[Finding]:
    """The strict profile takes no comparison whose figures cannot be rebuilt."""
    if not subject.strict:
        return
    if not isinstance(subject.document.get("mkframe"), dict):
        yield error(STRICT, "there is no mkframe block: only a report of ours names the samples that its figures are rebuilt from")
    elif subject.folder is None:
        place = PLACE if "samples" in subject.document["mkframe"] else PLACE[:1]
        yield error(STRICT, "the report was not read from a file, so that no samples lie beside it", place)


def strict_energy(subject: Subject) -> Iterator[Finding]:
    """An energy report holds its own reads, from which every profile rebuilds its figures: only the block is missing in a foreign one."""
    if subject.strict and not isinstance(subject.document.get("mkframe"), dict):
        yield error(STRICT, "there is no mkframe block: only a report of ours says by which energy protocol its windows were taken")


def _rebuilt(id: str, subject: Subject) -> Iterable[Finding]:
    if not subject.strict or not isinstance(subject.document.get("mkframe"), dict):
        return ()
    return (finding for finding in subject.once("rebuilt", _all) if finding.rule == id)


def _all(subject: Subject) -> tuple[Finding, ...]:
    data = samples_bytes(subject)
    if isinstance(data, Finding):
        return ()  # the rule `samples` says why
    from mkframe.validate.rebuild import rebuilt  # here: it needs numpy, which takes longer to load than most reports to validate

    return tuple(rebuilt(subject, data))


_E, _W = Severity.ERROR, Severity.WARNING
REBUILT_RULES: tuple[Rule, ...] = (
    Rule(
        id=STRICT,
        format=COMPARISON,
        severities=(_E,),
        says="strict profile: the report has a mkframe block and was read from a file",
        check=strict,
    ),
    Rule(
        id=STRICT,
        format=ENERGY,
        severities=(_E,),
        says="strict profile: the report has a mkframe block",
        check=strict_energy,
    ),
    *(
        Rule(
            id=id,
            format=COMPARISON,
            severities=severities,
            says=f"strict profile: {says}",
            check=partial(_rebuilt, id),
            needs_schema=True,
            needs_file=True,
        )
        for id, severities, says in (
            ("samples-file", (_E,), "the samples file holds well-formed arrays of the report's cells and rounds, and not one byte else"),
            ("samples-pairs", (_E,), "in every sample the host's time is no smaller than the stream's (per_call, replay)"),
            ("samples-clock", (_E,), "every sample is a reading that its clock can give, and no round of a cell repeats another one"),
            (
                "samples-cells",
                (_E, _W),
                "samples are of cells that came so far, and of workers that measured floors, each for one process and in their order",
            ),
            ("rebuilt-summary", (_E,), "every figure of every summary of a cell follows from its samples"),
            ("rebuilt-step", (_E,), "the step of the event clock is the one that the samples show"),
            ("rebuilt-interval", (_E, _W), "intervals of medians follow from the samples, where there are at least two processes"),
            ("rebuilt-verdict", (_E,), "ratios, their intervals and verdicts follow from the samples"),
        )
    ),
)
