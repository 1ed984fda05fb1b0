"""A report as a table: shape by engine, from the document alone, so that it can be printed again at any time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mkframe.model.plan import GRAPH_SUFFIX

_BASELINE_PREFIXES = ("torch-", "triton-")
"""What counts as a baseline in a report that does not say it (one without a `mkframe` block)."""


class Target(Protocol):
    """A median to reach on one shape, in microseconds."""

    @property
    def shape(self) -> Mapping[str, int]: ...

    @property
    def p50_us(self) -> float: ...


class TargetGroup(Protocol):
    """Targets that share what they apply to."""

    @property
    def workload(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def precision(self) -> str: ...

    @property
    def engine(self) -> str: ...

    @property
    def protocol(self) -> str: ...

    @property
    def cases(self) -> Sequence[Target]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One entry: the median stream time, how it stands to the fastest baseline of its form, the share of the datasheet's memory rate
    where caches were cold, and the target where one applies."""

    p50_us: float | None
    standing: str = ""
    share: str = ""
    target: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    set: str
    shape: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Everything that a printer needs. `notes` are lines below the table: cells without numbers and why, what is incomplete."""

    title: str
    engines: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())


def table_of(document: Mapping[str, Any], targets: Iterable[TargetGroup] = ()) -> Table:
    """The table of a comparison report, ours or another's."""
    block = document.get("mkframe") or {}
    verdicts = {(v["set"], v["case"], v["engine"]): v for v in block.get("verdicts", ())}
    shares = {(c["set"], c["case"], c["engine"]): c["rates"]["memory_share"] for c in block.get("cells", ()) if c.get("rates")}
    places = {(c["set"], _shape_text(c["shape"])): c["case"] for c in block.get("cells", ())}
    baselines = {c["engine"] for c in block.get("cells", ()) if c["baseline"]} if block else None
    groups = _applying(document, block, targets)
    engines: dict[str, None] = {}
    rows = []
    for name, cases in document.items():
        if not (isinstance(cases, list) and cases and isinstance(cases[0], Mapping) and "engines" in cases[0]):
            continue
        for case in cases:
            shape = _shape_text(case["shape"])
            medians = {engine: _p50_us(result) for engine, result in case["engines"].items()}
            engines |= dict.fromkeys(medians)
            fastest = _fastest(medians, baselines)
            cells = {}
            for engine in medians:
                key = (name, places.get((name, shape)), engine)
                cells[engine] = _cell(engine, medians, fastest, verdicts.get(key), shares.get(key), case["shape"], groups)
            rows.append(Row(set=name, shape=shape, cells=cells))
    title = f"{block.get('workload', 'comparison')}, {document['precision'].split(';')[0]}, on {document['device']}: median time in us"
    return Table(title=title, engines=tuple(engines), rows=tuple(rows), notes=_notes(block))


def _cell(
    engine: str,
    medians: Mapping[str, float | None],
    fastest: Mapping[bool, str],
    verdict: Mapping[str, Any] | None,
    share: float | None,
    shape: Mapping[str, int],
    groups: Sequence[TargetGroup],
) -> Cell:
    own = medians[engine]
    if own is None:
        return Cell(p50_us=None)
    standing = _standing(engine, own, medians, fastest, verdict)
    told = "" if share is None else f"{100 * share:.0f} % of memory peak"
    return Cell(p50_us=own, standing=standing, share=told, target=_target(engine, own, shape, groups))


def _fastest(medians: Mapping[str, float | None], baselines: set[str] | None) -> dict[bool, str]:
    """The fastest baseline of each form in a case: of eager engines (False), and of graphs (True)."""
    found: dict[bool, tuple[float, str]] = {}
    for engine, p50 in medians.items():
        form = engine.endswith(GRAPH_SUFFIX)
        if p50 is not None and _is_baseline(engine, baselines) and (form not in found or p50 < found[form][0]):
            found[form] = (p50, engine)
    return {form: engine for form, (_, engine) in found.items()}


def _standing(
    engine: str, own: float, medians: Mapping[str, float | None], fastest: Mapping[bool, str], verdict: Mapping[str, Any] | None
) -> str:
    """`1.25x faster`, `1.10x slower`, `same` or `undecided` beside the fastest baseline of the same form."""
    baseline = fastest.get(engine.endswith(GRAPH_SUFFIX))
    if baseline is None:
        return ""
    if engine == baseline:
        return "baseline"
    beside = medians[baseline]
    ratio = own / beside if beside else 1.0
    word = verdict["verdict"] if verdict is not None else None
    if word == "UNDECIDED":
        return f"undecided ({ratio:.2f}x)"
    if word == "SAME":
        return f"same ({ratio:.2f}x)"
    return f"{1 / ratio:.2f}x faster" if ratio < 1 else f"{ratio:.2f}x slower"


def _is_baseline(engine: str, baselines: set[str] | None) -> bool:
    return engine.startswith(_BASELINE_PREFIXES) if baselines is None else engine in baselines


def _applying(document: Mapping[str, Any], block: Mapping[str, Any], targets: Iterable[TargetGroup]) -> tuple[TargetGroup, ...]:
    """The groups for this device, workload, precision and timing protocol: a target of another protocol says nothing here."""
    return tuple(
        group
        for group in targets
        if group.workload == block.get("workload")
        and group.device == document["device"]
        and document["precision"].upper().startswith(group.precision.upper() + " ")
        and group.protocol == document.get("timing")
    )


def _target(engine: str, own: float, shape: Mapping[str, int], groups: Sequence[TargetGroup]) -> str:
    for group in groups:
        for case in group.cases:
            if group.engine == engine.removesuffix(GRAPH_SUFFIX) and dict(case.shape) == dict(shape):
                return f"target {case.p50_us:g} {'met' if own <= case.p50_us else 'missed'}"
    return ""


def _p50_us(result: Mapping[str, Any]) -> float | None:
    summary = result.get("stream_summary")
    return None if summary is None else float(summary["p50_ms"]) * 1e3


def _shape_text(shape: Mapping[str, int]) -> str:
    """`33x32x64`, with further axes by name where there are more than three."""
    items = list(shape.items())
    return "x".join(str(value) for _, value in items[:3]) + "".join(f" {key}={value}" for key, value in items[3:])


def _notes(block: Mapping[str, Any]) -> tuple[str, ...]:
    """One line for each different reason why cells have no numbers."""
    reasons: dict[str, list[str]] = {}
    for cell in block.get("cells", ()):
        if cell["outcome"] != "passed":
            what = f"{cell['engine']}: {cell['outcome']}: {cell['reason']}"
            reasons.setdefault(what, []).append(f"{cell['set']} {_shape_text(cell['shape'])}")
    lines = [f"{what} ({places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''})" for what, places in reasons.items()]
    return (("INCOMPLETE: the run ended early.",) if block.get("incomplete") else ()) + tuple(lines)
