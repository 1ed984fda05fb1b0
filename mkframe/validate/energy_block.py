"""What our own block says of energy and times: it follows from the rounds, and contradicts nothing."""

from collections.abc import Iterator

from mkframe.energy_budget import EnergyVerdict, verdict
from mkframe.validate.energy_figures import REFERENCE_PASSED
from mkframe.validate.energy_parts import (
    RELATIVE,
    Absent,
    Node,
    Path,
    at,
    energy_rule,
    has_rounds,
    held_against,
    maybe,
    number,
    objects,
    protocol,
    text,
    whole,
)
from mkframe.validate.energy_view import EnergyReport, view_rule
from mkframe.validate.finding import Finding, error, shown
from mkframe.validate.summary_rules import mean_range

_ENERGY: Path = ("mkframe", "energy")
_TIMING: Path = ("mkframe", "timing")
_DERIVED = ("verdict", "net_mj", "u_mj", "sham_mj", "reference", "rounds")
_SLACK = 1e-3
_PACED = ("replay", "per_call")
"""Protocols in which the host's clock stands around the device's; slopes have no such order."""


def block_figures(report: EnergyReport) -> Iterator[Finding]:
    """net_mj is the mean of the rounds; u_mj follows from the error budget where the file says how finely the counter tells time."""
    found = report.figures
    if found is None:
        return
    for name, rebuilt, words in (
        ("net_mj", found.budget.net_mj, "the mean adjusted_mj of the rounds"),
        (
            "u_mj",
            found.budget.u_mj if found.meter and found.periods is None else None,
            "the uncertainty that the rounds and the counter give",
        ),
    ):
        try:
            stated = number(report.document, *_ENERGY, name)
        except Absent:
            continue
        if rebuilt is not None:
            slack = RELATIVE * max(abs(run.power_w * run.run_s) * 1000 / run.repeats for run in found.runs)
            yield from held_against("block-figures", name, stated, rebuilt, words, (*_ENERGY, name), slack)


def block_verdict(document: Node) -> Iterator[Finding]:
    """The verdict follows from net energy, uncertainty, sham and reference. A fault of the meter may have reasons of its own."""
    try:
        stated, net = text(document, *_ENERGY, "verdict"), float(number(document, *_ENERGY, "net_mj"))
    except Absent:
        return
    if stated == EnergyVerdict.METER_FAULT or stated not in list(EnergyVerdict):
        return
    reference = maybe(document, *_ENERGY, "reference")
    passed = reference in REFERENCE_PASSED if isinstance(reference, str) else None
    expected = verdict(net, _float(document, "u_mj"), _float(document, "sham_mj"), reference_passed=passed)
    if stated != expected:
        why = (
            f"verdict is {stated}, and with net_mj {shown(net)}, u_mj {shown(maybe(document, *_ENERGY, 'u_mj'))}, "
            f"sham_mj {shown(maybe(document, *_ENERGY, 'sham_mj'))}, reference {shown(reference)} it is {expected}"
        )
        yield error("block-verdict", why, (*_ENERGY, "verdict"))


def _float(document: Node, name: str) -> float | None:
    try:
        return float(number(document, *_ENERGY, name))
    except Absent:
        return None


def block_status(document: Node) -> Iterator[Finding]:
    """With the protocol none nothing was measured, and every derived field is null; without it there are rounds."""
    name = protocol(document)
    status = maybe(document, *_ENERGY, "status")
    if name != "none":
        if status == "not_measured":
            yield error("block-status", f"status is not_measured, and the protocol is {shown(name)}", (*_ENERGY, "status"))
        return
    if isinstance(status, str) and status != "not_measured":
        yield error("block-status", f"status is {shown(status)}, must be not_measured with the protocol none", (*_ENERGY, "status"))
    for field in _DERIVED:
        value = maybe(document, *_ENERGY, field)
        if value is not None:
            yield error("block-status", f"{field} is {shown(value)}, must be null with the protocol none", (*_ENERGY, field))
    if has_rounds(document):
        yield error("block-status", "the protocol is none, and there are rounds", (*_ENERGY, "protocol"))


def invalid_rounds(document: Node) -> Iterator[Finding]:
    """A round that cannot count is not among those that do."""
    counted = set()
    for _, one in objects(document, "rounds"):
        try:
            counted.add(whole(one, "round"))
        except Absent:
            continue
    for place, one in objects(document, "mkframe", "invalid_rounds"):
        try:
            name = whole(one, "round")
        except Absent:
            continue
        if name in counted:
            yield error("invalid-rounds", f"round {shown(name)} is said to be invalid, and stands among the rounds", (*place, "round"))


def block_timing(document: Node) -> Iterator[Finding]:
    """Times of the block: as many samples as rounds hold, quantiles in order, a mean that they allow, host around stream."""
    for name in ("stream_summary", "host_summary"):
        try:
            count = whole(document, *_TIMING, name, "count")
            expected = whole(document, *_TIMING, "rounds") * whole(document, *_TIMING, "samples_per_round")
        except Absent:
            pass
        else:
            if count != expected:
                why = f"count is {shown(count)}, and rounds x samples_per_round is {shown(expected)}"
                yield error("block-timing", why, (*_TIMING, name, "count"))
        yield from _ordered((*_TIMING, name), maybe(document, *_TIMING, name))
    yield from _host_around_stream(document)


def _ordered(place: Path, summary: object) -> Iterator[Finding]:
    try:
        low, p50, p95, high, mean = (float(number(summary, f"{name}_ms")) for name in ("min", "p50", "p95", "max", "mean"))
    except Absent:
        return
    if not low <= p50 <= p95 <= high:
        yield error("block-timing", "min <= p50 <= p95 <= max does not hold", place)
        return
    least, most = mean_range(low, p50, p95, high)
    # A mean of equal numbers may lie a rounding outside of them.
    if not max(low * (1 - RELATIVE), least * (1 - _SLACK)) <= mean <= min(high * (1 + RELATIVE), most * (1 + _SLACK)):
        why = f"mean_ms is {shown(mean)}, and the quantiles allow {shown(least)} to {shown(most)}"
        yield error("block-timing", why, (*place, "mean_ms"))


def _host_around_stream(document: Node) -> Iterator[Finding]:
    if maybe(document, *_TIMING, "protocol") not in _PACED:
        return
    for name in ("min_ms", "p50_ms", "p95_ms", "max_ms", "mean_ms"):
        try:
            host, stream = (float(number(at(document, *_TIMING, clock), name)) for clock in ("host_summary", "stream_summary"))
        except Absent:
            continue
        if host < stream:
            why = f"{name} of the host is {shown(host)}, below that of the stream {shown(stream)}"
            yield error("block-timing", why, (*_TIMING, "host_summary", name))


BLOCK_RULES = (
    view_rule("block-figures", block_figures, "net_mj and u_mj of our block follow from the rounds"),
    energy_rule("block-verdict", block_verdict, "the verdict of our block follows from its figures"),
    energy_rule("block-status", block_status, "with the protocol none nothing is derived, and nothing was measured"),
    energy_rule("invalid-rounds", invalid_rounds, "a round that is said to be invalid does not count"),
    energy_rule("block-timing", block_timing, "counts, order and means of the times of our block can be"),
)
