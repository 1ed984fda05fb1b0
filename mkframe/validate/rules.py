"""The rules of each format. A rule is a small named function from a document, and for some its folder, to findings."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mkframe.validate.card_rules import card_findings
from mkframe.validate.finding import Finding
from mkframe.validate.formats import COMPARISON, DEVICE_CARD, ENERGY
from mkframe.validate.peaks_rule import peaks_findings
from mkframe.validate.samples_rule import samples_findings
from mkframe.validate.schema_rule import schema_findings

Rule = Callable[[dict[str, Any]], Iterable[Finding]]
FileRule = Callable[[dict[str, Any], Path], Iterable[Finding]]


def comparison_schema(document: dict[str, Any]) -> Iterable[Finding]:
    """The document holds to schemas/comparison.schema.json."""
    return schema_findings(document, COMPARISON)


def energy_schema(document: dict[str, Any]) -> Iterable[Finding]:
    """The document holds to schemas/energy.schema.json."""
    return schema_findings(document, ENERGY)


def device_card_schema(document: dict[str, Any]) -> Iterable[Finding]:
    """The document holds to schemas/device-card.schema.json."""
    return schema_findings(document, DEVICE_CARD)


RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {COMPARISON: (comparison_schema,), ENERGY: (energy_schema,), DEVICE_CARD: (device_card_schema,)}
)

CONTENT_RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType({COMPARISON: (peaks_findings,), ENERGY: (), DEVICE_CARD: (card_findings,)})
"""Rules about what figures say to each other; for documents that hold to all of RULES."""

FILE_RULES: Mapping[str, tuple[FileRule, ...]] = MappingProxyType({COMPARISON: (samples_findings,), ENERGY: (), DEVICE_CARD: ()})
"""Rules about what lies beside a report; for reports that were read from a file and hold to all of RULES."""
