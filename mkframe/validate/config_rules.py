"""The resolved configuration of a report of ours, held against everything that stands in the report too.

What is not decided here: cases of a grid, whose expansion belongs to the workload; engines that a preset brought along.
"""

from collections.abc import Iterator
from typing import Any

from mkframe.model.device import DeviceCard
from mkframe.model.precision import Precision
from mkframe.peaks import datasheet_peaks
from mkframe.seeds import stable_seed
from mkframe.validate.block_parts import block_of
from mkframe.validate.comparison_parts import Path, number, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject

_PARTS = ("workload", "engine", "shape", "precision", "device", "timing", "energy")
_CONFIG: Path = ("mkframe", "config")
_BLOCK = "mkframe"


def config(subject: Subject) -> Iterator[Finding]:
    """Workload, precision, timing, seeds, device and energy of the configuration are those of the block."""
    block = block_of(subject.document)
    if not block:
        return
    lacking = [part for part in _PARTS if not isinstance(block["config"].get(part), dict)]
    if lacking:
        yield error("config", f"it lacks {lacking[0]}, which every configuration has", _CONFIG)
        return
    yield from _same(block, ("workload", "id"), ("workload",))
    for name in block["precision"]:
        yield from _same(block, ("precision", name), ("precision", name))
    for name in ("protocol", "rounds", "samples_per_round", "processes", "warmups"):
        yield from _same(block, ("timing", name), ("timing", name))
    yield from _same(block, ("energy", "protocol"), ("energy", "protocol"))
    kind, hold = block["device"]["kind"], block["config"]["timing"].get("hold")
    if hold == "auto":
        hold = kind == "cuda"
    if isinstance(hold, bool) and hold is not block["timing"]["hold"]:
        yield error("config", f"hold is {shown(block['timing']['hold'])}, and the configuration asks otherwise", (_BLOCK, "timing", "hold"))
    if block["config"]["device"].get("kind") not in ("auto", kind):
        yield error("config", f"kind is {shown(block['config']['device'].get('kind'))}, and it ran on {kind}", (*_CONFIG, "device", "kind"))
    yield from _seeds(block)
    yield from _card(block)


def _same(block: dict[str, Any], inner: tuple[str, ...], outer: tuple[str, ...]) -> Iterator[Finding]:
    asked, ran = _at(block["config"], inner), _at(block, outer)
    if asked != ran:
        why = f"config.{'.'.join(inner)} is {_told(asked)}, and mkframe.{'.'.join(outer)} is {_told(ran)}"
        yield error("config", why, (_BLOCK, *outer))


def _told(value: Any) -> str:
    return "absent" if value is None else shown(value)


def _at(node: Any, path: tuple[str, ...]) -> Any:
    return table(node, *path[:-1]).get(path[-1])


def _seeds(block: dict[str, Any]) -> Iterator[Finding]:
    """Every shape set of the configuration has the seed that it names, or the one that follows from its name; no other set has one."""
    asked = block["config"]["shape"]
    for name, seed in block["seeds"].items():
        if name not in asked:
            yield error("config", f"a seed of {shown(name)}, and the configuration has no such shape set", (_BLOCK, "seeds", name))
            continue
        wanted = table(asked[name]).get("seed")
        wanted = stable_seed(name) if wanted is None else whole(wanted)
        if wanted is not None and whole(seed) != wanted:
            yield error("config", f"the seed is {shown(seed)}, and the configuration gives {shown(wanted)}", (_BLOCK, "seeds", name))
    for name in asked:
        if name not in block["seeds"]:
            yield error("config", f"the shape set {shown(name)} of the configuration has no seed", (_BLOCK, "seeds"))


def _card(block: dict[str, Any]) -> Iterator[Finding]:
    """A card that the configuration names is the one of the device, unless the multiprocessors differ; its peaks stand in the report."""
    card, device = table(block, "config", "device", "card"), block["device"]
    if not card or device["kind"] != "cuda":
        return
    for name in ("name", "compute_capability"):
        if name in card and card[name] != device[name]:
            yield error(
                "config", f"{name} is {_told(device[name])}, and the card asked for is of {_told(card[name])}", (_BLOCK, "device", name)
            )
    fits = whole(card.get("multiprocessors")) == whole(device["multiprocessors"])
    wanted = card.get("id") if fits else None
    if device["card"] != wanted:
        why = f"card is {_told(device['card'])}, and with the card and the multiprocessors that stand here it is {_told(wanted)}"
        yield error("config", why, (_BLOCK, "device", "card"))
    stated = table(device, "peaks", "datasheet")
    if fits and stated and (expected := _promised(block["precision"], card)) is not None:
        for name, value in expected.items():
            if stated.get(name) != value:
                why = f"{name} is {_told(stated.get(name))}, and the card of the configuration gives {_told(value)}"
                yield error("config", why, (_BLOCK, "device", "peaks", "datasheet", name))


def _promised(precision: dict[str, Any], card: dict[str, Any]) -> dict[str, Any] | None:
    """What the report states of this card; None where it is no card."""
    rates = [number(card.get(name)) for name in ("memory_bytes_per_s", "fp16_flops", "tf32_flops", "fp32_flops")]
    if set(card) != set(DeviceCard.__dataclass_fields__) or None in rates:
        return None
    found = datasheet_peaks(Precision(**precision), DeviceCard(**card))
    return {"memory_bytes_per_s": found.memory_bytes_per_s, "flops_per_s": found.flops_per_s}


CONFIG_RULES = (
    Rule(
        id="config",
        format=COMPARISON,
        severities=(Severity.ERROR,),
        says="workload, precision, timing, seeds, device, card and energy of the configuration are those of the block",
        check=config,
        needs_schema=True,
    ),
)
