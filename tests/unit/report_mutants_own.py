"""More kinds of mutants (report_mutants.py): what a report of ours says twice, and what is no error and must be told."""

import report_mutants_acceptance
import report_mutants_age
import report_mutants_block
import report_mutants_captures
import report_mutants_card
import report_mutants_energy
import report_mutants_facts
import report_mutants_failures
import report_mutants_plan
import report_mutants_rates
import report_mutants_record
import report_mutants_run
import report_mutants_sentences

THEMES = (
    report_mutants_acceptance,
    report_mutants_age,
    report_mutants_block,
    report_mutants_captures,
    report_mutants_card,
    report_mutants_energy,
    report_mutants_facts,
    report_mutants_plan,
    report_mutants_failures,
    report_mutants_rates,
    report_mutants_record,
    report_mutants_run,
    report_mutants_sentences,
)
"""Modules that add their kinds to KINDS when they are imported."""
