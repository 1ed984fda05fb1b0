"""Every rule of energy reports beside the schema, in the order in which findings are told. docs/energy-report.md lists them."""

from mkframe.validate.energy_block import BLOCK_RULES
from mkframe.validate.energy_dates import DATE_RULES
from mkframe.validate.energy_doubt import DOUBT_RULES
from mkframe.validate.energy_keys import KEY_RULES
from mkframe.validate.energy_provenance import PROVENANCE_RULES
from mkframe.validate.energy_reads import READ_RULES
from mkframe.validate.energy_rounds import ROUND_RULES
from mkframe.validate.energy_summary import SUMMARY_RULES
from mkframe.validate.energy_validation import VALIDATION_RULES
from mkframe.validate.rule import Rule

ENERGY_RULES: tuple[Rule, ...] = (
    *DATE_RULES,
    *PROVENANCE_RULES,
    *VALIDATION_RULES,
    *READ_RULES,
    *ROUND_RULES,
    *SUMMARY_RULES,
    *BLOCK_RULES,
    *DOUBT_RULES,
    *KEY_RULES,
)
