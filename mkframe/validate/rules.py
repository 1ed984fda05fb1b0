"""Every rule of every format, in the order in which findings are told."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from mkframe.validate.acceptance_rules import ACCEPTANCE_RULES
from mkframe.validate.block_rules import BLOCK_RULES
from mkframe.validate.capture_rules import CAPTURE_RULES
from mkframe.validate.card_peaks_rules import CARD_PEAKS_RULES
from mkframe.validate.card_rules import CARD_CHECKS
from mkframe.validate.cell_rules import CELL_RULES
from mkframe.validate.chain_rules import CHAIN_RULES
from mkframe.validate.comparison_rules import COMPARISON_RULES
from mkframe.validate.config_rules import CONFIG_RULES
from mkframe.validate.device_rules import DEVICE_RULES
from mkframe.validate.doubt_rules import DOUBT_RULES
from mkframe.validate.energy_rules import ENERGY_RULES
from mkframe.validate.fact_rules import FACT_RULES
from mkframe.validate.failure_rules import FAILURE_RULES
from mkframe.validate.finding import Finding, Severity
from mkframe.validate.floor_rules import FLOOR_RULES
from mkframe.validate.formats import COMPARISON, DEVICE_CARD, FORMATS, WORDS
from mkframe.validate.origin_rule import ORIGIN_RULES
from mkframe.validate.payload_rule import PAYLOAD_RULES
from mkframe.validate.peaks_rule import ABOVE_MEASURED, IMPOSSIBLE, RATES, peaks_findings
from mkframe.validate.plan_rules import PLAN_RULES
from mkframe.validate.rebuilt_rules import REBUILT_RULES
from mkframe.validate.round_rules import ROUND_RULES
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.run_record_rules import RUN_RECORD_RULES
from mkframe.validate.samples_rule import RULE as SAMPLES
from mkframe.validate.samples_rule import samples_findings
from mkframe.validate.schema_rule import RULE as SCHEMA
from mkframe.validate.schema_rule import schema_findings
from mkframe.validate.sentence_rules import SENTENCE_RULES
from mkframe.validate.setting_rules import SETTING_RULES
from mkframe.validate.summary_rules import SUMMARY_RULES
from mkframe.validate.verdict_rules import VERDICT_RULES
from mkframe.validate.version_rules import VERSION_RULES

_E, _W = Severity.ERROR, Severity.WARNING


def _schema(format: str, subject: Subject) -> Iterable[Finding]:
    return schema_findings(subject.document, format)


def _of_document(check: Callable[[dict[str, Any]], Iterable[Finding]], subject: Subject) -> Iterable[Finding]:
    return check(subject.document)


def _peaks(id: str, subject: Subject) -> Iterable[Finding]:
    return (finding for finding in subject.once("peaks", _all_peaks) if finding.rule == id)


def _all_peaks(subject: Subject) -> tuple[Finding, ...]:
    return tuple(peaks_findings(subject))


def _samples(subject: Subject) -> Iterable[Finding]:
    return samples_findings(subject)


_SCHEMAS = tuple(
    Rule(
        id=SCHEMA,
        format=format,
        severities=(_E,),
        says=f"the {WORDS[format]} holds to schemas/{format}.schema.json",
        check=partial(_schema, format),
    )
    for format in FORMATS
)
_PEAKS = tuple(
    Rule(id=id, format=COMPARISON, severities=(severity,), says=says, check=partial(_peaks, id), needs_schema=True)
    for id, severity, says in (
        (RATES, _E, "rates and shares of peak follow from cost, median stream time and peaks of the report"),
        (IMPOSSIBLE, _E, "no cell that passed claims a rate above the datasheet's peak"),
        (ABOVE_MEASURED, _W, "no cold rate is above the read peak that was measured on the device"),
    )
)
_CARDS = tuple(
    Rule(id=id, format=DEVICE_CARD, severities=(_E,), says=says, check=partial(_of_document, check), needs_schema=True)
    for id, (check, says) in CARD_CHECKS.items()
)
_FILES = (
    Rule(
        id=SAMPLES,
        format=COMPARISON,
        severities=(_E,),
        says="the samples file of a report of ours lies beside it and has the SHA-256 that the report says",
        check=_samples,
        needs_schema=True,
        needs_file=True,
    ),
)

RULES: tuple[Rule, ...] = (
    *_SCHEMAS,
    *SUMMARY_RULES,
    *COMPARISON_RULES,
    *ORIGIN_RULES,
    *BLOCK_RULES,
    *CONFIG_RULES,
    *PLAN_RULES,
    *SETTING_RULES,
    *DEVICE_RULES,
    *CELL_RULES,
    *CAPTURE_RULES,
    *FAILURE_RULES,
    *ACCEPTANCE_RULES,
    *RUN_RECORD_RULES,
    *CARD_PEAKS_RULES,
    *VERSION_RULES,
    *CHAIN_RULES,
    *FACT_RULES,
    *ROUND_RULES,
    *FLOOR_RULES,
    *SENTENCE_RULES,
    *DOUBT_RULES,
    *VERDICT_RULES,
    *ENERGY_RULES,
    *_PEAKS,
    *_CARDS,
    *_FILES,
    *REBUILT_RULES,
    *PAYLOAD_RULES,
)
