"""Measures a device: the card of floors, bandwidths and clock behaviour that `mkframe device probe` writes."""
