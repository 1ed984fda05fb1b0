"""Datasheet cards: those that ship with mkframe, and what each of them must hold."""

from importlib.resources import files

from mkframe.config.nodes import DeviceConfig
from mkframe.config.typed import typed
from mkframe.errors import ConfigError
from mkframe.model.device import DeviceCard

_RATES = ("memory_bytes_per_s", "fp16_flops", "tf32_flops", "fp32_flops")


def shipped_card(name: str, compute_capability: str | None) -> DeviceCard | None:
    """The card of conf/device for a device of exactly this name and compute capability, None where there is none."""
    import yaml

    for entry in sorted(files("mkframe_conf").joinpath("device").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            card = typed(DeviceConfig, yaml.safe_load(entry.read_text(encoding="utf-8")), f"device/{entry.name}").card
            if card is not None and (card.name, card.compute_capability) == (name, compute_capability):
                return card
    return None


def check_card(card: DeviceCard) -> None:
    """Raises ConfigError for a rate that no device has: times are held against it."""
    for key in _RATES:
        if getattr(card, key) <= 0:
            raise ConfigError(f"device.card.{key}: must be above 0, not {getattr(card, key):g}")
