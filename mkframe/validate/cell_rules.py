"""What a cell of a report of ours must show: evidence for having passed, and the form in which it was launched."""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mkframe.model.checks import all_checks
from mkframe.validate.block_parts import BlockCell, block_cells, block_of, chained
from mkframe.validate.comparison_parts import STREAM, above, amount, number, table, whole
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.launch_limits import beyond
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.verdict_word import MEDIAN_ERRORS, too_narrow

_CHECKS = ("poison nan", "poison second", "input negated", "input fresh", "inputs intact", "shifted buffers", "after timing")
"""What every version put every cell through that passed."""
_LARGEST_TOLERANCE = 0.1
_BEYOND = {"bytes_per_s": 1e16, "flops_per_s": 1e18}
"""A hundred times what the fastest devices are sold with: a reader should know where there is no datasheet to hold a rate against."""
_LARGEST_REFERENCE = 1e9
_THREADS, _CLUSTER, _REGISTERS = 1024, 16, 255
"""CUDA's limits: threads of a block, blocks of a cluster (not portable beyond 8), registers of a thread."""


def evidence(subject: Subject) -> Iterator[Finding]:
    """A cell that passed went through every check, was compared with a reference, and has a cost; cells of one case share elements
    and cost, all cells the tolerance. A warning: a tolerance that forgives nearly everything, an error that only huge references excuse.
    """
    first: dict[tuple[str, int], BlockCell] = {}
    block = block_of(subject.document)
    wanted = all_checks(table(block, "device").get("kind", ""), chained=chained(block))
    for cell in block_cells(subject):
        record, check = cell.record, table(cell.record, "check")
        if cell.passed:
            yield from _checked(cell, wanted)
            if not check:
                yield error("evidence", f"{cell.text} passed without a comparison with the reference", (*cell.path, "check"))
        if cell.supported and record["cost"] is None:
            yield error("evidence", f"{cell.text} has no cost, and every case has one", (*cell.path, "cost"))
        rates = record.get("rates") or {}
        if any(rates.get(name, 0) > most for name, most in _BEYOND.items()):
            yield warning("evidence", f"{cell.text} has rates beyond those of any device: cost or time is wrong", (*cell.path, "rates"))
        if not cell.passed or not check:
            continue
        other = first.setdefault(cell.key[:2], cell)
        for part, names in (("check", ("elements",)), ("cost", ("bytes", "flops"))):
            for name in names:
                one, before = table(record, part).get(name), table(other.record, part).get(name)
                if one is not None and before is not None and one != before:
                    why = f"{name} is {shown(one)}, and {shown(before)} in {other.text}: cells of a case compute the same"
                    yield error("evidence", why, (*cell.path, part, name))
        if above(float(check["rounding_rows"]), float(check["elements"])):
            why = f"{shown(check['rounding_rows'])} rows in {shown(check['elements'])} elements"
            yield error("evidence", why, (*cell.path, "check", "rounding_rows"))
        yield from _tolerated(cell, check)
    yield from _one_tolerance(block_cells(subject))


def _one_tolerance(cells: list[BlockCell]) -> Iterator[Finding]:
    """A workload gives one tolerance for a precision, and a report has one of each: what most cells say, all cells say."""
    checked = [(cell, table(cell.record, "check")) for cell in cells if table(cell.record, "check")]
    for name in ("rtol", "atol"):
        usual = Counter(check[name] for _, check in checked).most_common(1)
        for cell, check in checked:
            if check[name] != usual[0][0]:
                why = f"{name} is {shown(check[name])}, and {shown(usual[0][0])} in most cells: a precision has one tolerance"
                yield error("evidence", why, (*cell.path, "check", name))


def _checked(cell: BlockCell, wanted: tuple[str, ...]) -> Iterator[Finding]:
    """Every check that there is for this device and protocol, once and in order; before schema 1.2 those that there were."""
    stated, place, complete = cell.record["checks"], (*cell.path, "checks"), cell.since_1_2
    missing = [name for name in (wanted if complete else _CHECKS) if name not in stated]
    if missing:
        yield error("evidence", f"{cell.text} passed without the check {shown(missing[0])}", place)
    elif complete and tuple(stated) != wanted:
        yield error("evidence", f"the checks of {cell.text} are not those of its device and protocol: {shown(stated)}", place)


def _tolerated(cell: BlockCell, check: dict[str, Any]) -> Iterator[Finding]:
    """Nothing was beyond tolerance, so that every error is at most atol + rtol |reference|, but for excused rows."""
    rtol, atol, largest = (float(check[name]) for name in ("rtol", "atol", "max_abs_error"))
    place = (*cell.path, "check")
    if rtol > _LARGEST_TOLERANCE or atol > _LARGEST_TOLERANCE:
        yield warning("evidence", f"rtol is {shown(rtol)} and atol {shown(atol)}: this passes what is off by a tenth", place)
    mean, elements = float(check["mean_abs_error"]), float(check["elements"])
    if above(largest, mean * elements):
        why = f"max_abs_error is {shown(largest)}, and a mean of {shown(mean)} over {shown(check['elements'])} elements leaves less"
        yield error("evidence", why, (*place, "max_abs_error"))
    if not check["rounding_rows"] and above(largest, atol):
        reference = (largest - atol) / rtol if rtol > 0 else math.inf
        if reference > _LARGEST_REFERENCE:
            why = f"max_abs_error is {shown(largest)}: within tolerance only of a reference of {reference:.3g} or more"
            yield warning("evidence", why, (*place, "max_abs_error"))


