"""Datasheet cards that ship with mkframe."""

from importlib.resources import files

from mkframe.model.device import DeviceCard
from mkframe.settings.nodes import DeviceConfig
from mkframe.settings.typed import typed


def shipped_card(name: str, compute_capability: str | None) -> DeviceCard | None:
    """The card of conf/device for a device of exactly this name and compute capability, None where there is none."""
    import yaml

    for entry in sorted(files("mkframe_conf").joinpath("device").iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            card = typed(DeviceConfig, yaml.safe_load(entry.read_text(encoding="utf-8")), f"device/{entry.name}").card
            if card is not None and (card.name, card.compute_capability) == (name, compute_capability):
                return card
    return None
