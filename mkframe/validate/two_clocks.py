"""When one clock contradicts another: crystals differ by tens of parts in a million, so equal spans do not read equal."""

DRIFT = 200e-6
"""Two clocks may differ by this share, as in energy reports."""


def beyond(inner: float, outer: float) -> bool:
    """Whether the inner of two spans is longer than two clocks explain."""
    return inner > outer * (1 + DRIFT)
