"""Where measured cards lie, and how they are read: one per device UUID and driver in the user's cache folder.

card = load_card(uuid, driver)          # None where this device was not probed with this driver
read_model(card), launch_twin(card, grid=132, block=128)
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkframe import canonical
from mkframe.errors import RunError, UnreadableError
from mkframe.model.device import Device
from mkframe.model.device_card import Body, LaunchFloor, MeasuredCard, MemoryRate, Operation
from mkframe.user_cache import cache_folder
from mkframe.validate import check_document
from mkframe.validate.finding import Finding, error
from mkframe.validate.formats import DEVICE_CARD, a_word
from mkframe.validate.parser import parse

_CARD_BYTES = 256 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def cards_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`devices` in the user's cache folder."""
    return cache_folder(environ) / "devices"


def card_path(uuid: str, driver: str, environ: Mapping[str, str] = os.environ) -> Path:
    """`UUID-DRIVER.json` in the user's cache folder."""
    return cards_folder(environ) / f"{_UNSAFE.sub('_', uuid)}-{_UNSAFE.sub('_', driver)}.json"


def identity(device: Device) -> tuple[str, str]:
    """(UUID, driver) that the card of a device is kept under. A CPU has neither: its model and its number of cores stand for the
    first, the kernel's release for the second."""
    if device.uuid is not None:
        return device.uuid, device.driver or "unknown"
    name = hashlib.sha256(f"{device.name}/{device.threads}".encode()).hexdigest()[:16]
    return f"CPU-{name}", os.uname().release


def load_card(uuid: str, driver: str, environ: Mapping[str, str] = os.environ) -> MeasuredCard | None:
    """The card of a device, or None where there is none, or none that can be used: unreadable, of another format or of another device."""
    try:
        card = read_card(card_path(uuid, driver, environ))
    except UnreadableError:
        return None
    fits = card.device.uuid is None or (card.device.uuid, card.device.driver) == (uuid, driver)
    return card if fits else None


def read_card(path: Path) -> MeasuredCard:
    """The card in a file. Raises UnreadableError with the first thing that is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"cannot read the device card {path}: {error.strerror or error}") from error
    parsed = parse(data)
    findings = parsed.faults or tuple(findings_of(parsed.document))
    if findings:
        raise UnreadableError(f"{path} is no valid device card: {findings[0].pointer or '/'}: {findings[0].message}; probe again")
    return MeasuredCard.of(parsed.document)


def findings_of(document: Any) -> list[Finding]:
    """Everything that is wrong with a document as a device card, as `validate` finds it."""
    result = check_document(document)
    if result.format not in (None, DEVICE_CARD):
        return [error("format", f"this is {a_word(result.format)}")]
    return list(result.findings)


def check_writable(path: Path) -> None:
    """Makes the folder of a card that is to come, and writes as much as a card there for a moment. Raises UnreadableError."""
    if path.is_dir():
        raise UnreadableError(f"cannot write {path}: it is a folder; name a file")
    trial = path.with_name(f".{path.name}.{os.getpid()}.trial")
    _make_folder(path)
    try:
        canonical.write_atomically(trial, bytes(_CARD_BYTES))
    except UnreadableError as error:
        raise UnreadableError(str(error).replace(trial.name, path.name)) from error
    finally:
        trial.unlink(missing_ok=True)


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"cannot make the folder {path.parent}: {error.strerror or error}") from error


def save_card(document: dict[str, Any], path: Path) -> Path:
    """Writes a card, whole or not at all, and makes its folder. Raises RunError where it is no valid card, UnreadableError
    where it cannot be written."""
    findings = findings_of(document)
    if findings:
        raise RunError(
            f"device probe: the card contradicts its format at {findings[0].pointer}: {findings[0].message}; nothing was written"
        )
    _make_folder(path)
    canonical.write_atomically(path, canonical.dumps(document).encode())
    return path


def other_drivers(uuid: str, driver: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Drivers that this device has cards of, apart from `driver`: cards that no longer fit."""
    found = []
    for path in sorted(cards_folder(environ).glob(f"{_UNSAFE.sub('_', uuid)}-*.json")):
        try:
            found.append(str(json.loads(path.read_bytes())["device"]["driver"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return tuple(name for name in dict.fromkeys(found) if name != driver)


def peak_rate(card: MeasuredCard, operation: Operation) -> MemoryRate | None:
    """The fastest case of an operation: what a share of peak is a share of."""
    rates = [rate for rate in card.memory if rate.operation is operation]
    return max(rates, key=lambda rate: rate.rate.median_bytes_per_s, default=None)


def pass_us(card: MeasuredCard, operation: Operation, moved_bytes: int) -> float | None:
    """The least time that moving `moved_bytes` takes by the lines of the card, None where it has no line for the operation."""
    models = [model for model in card.memory_models if model.operation is operation]
    return min((model.latency_us + moved_bytes / model.bytes_per_s * 1e6 for model in models), default=None)


def launch_twin(
    card: MeasuredCard,
    *,
    grid: int,
    block: int,
    shared_bytes: int = 0,
    cluster: int = 1,
    cooperative: bool = False,
    programmatic: bool = False,
    body: Body = Body.EMPTY,
) -> LaunchFloor | None:
    """The measured floor nearest to a launch: same body, cluster and kind of launch, the next grid by ratio, then shared memory and
    block. None where nothing of that kind was measured. It stands in for a twin that was not measured beside the engine."""
    same = [
        floor
        for floor in card.launches or ()
        if floor.time is not None
        and (floor.body, floor.cluster, floor.cooperative, floor.programmatic) == (body, cluster, cooperative, programmatic)
    ]

    def distance(floor: LaunchFloor) -> tuple[float, int, int]:
        ratio = max(floor.grid, grid) / min(floor.grid, grid)
        return ratio, abs(floor.shared_bytes - shared_bytes), abs(floor.block - block)

    return min(same, key=distance, default=None)
