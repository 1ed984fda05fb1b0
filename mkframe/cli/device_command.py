"""`python -m mkframe device probe`: measures one device and keeps its card."""

import json
import sys
from pathlib import Path

from mkframe.cli.parser import Parser
from mkframe.errors import MkframeError, UsageError
from mkframe.model.device_card import MeasuredCard, Operation
from mkframe.plan.devices import resolve
from mkframe.probe.cards import card_path, check_writable, identity, peak_rate, save_card
from mkframe.probe.process import measure_in_child
from mkframe.run.device_lock import device_lock
from mkframe.settings.nodes import DeviceConfig, DeviceKind

_KEYS = ("device", "device.index", "device.uuid")


def main(argv: list[str]) -> int:
    """Probes a device. Exit code 0 with a card, 1 where a kernel or the process failed, 2 for wrong usage or an absent device."""
    parser = Parser(
        prog="mkframe device",
        description="Measures a device (about a minute): launch, event and barrier floors, bandwidths, clocks. Nothing is set on it.",
        epilog="Without --out the card goes to the user's cache folder, one per device and driver, where reports look for it. "
        "A card that cannot be written after all is printed.",
    )
    parser.add_argument("action", choices=("probe",), help="measure one device and write its card")
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE", help="device=auto|cpu|cuda, device.index=N, device.uuid=UUID, as for a run")
    parser.add_argument("--out", metavar="FILE", help="write the card to this file instead")
    parser.add_argument("--json", action="store_true", help="print the card instead of a summary")
    options = parser.parse_args(argv)
    resolved = resolve(device_config(options.keys))
    device = resolved.device
    print(resolved.note or f"device: {device.name}", file=sys.stderr)
    path = Path(options.out) if options.out else card_path(*identity(device))
    check_writable(path)  # before the minute that a card takes
    with device_lock(device, 0.0, print):
        document = measure_in_child(device, lambda text: print(f"  {text}", file=sys.stderr))
    try:
        save_card(document, path)
    except MkframeError:
        print(json.dumps(document, indent=2), flush=True)  # what was measured is not lost
        raise
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        for line in summary(MeasuredCard.of(document)):
            print(line)
    print(f"card: {path}", file=sys.stderr)
    return 0


def device_config(words: list[str]) -> DeviceConfig:
    """The device that KEY=VALUE words name; an index or a UUID means CUDA. Raises UsageError."""
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in _KEYS or not equals or not value:
            raise UsageError(f"{word!r} is no device: give device=auto|cpu|cuda, device.index=N or device.uuid=UUID")
        if key in values:
            raise UsageError(f"{key} is given twice")
        values[key] = value
    named = "device.index" in values or "device.uuid" in values
    kind = values.get("device", "cuda" if named else "auto")
    if kind not in list(DeviceKind):
        raise UsageError(f"device={kind}: give auto, cpu or cuda")
    index = values.get("device.index")
    if index is not None and not (index.isascii() and index.isdecimal()):
        raise UsageError(f"device.index={index}: give a number from 0 on")
    return DeviceConfig(kind=DeviceKind(kind), index=None if index is None else int(index), uuid=values.get("device.uuid"))


def summary(card: MeasuredCard) -> list[str]:
    """The card in a few lines."""
    lines = [f"{card.device.name}: {len(card.checks)} kinds of checks held, {card.took_s:.0f} s"]
    if card.host is not None:
        lines.append(f"clock step {card.host.clock_step_us * 1e3:.0f} ns, empty call {card.host.empty_call.median_us * 1e3:.0f} ns")
    if card.clock is not None:
        lines.append(f"SM clock {card.clock.light_measured.median_mhz:.0f} MHz under light work, after {card.clock.rise_s:.2f} s")
    for event in card.events.floors if card.events else ():
        if event.held:
            lines.append(f"event pair around {event.around}: {event.time.median_us:.2f} us")
    for floor in card.launches or ():
        plain = floor.cluster == 1 and floor.shared_bytes == 0 and not floor.cooperative and floor.block == 128
        if floor.time is not None and plain and floor.grid == card.device.multiprocessors:
            edge = "programmatic" if floor.programmatic else "full"
            lines.append(f"kernel ({floor.body}), {floor.grid} blocks, {edge} edges: {floor.time.median_us:.2f} us")
    for barrier in card.barriers or ():
        if barrier.block == 128:
            lines.append(f"{barrier.scope} barrier ({barrier.cluster} a cluster): step {barrier.step.median_us:.2f} us")
    for operation in Operation:
        best = peak_rate(card, operation)
        if best is not None:
            lines.append(f"{operation}: {best.rate.median_bytes_per_s / 1e9:.1f} GB/s over {best.bytes / 2**20:.0f} MiB, {best.method}")
    for rate in card.l2 or ():
        lines.append(f"L2 to SMs, {rate.pattern} data: {rate.rate.median_bytes_per_s / 1e9:.0f} GB/s, {rate.method}")
    return [*lines, *card.notes]
