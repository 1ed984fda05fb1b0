"""Checks before clocks: buffers that the framework owns, poison, changed inputs, shifted buffers, mutants."""
