"""What parts of a configuration must hold beyond their types, whatever machine they are for."""

from dataclasses import asdict

from mkframe.errors import ConfigError
from mkframe.model.device import DeviceCard
from mkframe.model.precision import PRECISIONS, Precision
from mkframe.model.tensors import ITEM_BYTES
from mkframe.settings.nodes import DeviceConfig, DeviceKind
from mkframe.text import choices

_PRODUCTS = ("exact", "tf32")
_RATES = ("memory_bytes_per_s", "fp16_flops", "tf32_flops", "fp32_flops")


def check_precision(precision: Precision) -> None:
    """An id stands for one contract. Raises ConfigError for a known id with another dtype, and for dtypes that do not exist."""
    given = asdict(precision)
    contract = PRECISIONS.get(precision.id)
    for key, value in given.items():
        if key == "id":
            continue
        if contract is not None and value != getattr(contract, key):
            raise ConfigError(
                f"precision.{key}: {precision.id} means {getattr(contract, key)}, not {value}; a different contract needs its own id"
            )
        allowed = _PRODUCTS if key == "products" else tuple(ITEM_BYTES)
        if value not in allowed:
            raise ConfigError(f"precision.{key}: {value!r} does not exist; {choices(value, allowed)}")


def check_card(card: DeviceCard) -> None:
    """Raises ConfigError for a rate that no device has: times are held against it."""
    for key in _RATES:
        if getattr(card, key) <= 0:
            raise ConfigError(f"device.card.{key}: must be above 0, not {getattr(card, key):g}")


def check_device(config: DeviceConfig) -> None:
    """Raises ConfigError for keys that contradict each other, and an index below 0."""
    if config.kind is not DeviceKind.CUDA and (config.index is not None or config.uuid is not None):
        raise ConfigError(f"device: index and uuid name a CUDA device, and the kind is {config.kind.value}; use device=cuda")
    if config.index is not None and config.uuid is not None:
        raise ConfigError("device: give index or uuid, not both")
    if config.index is not None and config.index < 0:
        raise ConfigError(f"device.index: must be at least 0, not {config.index}")
