"""Whether the totals and flags of `validation` follow from its draws: labels, or for other workloads values."""

from collections.abc import Iterator

from mkframe.validate.energy_parts import (
    RELATIVE,
    Absent,
    Node,
    Path,
    at,
    energy_rule,
    flag,
    items,
    number,
    objects,
    whole,
)
from mkframe.validate.finding import Finding, error, shown

_SUMS = ("total", "gpu_agrees_with_frozen_cpu_predictions", "gpu_correct", "cpu_correct", "violations", "elements", "rounding_rows")
_AGREES = "gpu_agrees_with_frozen_cpu_predictions"
_REPLAYS = "graph_replays_equal_eager"
_ALL_REPLAYS = "all_graph_replays_equal_eager"
_ALL_DRAWS = "all_eleven_frozen_draws_checked"
_PLACE: Path = ("validation",)
_DRAWS: Path = ("validation", "draws")


def totals(document: Node) -> Iterator[Finding]:
    """Counts are summed over the draws, the largest error is the largest of them."""
    for name in _SUMS:
        try:
            stated, each = whole(document, *_PLACE, name), [whole(draw, name) for draw in items(document, *_DRAWS)]
        except Absent:
            continue
        if stated != sum(each):
            yield error("totals", f"{name} is {shown(stated)}, and the draws sum to {shown(sum(each))}", (*_PLACE, name))
    try:
        largest, errors = number(document, *_PLACE, "max_abs_error"), [number(draw, "max_abs_error") for draw in items(document, *_DRAWS)]
    except Absent:
        return
    if errors and largest != max(errors):
        yield error("totals", f"max_abs_error is {shown(largest)}, and the draws have {shown(max(errors))}", (*_PLACE, "max_abs_error"))


def _parts(document: Node) -> Iterator[tuple[Path, Node]]:
    """The draws, and `validation` itself, which holds the same fields."""
    yield from objects(document, *_DRAWS)
    try:
        whole_report = at(document, *_PLACE)
    except Absent:
        return
    if isinstance(whole_report, dict):
        yield _PLACE, whole_report


def labels(document: Node) -> Iterator[Finding]:
    """Counts of labels that can be: none above the total, and as many right ones as the frozen predictions where all agree."""
    for place, node in _parts(document):
        yield from _not_above_total(place, node)
        try:
            total, agree = whole(node, "total"), whole(node, _AGREES)
            gpu, cpu = whole(node, "gpu_correct"), whole(node, "cpu_correct")
        except Absent:
            continue
        if abs(gpu - cpu) > max(total - agree, 0):
            differ = shown(max(total - agree, 0))
            why = f"gpu_correct is {shown(gpu)} and cpu_correct {shown(cpu)}, further apart than the {differ} labels that differ"
            yield error("labels", why, (*place, "gpu_correct"))


def _not_above_total(place: Path, node: Node) -> Iterator[Finding]:
    for name in (_AGREES, "gpu_correct", "cpu_correct", "ties"):
        try:
            stated, total = whole(node, name), whole(node, "total")
        except Absent:
            continue
        if stated > total:
            yield error("labels", f"{name} is {shown(stated)}, more than the total {shown(total)}", (*place, name))


def mismatches(document: Node) -> Iterator[Finding]:
    """Every label that differs from the frozen prediction is named, once."""
    for place, draw in objects(document, *_DRAWS):
        try:
            listed = items(draw, "mismatching_prediction_indices")
            indices = [whole(listed, position) for position in range(len(listed))]
            total, agree = whole(draw, "total"), whole(draw, _AGREES)
        except Absent:
            continue
        here = (*place, "mismatching_prediction_indices")
        if len(indices) != total - agree:
            why = f"{len(indices)} mismatching predictions are listed, and total - {_AGREES} is {shown(total - agree)}"
            yield error("mismatches", why, here)
        elif len(set(indices)) < len(indices):
            yield error("mismatches", "a mismatching prediction is listed twice", here)
        elif indices and max(indices) >= total:
            yield error("mismatches", f"prediction {shown(max(indices))} is listed, and there are {shown(total)}, from 0", here)