def form(subject: Subject) -> Iterator[Finding]:
    """Nodes, capture, kernels and twin belong to graphs alone, and every graph that passed has nodes; late samples belong to held
    cells, and are not more than there are samples."""
    block = block_of(subject.document)
    hold, count = table(block, "timing").get("hold"), _samples(subject.document)
    if hold is True and block["device"]["kind"] == "cpu":
        yield error("form", "hold is true on a CPU, where nothing can be held", ("mkframe", "timing", "hold"))
    for cell in block_cells(subject):
        record = cell.record
        for name in ("nodes", "capture_s", "kernels", "twin"):
            if cell.form == "eager" and record.get(name) is not None:
                yield error("form", f"{name} stands in a cell of eager form", (*cell.path, name))
        if cell.form == "graph" and cell.passed:
            for name in ("nodes", "capture_s"):
                if record[name] is None or record[name] == []:
                    yield error("form", f"{name} is {shown(record[name])} in a graph that passed", (*cell.path, name))
        yield from _kernels(cell, block["device"])
        yield from _twin(cell)
        late = whole(record["late_samples"])
        if hold is True and cell.passed and late is None:
            yield error("form", "late_samples is null in a held cell that passed", (*cell.path, "late_samples"))
        elif late is not None and count is not None and late > count:
            yield error("form", f"{shown(late)} of {shown(count)} samples were late", (*cell.path, "late_samples"))
        if (wrong := _interval(subject, cell)) is not None:
            yield error("form", wrong, (*cell.path, "interval"))


def _samples(document: dict[str, Any]) -> int | None:
    """How many samples a cell has."""
    rounds, per_round = whole(document.get("rounds")), whole(document.get("samples_per_round"))
    return None if rounds is None or per_round is None else rounds * per_round


def _kernels(cell: BlockCell, device: dict[str, Any]) -> Iterator[Finding]:
    """Launches are among the nodes, and within CUDA's limits."""
    nodes = set(cell.record["nodes"] or ())
    for index, kernel in enumerate(cell.record.get("kernels") or ()):
        threads, blocks = math.prod(kernel["block"]), math.prod(kernel["cluster"])
        why = None
        if kernel["name"] not in nodes:
            why = "this kernel is not among the nodes of the graph"
        elif threads > _THREADS:
            why = f"a block of {shown(threads)} threads, and CUDA has at most {_THREADS}"
        elif blocks > _CLUSTER or any(size % part for size, part in zip(kernel["grid"], kernel["cluster"], strict=False)):
            why = f"clusters of {shown(blocks)} blocks do not divide the grid, or are larger than {_CLUSTER}"
        elif kernel["registers"] > _REGISTERS:
            why = f"{shown(kernel['registers'])} registers of a thread, and CUDA has at most {_REGISTERS}"
        else:
            why = beyond(kernel, device["compute_capability"], whole(device["multiprocessors"]))
        if why is not None:
            yield error("form", why, (*cell.path, "kernels", index))


def _twin(cell: BlockCell) -> Iterator[Finding]:
    twin = cell.record.get("twin")
    if twin is not None and (twin[STREAM] is None) is (twin["reason"] is None):
        yield error("form", "a launch twin has either times or a reason why it has none", (*cell.path, "twin"))


def _interval(subject: Subject, cell: BlockCell) -> str | None:
    """The middle of the interval, by the ratio, lies among the samples: it is a mean of their medians, or the ends are resamples. No
    interval is narrower than the clock's step allows."""
    low, high = (amount(table(cell.record, "interval").get(name)) for name in ("low_ms", "high_ms"))
    if low is None or high is None or cell.entry is None or low <= 0 or low > high:
        return None
    middle = math.exp((math.log(low) + math.log(high)) / 2)
    least, most = (number(table(cell.entry.result, STREAM).get(name)) for name in ("min_ms", "max_ms"))
    if (least is not None and middle < least * (1 - 1e-9)) or (most is not None and middle > most * (1 + 1e-9)):
        return f"an interval from {shown(low)} to {shown(high)}, and the samples lie from {shown(least)} to {shown(most)}"
    return too_narrow(subject, low, high, cell.p50_ms, MEDIAN_ERRORS) if cell.since_1_2 else None


_E, _W = Severity.ERROR, Severity.WARNING
CELL_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=severities, says=says, check=check, needs_schema=True)
    for id, severities, check, says in (
        ("evidence", (_E, _W), evidence, "a cell that passed has every check, a comparison with the reference, and the cost of its case"),
        ("form", (_E,), form, "nodes, kernels, twin, late samples and interval of a cell fit its form and its samples"),
    )
)
