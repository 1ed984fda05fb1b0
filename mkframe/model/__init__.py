"""Frozen types that travel from the plan to the report. Nothing here computes, opens a file or needs torch."""
