"""The laws of summaries: how many samples they are made of, the order of their figures, and what one clock says of another.

Every check takes any JSON object and yields one finding for each fault, not one for each formula that it breaks. Units and formulas:
docs/report.md.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mkframe.validate.comparison_parts import HOST, STREAM, TIMES, above, entries, measured, summaries, table, times, whole
from mkframe.validate.finding import Finding, Severity, error, shown, warning
from mkframe.validate.formats import COMPARISON
from mkframe.validate.rule import Rule, Subject
from mkframe.validate.two_clocks import DRIFT, beyond

_ORDER = (("min_ms", "p50_ms"), ("p50_ms", "p95_ms"), ("p95_ms", "max_ms"), ("min_ms", "mean_ms"), ("mean_ms", "max_ms"))
_MEAN_SLACK = 1e-3
HOST_OUTSIDE = ("per_call", "replay")
"""Protocols whose host clock stands around what the stream clock measures. Slopes (unrolled, cold) are differences of two times."""


def count(subject: Subject) -> Iterator[Finding]:
    """count = rounds x samples_per_round, in every summary of a cell."""
    rounds, samples = whole(subject.document.get("rounds")), whole(subject.document.get("samples_per_round"))
    if rounds is None or samples is None or min(rounds, samples) < 1:
        return
    for path, summary in measured(subject):
        found = whole(summary.get("count"))
        if found is not None and found >= 1 and found != rounds * samples:
            why = f"count is {shown(found)}, and {shown(rounds)} rounds of {shown(samples)} samples are {shown(rounds * samples)}"
            yield error("count", why, (*path, "count"))


def order(subject: Subject) -> Iterator[Finding]:
    """min <= p50 <= p95 <= max and min <= mean <= max."""
    for path, summary in summaries(subject):
        if not _obviously(_in_order, summary) and (wrong := _disorder(times(summary))):
            yield error("order", "; ".join(wrong), path)


def _obviously(holds: Callable[..., bool], *found: dict[str, Any]) -> bool:
    """Whether a law holds for figures as they stand: the quick answer for nearly all. Where they are no figures it does not."""
    try:
        return holds(*found)
    except (TypeError, KeyError, ArithmeticError):
        return False


def _in_order(found: dict[str, Any]) -> bool:
    low, high = found["min_ms"], found["max_ms"]
    return bool(low <= found["p50_ms"] <= found["p95_ms"] <= high and low <= found["mean_ms"] <= high)


def _mean_allowed(found: dict[str, Any]) -> bool:
    least, most = mean_range(found["min_ms"], found["p50_ms"], found["p95_ms"], found["max_ms"])
    return bool(least <= found["mean_ms"] <= most)


def mean_range(low: float, p50: float, p95: float, high: float) -> tuple[float, float]:
    """The least and the largest mean that these quantiles allow (docs/report.md)."""
    return 0.5 * low + 0.45 * p50 + 0.05 * p95, 0.5 * p50 + 0.45 * p95 + 0.05 * high


def _host_outside(stream: dict[str, Any], host: dict[str, Any]) -> bool:
    return all(stream[name] <= host[name] for name in TIMES)


def _disorder(found: Mapping[str, float]) -> list[str]:
    return [
        f"{low} is {shown(found[low])}, above {high}, which is {shown(found[high])}"
        for low, high in _ORDER
        if low in found and high in found and above(found[low], found[high])
    ]


def mean(subject: Subject) -> Iterator[Finding]:
    """At least half of the samples lie from min to p50, 45 % from there to p95, 5 % above, so the mean is at least
    0.5 min + 0.45 p50 + 0.05 p95 and at most 0.5 p50 + 0.45 p95 + 0.05 max. mean >= p50 is no law."""
    for path, summary in summaries(subject):
        if _obviously(_mean_allowed, summary):
            continue
        found = times(summary)
        if len(found) < len(TIMES) or _disorder(found):
            continue
        least, most = mean_range(found["min_ms"], found["p50_ms"], found["p95_ms"], found["max_ms"])
        if found["mean_ms"] < least * (1 - _MEAN_SLACK) or found["mean_ms"] > most * (1 + _MEAN_SLACK):
            why = f"mean_ms is {shown(found['mean_ms'])}, and the quantiles allow {shown(least)} to {shown(most)}"
            yield error("mean", why, (*path, "mean_ms"))


def host_stream(subject: Subject) -> Iterator[Finding]:
    """The host clock starts before and stops after the stream clock: none of its statistics is smaller."""
    if subject.document.get("timing", HOST_OUTSIDE[0]) not in HOST_OUTSIDE:
        return
    for entry in entries(subject):
        summary_of = table(entry.result, STREAM), table(entry.result, HOST)
        if _obviously(_host_outside, *summary_of):
            continue
        stream, host = map(times, summary_of)
        if _disorder(stream) or _disorder(host):
            continue
        wrong = [name for name in stream if name in host and above(stream[name], host[name])]
        if wrong:
            texts = (f"{name} is {shown(host[name])} by the host and {shown(stream[name])} by the stream" for name in wrong)
            if any(beyond(stream[name], host[name]) for name in wrong):
                yield error("host-stream", f"{'; '.join(texts)}: the host's clock stands outside", entry.path)
            else:
                yield warning("host-stream", f"{'; '.join(texts)}: two clocks may differ by {DRIFT * 1e6:.0f} ppm", entry.path)


_BOTH = (Severity.ERROR, Severity.WARNING)
SUMMARY_RULES: tuple[Rule, ...] = tuple(
    Rule(id=id, format=COMPARISON, severities=_BOTH if id == "host-stream" else _BOTH[:1], says=says, check=check)
    for id, check, says in (
        ("count", count, "count of every summary = rounds x samples_per_round"),
        ("order", order, "min <= p50 <= p95 <= max and min <= mean <= max in every summary"),
        ("mean", mean, "every mean is one that its quantiles allow, with a slack of 0.1 %"),
        (
            "host-stream",
            host_stream,
            "host times are no smaller than stream times (per_call, replay, no timing); up to 200 ppm less is a warning",
        ),
    )
)
