"""The seed of a shape set: the one that was given, or the one that follows from its name."""

import hashlib
from typing import Any

from mkframe.errors import ConfigError

LARGEST_SEED = 2**63 - 1


def stable_seed(name: str) -> int:
    """1000 + a stable hash of the set's name; below 2^31."""
    return 1000 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % (2**31 - 1000)


def seed_of(name: str, given: Any) -> int:
    """The seed of a set where `given` was written, None for nothing. Raises ConfigError."""
    if given is None:
        return stable_seed(name)
    if type(given) is not int or not 0 <= given <= LARGEST_SEED:
        raise ConfigError(f"shape.{name}.seed: expected an integer from 0 to 2^63 - 1, or null, not {given!r}")
    return given
