"""The rules of each format. A rule is a small named function from a document, and for some its folder, to findings."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mkframe.validate.finding import Finding
from mkframe.validate.formats import COMPARISON, ENERGY
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


RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType({COMPARISON: (comparison_schema,), ENERGY: (energy_schema,)})

FIGURE_RULES: Mapping[str, tuple[Rule, ...]] = MappingProxyType({COMPARISON: (peaks_findings,), ENERGY: ()})
"""Rules about figures; for documents that hold to all of RULES."""

FILE_RULES: Mapping[str, tuple[FileRule, ...]] = MappingProxyType({COMPARISON: (samples_findings,), ENERGY: ()})
"""Rules about what lies beside a report; for reports that were read from a file and hold to all of RULES."""