def values(document: Node) -> Iterator[Finding]:
    """Errors that can be: mean <= max, violations <= elements, none where everything agrees."""
    for place, node in _parts(document):
        try:
            mean, largest = number(node, "mean_abs_error"), number(node, "max_abs_error")
        except Absent:
            pass
        else:
            if float(mean) > float(largest) * (1 + RELATIVE):
                why = f"mean_abs_error is {shown(mean)}, above max_abs_error {shown(largest)}"
                yield error("values", why, (*place, "mean_abs_error"))
        try:
            violations, elements = whole(node, "violations"), whole(node, "elements")
        except Absent:
            continue
        if violations > elements:
            yield error("values", f"violations is {shown(violations)}, more than the {shown(elements)} elements", (*place, "violations"))


def flags(document: Node) -> Iterator[Finding]:
    """Every all_* flag is all() of its parts."""
    try:
        stated = flag(document, *_PLACE, _ALL_REPLAYS)
        replays = [_flags(draw) for draw in items(document, *_DRAWS)]
    except Absent:
        pass
    else:
        if stated != all(map(all, replays)):
            other = "every replay of every draw does" if not stated else "a replay of a draw does not"
            yield error("flags", f"{_ALL_REPLAYS} is {shown(stated)}, and {other}", (*_PLACE, _ALL_REPLAYS))
    try:
        stated = flag(document, *_PLACE, _ALL_DRAWS)
        checked = {whole(draw, "draw") for draw in items(document, *_DRAWS)}
        listed = {whole(draw, "draw") for draw in items(document, "provenance", "payload_manifest", "draws")}
    except Absent:
        return
    if stated != (listed <= checked):
        other = f"{len(listed - checked)} draws of the manifest are not among the draws" if stated else "every draw of the manifest is"
        yield error("flags", f"{_ALL_DRAWS} is {shown(stated)}, and {other}", (*_PLACE, _ALL_DRAWS))


def _flags(draw: object) -> list[bool]:
    listed = items(draw, _REPLAYS)
    return [flag(listed, position) for position in range(len(listed))]


def passed(document: Node) -> Iterator[Finding]:
    """It passed exactly where all agrees and all replays are equal. A tie excuses one label, which then need not agree."""
    try:
        stated = flag(document, *_PLACE, "passed")
    except Absent:
        return
    place = (*_PLACE, "passed")
    why = next(_reasons_against(document), None)
    if stated and why is not None:
        yield error("passed", f"passed is true, and {why}", place)
    elif not stated and why is None and _is_told(document) and not _ties(document):
        yield error("passed", "passed is false, and everything agrees", place)


def _reasons_against(document: Node) -> Iterator[str]:
    whole_report = at(document, *_PLACE)
    try:
        differ, excused = whole(whole_report, "total") - whole(whole_report, _AGREES), _ties(document)
        if differ > excused:
            yield f"{shown(differ)} labels differ from the frozen predictions" + (f", {shown(excused)} of them ties" if excused else "")
    except Absent:
        pass
    try:
        if violations := whole(whole_report, "violations"):
            yield f"violations is {shown(violations)}"
    except Absent:
        pass
    if not all(_replays(document)):
        yield "not every replay equals its eager call"


def _replays(document: Node) -> Iterator[bool]:
    """What is said of replays: of all together, and where that is missing, as it may be where values are compared, of each."""
    try:
        yield flag(document, *_PLACE, _ALL_REPLAYS)
        return
    except Absent:
        pass
    for _, draw in objects(document, *_DRAWS):
        try:
            yield from _flags(draw)
        except Absent:
            continue


def _is_told(document: Node) -> bool:
    """Whether all that `passed` rests on is there."""
    found = at(document, *_PLACE)
    compares_labels = "total" in found and _AGREES in found and _ALL_REPLAYS in found
    return compares_labels or "violations" in found


def _ties(document: Node) -> int:
    count = 0
    for _, draw in objects(document, *_DRAWS):
        try:
            count += whole(draw, "ties")
        except Absent:
            continue
    return count


VALIDATION_RULES = (
    energy_rule("totals", totals, "totals are the sums over the draws"),
    energy_rule("labels", labels, "counts of labels fit into the total; gpu_correct and cpu_correct differ by no more than the labels do"),
    energy_rule("mismatches", mismatches, "as many mismatching predictions are listed as total - agreement, each once"),
    energy_rule("values", values, "mean_abs_error <= max_abs_error, violations <= elements"),
    energy_rule("flags", flags, "every all_* flag says what all of its parts say"),
    energy_rule("passed", passed, "passed is true exactly where everything agrees and all replays are equal"),
)
