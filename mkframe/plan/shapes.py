"""Shape sets: from what was written to the workload's cases, in order, each checked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from mkframe.errors import ConfigError, PluginError
from mkframe.model.report import ComparisonReport
from mkframe.plan import grid
from mkframe.plugin.answers import check_shape
from mkframe.plugin.asking import asking, failing_as
from mkframe.plugin.contract import ContractBreach
from mkframe.plugin.registry import choices
from mkframe.plugin.workload import Workload
from mkframe.seeds import seed_of
from mkframe.text import told

_SETS_APART = ("development", "assessment")
_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
# A set is a top-level key of the report, so it must not be called like another one, in either format.
_TAKEN = frozenset(ComparisonReport.__dataclass_fields__) | {
    "compiler",
    "completed_at_utc",
    "energy_interpretation",
    "hardware",
    "kernel",
    "provenance",
    "scope",
    "summary",
    "validation",
    "verified_at_utc",
    "versions",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeSet:
    """`cases` are instances of the workload's Case; `where` names each for messages."""

    name: str
    seed: int
    cases: tuple[Any, ...]


def shape_sets(config: Mapping[str, Mapping[str, Any]], workload: Workload, *, most_cases: int) -> tuple[ShapeSet, ...]:
    """The sets in the order of selection. Raises ConfigError, before a grid is expanded where it is too large."""
    left = most_cases
    sets = []
    for name, node in config.items():
        made = _shape_set(name, node, workload, left)
        left -= len(made.cases)
        sets.append(made)
    _check_apart(sets, workload)
    return tuple(sets)


def _shape_set(name: str, node: Mapping[str, Any], workload: Workload, most: int) -> ShapeSet:
    key = f"shape.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{key}: a set's name is lower-case letters and digits joined by - or _")
    if name in _TAKEN:
        raise ConfigError(f"{key}: {name!r} is another key of the report; rename the set")
    seed = seed_of(name, node.get("seed"))
    rest = {str(item): value for item, value in node.items() if item != "seed"}
    cases = _listed(rest, key, workload, most) if "cases" in rest else _grid(rest, key, workload, most)
    return ShapeSet(name=name, seed=seed, cases=cases)


def _listed(node: Mapping[str, Any], key: str, workload: Workload, most: int) -> tuple[Any, ...]:
    for name in node:
        if name != "cases":
            raise ConfigError(f"{key}.{name}: no such key; a set has seed and cases, or seed and the axes of a grid")
    listed = node["cases"]
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise ConfigError(f"{key}.cases: expected a list of cases, not {listed!r}; write 'cases=[{{{_example(workload)}}}]'")
    if not listed:
        raise ConfigError(f"{key}.cases: is empty; give at least one case, as in {{{_example(workload)}}}")
    if len(listed) > most:
        raise _too_many(key, len(listed), most)
    cases: dict[Any, int] = {}
    for index, item in enumerate(listed):
        case = _case(item, f"{key}.cases[{index}]", workload)
        if case in cases:
            raise ConfigError(f"{key}.cases[{index}]: the same shape as cases[{cases[case]}]; remove one of them")
        cases[case] = index
    return tuple(cases)


def _grid(node: Mapping[str, Any], key: str, workload: Workload, most: int) -> tuple[Any, ...]:
    written = {name: value for name, value in node.items() if value is not None}
    if not written:
        if node:  # every axis is null
            raise ConfigError(
                f"{key}: no axis has a value; give one to {', '.join(_required(workload))}, as in {key}.{_names(workload)[0]}=8"
            )
        raise ConfigError(f"{key}: is empty; its file must hold cases, or axes out of {', '.join(_names(workload))}")
    for name in written:
        if name not in _names(workload):
            raise ConfigError(f"{key}.{name}: {workload.id} has no axis {name}; set it to null, the axes are {', '.join(_names(workload))}")
    axes = {name: grid.axis(value, f"{key}.{name}") for name, value in written.items()}
    _check_required(axes, key, workload)
    if grid.count(axes) > most:
        raise _too_many(key, grid.count(axes), most)
    return tuple(dict.fromkeys(_made(case, key, workload) for case in grid.expand(axes)))


def _case(item: Any, key: str, workload: Workload) -> Any:
    if not isinstance(item, Mapping):
        raise ConfigError(f"{key}: expected a case such as {{{_example(workload)}}}, not {item!r}")
    names = _names(workload)
    for name in item:
        if name not in names:
            raise ConfigError(f"{key}.{name}: {workload.id} has no such axis; {choices(str(name), names)}")
    _check_required(item, key, workload)
    return _made({name: grid.size(value, f"{key}.{name}") for name, value in item.items()}, key, workload)


def _check_required(given: Mapping[str, Any], key: str, workload: Workload) -> None:
    required = _required(workload)
    missing = [name for name in required if name not in given]
    if missing:
        raise ConfigError(f"{key}: {', '.join(missing)} missing; a case of {workload.id} needs {', '.join(required)}")


def _made(values: Mapping[str, int], key: str, workload: Workload) -> Any:
    try:
        with asking():
            return workload.Case(**values)
    except KeyboardInterrupt:
        raise
    except (ValueError, AssertionError) as error:  # how a workload refuses on purpose
        raise ConfigError(f"{key}: {told(error, kind=False) if str(error).strip() else 'refused by the workload'}") from error
    except BaseException as error:
        raise PluginError(f"workload {workload.id}: Case failed for {key}, {shown(values)}: {told(error)}") from error


def _check_apart(sets: Sequence[ShapeSet], workload: Workload) -> None:
    """What kernels are tuned on must not be what they are assessed on."""
    cases = {item.name: set(item.cases) for item in sets}
    both = cases.get(_SETS_APART[0], set()) & cases.get(_SETS_APART[1], set())
    for case in both:
        raise ConfigError(f"shape: {shown(shape_of(workload, case))} is in both development and assessment; take it out of one")


def shape_of(workload: Workload, case: Any) -> dict[str, int]:
    """The report's `shape` of a case. Raises PluginError where the workload does not give names and integers."""
    what = f"workload {workload.id}: shape_of()"
    with failing_as(PluginError, what):
        found = workload.shape_of(case)
    try:
        return check_shape(found)
    except ContractBreach as breach:
        raise PluginError(f"{what} {breach}") from breach


def shown(shape: Mapping[str, int]) -> str:
    """`{rows: 1, channels: 7, hidden: 13}`."""
    return "{" + ", ".join(f"{name}: {value}" for name, value in shape.items()) + "}"


def _names(workload: Workload) -> list[str]:
    return [item.name for item in fields(workload.Case)]


def _required(workload: Workload) -> list[str]:
    return [item.name for item in fields(workload.Case) if item.default is MISSING and item.default_factory is MISSING]


def _example(workload: Workload) -> str:
    return ", ".join(f"{item.name}: 8" for item in fields(workload.Case) if item.default is MISSING)


def _too_many(key: str, number: int, most: int) -> ConfigError:
    return ConfigError(f"{key}: {number:,} cases; this selection has room for {most:,}; shorten its lists, or select fewer engines")


def iterate(sets: Sequence[ShapeSet]) -> Iterator[tuple[ShapeSet, int, Any]]:
    """(set, index inside the set, case), in order."""
    for item in sets:
        for index, case in enumerate(item.cases):
            yield item, index, case
