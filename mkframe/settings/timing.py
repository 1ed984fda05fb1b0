"""Which values the keys of a timing protocol may have, and which protocol has which keys."""

from collections.abc import Mapping
from typing import Any

from mkframe.errors import ConfigError
from mkframe.settings.nodes import Protocol, TimingConfig

SHORTEST_TIMEOUT_S = 0.1
LONGEST_TIMEOUT_S = 24 * 3600.0

_RANGES: Mapping[str, float] = {"replays": 1, "k1": 1, "slope_us": 1.0, "sets": 2, "footprint": 1.0}
_KEYS: Mapping[Protocol, tuple[str, ...]] = {
    Protocol.PER_CALL: (),
    Protocol.REPLAY: ("replays",),
    Protocol.UNROLLED: ("k1", "slope_us", "sets"),
    Protocol.COLD: ("method", "k1", "slope_us", "sets", "footprint"),
}


def check_timing(config: TimingConfig, *, cuda: bool) -> None:
    """Ranges, and the keys of the protocol. `cuda`: it is for a CUDA device. Raises ConfigError."""
    for name in ("rounds", "samples_per_round", "processes"):
        _at_least(getattr(config, name), 1, name)
    _at_least(config.warmups, 0, "warmups")
    if config.processes > config.rounds:
        raise ConfigError(
            f"timing.processes: {config.processes} processes cannot share {config.rounds} rounds; use at most {config.rounds}"
        )
    if not SHORTEST_TIMEOUT_S <= config.cell_timeout_s <= LONGEST_TIMEOUT_S:
        raise ConfigError(
            f"timing.cell_timeout_s: must be from {SHORTEST_TIMEOUT_S:g} to {LONGEST_TIMEOUT_S:g} s (24 h), "
            f"not {config.cell_timeout_s:.12g}"
        )
    if config.budget_s is not None and config.budget_s <= 0:
        raise ConfigError(f"timing.budget_s: must be above 0, not {config.budget_s:g}; null means no limit")
    if config.hold is True and not cuda:
        raise ConfigError("timing.hold: a delay in front of a sample needs a CUDA device; use auto or false")
    if config.spin_up_s != "auto" and config.spin_up_s < 0:
        raise ConfigError(f"timing.spin_up_s: must be at least 0, not {config.spin_up_s:g}")
    _check_own(config)


def own_keys(config: TimingConfig) -> dict[str, Any]:
    """The keys of single protocols that have a value."""
    given = {name: getattr(config, name) for name in _RANGES if getattr(config, name) is not None}
    if config.method is not None:
        given["method"] = config.method.value
    return given


def _check_own(config: TimingConfig) -> None:
    """Each key that belongs to this protocol is there and in range, no other is."""
    given = own_keys(config)
    wanted = _KEYS[config.protocol]
    for name in given:
        if name not in wanted:
            raise ConfigError(f"timing.{name}: means nothing to the protocol {config.protocol.value}; leave it out")
    for name in wanted:
        if name not in given:
            raise ConfigError(f"timing.{name}: the protocol {config.protocol.value} needs it; see conf/timing/{config.protocol.value}.yaml")
    for name, least in _RANGES.items():
        if name in given and given[name] < least:
            raise ConfigError(f"timing.{name}: must be at least {least:g}, not {given[name]:g}")


def _at_least(value: int, least: int, name: str) -> None:
    if value < least:
        raise ConfigError(f"timing.{name}: must be at least {least}, not {value}")
