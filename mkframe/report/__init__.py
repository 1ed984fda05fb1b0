"""From a ledger to a report that stands on its own: samples, statistics, provenance, sentences, files, tables."""
