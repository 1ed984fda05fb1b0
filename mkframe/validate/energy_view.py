"""An energy report as several rules see it: what takes long to make is made once."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial

from mkframe.validate.energy_counter import Read, reads
from mkframe.validate.energy_figures import EnergyFigures, energy_figures
from mkframe.validate.energy_parts import Node, Round, bounded, rounds
from mkframe.validate.finding import Finding, Severity
from mkframe.validate.formats import ENERGY
from mkframe.validate.rule import Rule, Subject


class EnergyReport:
    """A document that may hold anything, with its rounds, its reads, and the figures that follow from them."""

    def __init__(self, document: Node) -> None:
        self.document = document

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        return tuple(rounds(self.document))

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        return tuple(reads(self.document))

    @cached_property
    def figures(self) -> EnergyFigures | None:
        return energy_figures(self.document)


def view_rule(id: str, check: Callable[[EnergyReport], Iterable[Finding]], says: str, *severities: Severity) -> Rule:
    """A rule for energy reports that asks for what others ask for too; an error where no severity is named."""
    return Rule(id=id, format=ENERGY, severities=severities or (Severity.ERROR,), says=says, check=partial(_of_view, id, check))


def _of_view(id: str, check: Callable[[EnergyReport], Iterable[Finding]], subject: Subject) -> Iterator[Finding]:
    report = subject.memo.setdefault(ENERGY, EnergyReport(subject.document))
    return bounded(id, check(report))
