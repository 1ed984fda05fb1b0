"""The rules for comparison reports: each sees its faults, alone, at their place; none speaks of a valid report; none ever raises."""

import copy
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison_mutants import INCOMPLETE, MUTANTS, OURS, RECORDED, Mutant
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mkframe.stats import event_step_ms
from mkframe.validate import RULES, Finding, Severity, check_document, validate
from mkframe.validate.block_rules import BLOCK_RULES
from mkframe.validate.comparison_rules import COMPARISON_RULES, step_of
from mkframe.validate.rule import Subject
from mkframe.validate.sentence_rules import SENTENCE_RULES
from mkframe.validate.summary_rules import SUMMARY_RULES
from mkframe.validate.verdict_rules import VERDICT_RULES

CONTENT = (*SUMMARY_RULES, *COMPARISON_RULES, *BLOCK_RULES, *SENTENCE_RULES, *VERDICT_RULES)


def new(mutant: Mutant, without: tuple[str, ...] = ()) -> list[Finding]:
    """What a mutant has and its base has not."""
    before = Counter((finding.rule, finding.pointer) for finding in check_document(mutant.base).findings)
    found = []
    for finding in check_document(mutant.document, without=without).findings:
        if before[finding.rule, finding.pointer]:
            before[finding.rule, finding.pointer] -= 1
        else:
            found.append(finding)
    return found


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.rule}: {mutant.name}")
def test_a_fault_is_found_by_its_rule_at_its_place_and_by_no_other(mutant: Mutant) -> None:
    found = [finding for finding in new(mutant) if finding.rule not in mutant.besides]
    assert {finding.rule for finding in found} == {mutant.rule}
    places = [finding.pointer for finding in found]
    if mutant.pointer != "any":
        assert places == [mutant.pointer]
    assert len(set(places)) == len(places)
    assert all(finding.message and "\n" not in finding.message for finding in found)
    rest = new(mutant, without=(mutant.rule,))
    assert [finding for finding in rest if finding.rule not in mutant.besides] == []


def test_every_rule_has_a_mutant_that_it_alone_sees_and_only_its_severities() -> None:
    assert {mutant.rule for mutant in MUTANTS} == {rule.id for rule in CONTENT}
    severities = {rule.id: set(rule.severities) for rule in CONTENT}
    seen: dict[str, set[Severity]] = {}
    for mutant in MUTANTS:
        seen.setdefault(mutant.rule, set()).update(finding.severity for finding in new(mutant) if finding.rule == mutant.rule)
    assert seen == severities


def test_rules_have_names_of_their_own() -> None:
    ids = [(rule.format, rule.id) for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9-]+", rule.id) and rule.says and "\n" not in rule.says for rule in CONTENT)


def test_the_bases_are_valid() -> None:
    assert check_document(OURS).findings == check_document(INCOMPLETE).findings == ()


def test_the_recorded_report_has_five_warnings_and_nothing_else(root: Path) -> None:
    result = validate(root / "tests/data/valid/residual-mlp-rtx3090.json")
    assert result.exit_code == 0
    assert {(finding.severity, finding.rule) for finding in result.findings} == {(Severity.WARNING, "timer-step")}
    assert [finding.pointer for finding in result.findings] == [f"/development/{index}" for index in (0, 2, 3)] + [
        f"/assessment/{index}" for index in (0, 2)
    ]
    assert sum(int(finding.message.split()[0]) for finding in result.findings) == 14
    assert all("1.024 us" in finding.message for finding in result.findings)


def test_24_means_below_their_median_are_no_fault() -> None:
    summaries = [
        summary
        for name in ("development", "assessment")
        for case in RECORDED[name]
        for result in case["engines"].values()
        for summary in (result["stream_summary"], result["host_summary"])
    ]
    assert (len(summaries), sum(summary["mean_ms"] < summary["p50_ms"] for summary in summaries)) == (144, 24)


# --- formulas, against references of their own


def summary_of(samples: list[float]) -> dict[str, Any]:
    """The six figures, from their definitions."""
    ordered, n = sorted(samples), len(samples)
    h = 0.95 * (n - 1)
    low = math.floor(h)
    p95 = ordered[low] + (h - low) * (ordered[min(low + 1, n - 1)] - ordered[low])
    return {
        "count": n,
        "p50_ms": (ordered[(n - 1) // 2] + ordered[n // 2]) / 2,
        "p95_ms": min(p95, ordered[-1]),
        "min_ms": ordered[0],
        "max_ms": ordered[-1],
        "mean_ms": math.fsum(ordered) / n,
    }


def report_of(streams: list[list[float]], late_ms: float = 0.01) -> dict[str, Any]:
    """Somebody's report with one engine for each list of samples, on one shape."""
    engines = {
        f"engine-{index}": {
            "passed": True,
            "replay_changed_input": True,
            "stream_summary": summary_of(stream),
            "host_summary": summary_of([value + late_ms for value in stream]),
        }
        for index, stream in enumerate(streams)
    }
    return {
        "recorded_on": "2026-10-05",
        "device": "a device",
        "precision": "FP16 everywhere",
        "packages": {},
        "rounds": 1,
        "samples_per_round": len(streams[0]),
        "source_sha256": {"a.py": "0" * 64},
        "source_commit": "0" * 40,
        "limitations": [],
        "mine": [{"shape": {"rows": 4}, "engines": engines}],
    }


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60))
def test_no_samples_break_a_law_of_summaries(samples: list[float]) -> None:
    assert [finding for finding in check_document(report_of([samples])).findings if finding.severity is Severity.ERROR] == []


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_the_mean_is_held_between_what_halves_of_the_samples_allow(samples: list[float], share: float) -> None:
    """By its definition: half of the samples at min or at p50, 45 % at p50 or at p95, 5 % at p95 or at max."""
    made = report_of([samples])
    found = made["mine"][0]["engines"]["engine-0"]["stream_summary"]
    found["mean_ms"] = mean = found["min_ms"] + share * (found["max_ms"] - found["min_ms"])
    points = [found[name] for name in ("min_ms", "p50_ms", "p95_ms", "max_ms")]
    low, high = (sum(part * value for part, value in zip((0.5, 0.45, 0.05), points[start:], strict=False)) for start in (0, 1))
    assume(not low * 0.998 <= mean < low)
    assume(not high < mean <= high * 1.002)
    told = [finding.rule for finding in check_document(made).findings if finding.rule == "mean"]
    assert bool(told) == (not low <= mean <= high)


@given(
    st.sampled_from((32e-6, 64e-6, 512e-6, 1.024e-3, 2.048e-3)),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.lists(st.floats(0.001, 0.05), max_size=10),
)
def test_the_step_is_told_from_medians_as_it_is_from_samples(step_ms: float, on: list[int], off: list[float]) -> None:
    medians = [step_ms * count for count in on] + off
    assert step_of(Subject(document=report_of([[value] for value in medians]))) == event_step_ms(np.array(medians))


@given(st.lists(st.integers(1, 60), min_size=8, max_size=14))
def test_pairs_nearer_than_a_step_are_counted(counts: list[int]) -> None:
    medians = [0.1 * 32e-6 + 1.024e-3 * count for count in counts] + [1.0 + 1.024e-3 * count for count in range(30, 60)]
    made = report_of([[value] for value in medians])
    step_ms = step_of(Subject(document=made))
    pairs = 0
    if step_ms is not None:
        pairs = sum(abs(one - other) < step_ms - 1e-6 for index, one in enumerate(medians) for other in medians[:index])
    told = [finding.message for finding in check_document(made).findings if finding.rule == "timer-step"]
    assert [int(text.split()[0]) for text in told] == ([pairs] if pairs else [])


@pytest.mark.parametrize(("timing", "expected"), [(None, 1), ("per_call", 1), ("replay", 1), ("unrolled", 0), ("cold", 0), ("mine", 0)])
def test_the_host_clock_stands_outside_where_times_are_no_slopes(timing: str | None, expected: int) -> None:
    made = report_of([[1.0, 2.0]], late_ms=-0.1) | ({} if timing is None else {"timing": timing})
    assert [finding.rule for finding in check_document(made).findings].count("host-stream") == expected


def test_a_depth_of_one_may_be_left_out() -> None:
    made = report_of([[1.0, 2.0]])
    made["mine"].append(copy.deepcopy(made["mine"][0]))
    made["mine"][1]["shape"]["depth"] = 1
    assert [(finding.rule, finding.pointer) for finding in check_document(made).findings] == [("duplicate-shape", "/mine/1/shape")]
    made["mine"][1]["shape"]["depth"] = 2
    assert check_document(made).findings == ()


@pytest.mark.parametrize(
    ("precision", "expected"),
    [("FP16", 0), ("FP16: half in", 0), ("FP16 input", 0), ("FP16_ACC32 input", 1), ("FP16-mixed", 1), ("FP161", 1), ("fp16 input", 1)],
)
def test_the_precision_begins_with_the_contract_and_not_with_a_longer_one(precision: str, expected: int) -> None:
    assert OURS["mkframe"]["precision"]["id"] == "fp16"
    found = check_document(OURS | {"precision": precision}).findings
    assert [finding.rule for finding in found].count("stated-twice") == expected


def test_rates_are_found_where_a_depth_of_one_is_left_out_in_one_place() -> None:
    made = copy.deepcopy(OURS)
    cell = next(cell for cell in made["mkframe"]["cells"] if cell["outcome"] == "passed")
    case = next(case for case in made[cell["set"]] if case["shape"] == cell["shape"])
    seconds = case["engines"][cell["engine"]]["stream_summary"]["p50_ms"] / 1e3
    cost = cell["cost"]
    cell["rates"] = {f"{name}_per_s": cost[name] / seconds for name in ("bytes", "flops")} | dict.fromkeys(
        ("compute_share", "memory_share", "read_share")
    )
    case["shape"] = case["shape"] | {"depth": 1}
    assert check_document(made).findings == ()
    cell["rates"]["bytes_per_s"] *= 2
    assert [finding.rule for finding in check_document(made).findings] == ["rates"]


@pytest.mark.parametrize("value", [3, None, [], "a"])
def test_a_list_that_is_no_shape_set_may_stand_in_a_report_of_ours(value: Any) -> None:
    """It is an unknown key, and no rule takes it for results."""
    findings = check_document(OURS | {"plots": [{"engines": value}]}).findings
    assert [(finding.rule, finding.pointer) for finding in findings] == [("unknown-key", "/plots")]


# --- reports of every kind


@st.composite
def valid_reports(draw: st.DrawFn) -> dict[str, Any]:
    """A report that varies what may vary: rounds, samples, sets, shapes, engines, failures, protocols and optional parts."""
    rounds, per_round = draw(st.integers(1, 7)), draw(st.integers(1, 12))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    timing = draw(st.sampled_from((None, "per_call", "replay", "unrolled", "cold", "mine")))
    sets = draw(st.lists(st.sampled_from(("development", "assessment", "decode", "mine")), min_size=1, max_size=3, unique=True))
    engines = draw(st.lists(st.text("abc-", min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
    axes = draw(st.lists(st.sampled_from(("rows", "channels", "hidden", "batch", "depth")), min_size=1, max_size=3, unique=True))
    sizes = draw(st.lists(st.tuples(*[st.integers(2, 4096)] * len(axes)), min_size=len(sets), max_size=6, unique=True))

    def result() -> dict[str, Any]:
        if draw(st.integers(0, 5)) == 0:
            return {"passed": False, "replay_changed_input": False}
        scale = 10 ** generator.uniform(-3, 2)
        stream = (scale * generator.lognormal(0, draw(st.sampled_from((0.0, 0.01, 1.0))), rounds * per_round)).tolist()
        late = [value + scale * float(generator.exponential()) for value in stream]
        if timing in ("unrolled", "cold", "mine") and draw(st.booleans()):
            late = stream[::-1]
        return {
            "passed": True,
            "replay_changed_input": draw(st.booleans()),
            "stream_summary": summary_of(stream),
            "host_summary": summary_of(late),
        }

    made: dict[str, Any] = {
        "recorded_on": draw(st.dates()).isoformat(),
        "device": draw(st.text(min_size=1)),
        "precision": draw(st.text(min_size=1)),
        "packages": draw(st.dictionaries(st.text(), st.text(min_size=1), max_size=3)),
        "rounds": rounds,
        "samples_per_round": per_round,
        "source_sha256": {"a.py": "0" * 64},
        "source_commit": "1" * 40,
        "limitations": draw(st.lists(st.text(min_size=1), max_size=3)),
    }
    for index, name in enumerate(sets):
        mine = sizes[index :: len(sets)]
        made[name] = [{"shape": dict(zip(axes, size, strict=True)), "engines": {engine: result() for engine in engines}} for size in mine]
    if timing is not None:
        made["timing"] = timing
    if draw(st.booleans()):
        made["sanitizers"] = draw(st.sampled_from(("not run", {"memcheck": "zero errors", "count": 0, "versions": {"tool": "1"}})))
    if draw(st.booleans()):
        output = {"passed": True, "max_abs_error": 1e-6, "mean_abs_error": 1e-7, "violations": 0, "elements": 5}
        failed = {"passed": False, "max_abs_error": 1.0, "mean_abs_error": 1.0, "violations": 5, "elements": 5, "rtol": 0, "atol": 1}
        made["compiler"] = {"a_gpu_output": output, "b_gpu_output": failed, "notes": ["free", 1], "source_commit": None}
    return made


@settings(max_examples=200)
@given(valid_reports())
def test_a_valid_report_has_no_finding(made: dict[str, Any]) -> None:
    assert check_document(made).findings == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5) | st.just(2**70),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("shape", "engines", "rows", "x", "set")) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


FEW: dict[str, Any] = RECORDED | {name: RECORDED[name][:2] for name in ("development", "assessment")}
BASES = {name: (base, list(places(base))) for name, base in (("recorded", FEW), ("ours", OURS), ("incomplete", INCOMPLETE))}


def _one_of_each(base: Any) -> list[tuple[Any, ...]]:
    """A place of each kind: places that differ in indices alone count once."""
    kinds = {
        tuple("#" if isinstance(key, int) else key for key in path): path for path in places(base) if path[:2] != ("mkframe", "config")
    }
    return list(kinds.values())


@pytest.mark.parametrize("value", [-7, "\x01", None])
@pytest.mark.parametrize("name", ["ours", "recorded"])
def test_what_breaks_the_schema_is_told_by_the_schema_alone(name: str, value: Any) -> None:
    base, _ = BASES[name]
    broken = 0
    for path in _one_of_each(base):
        made = copy.deepcopy(base)
        node: Any = made
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value
        errors = [finding for finding in check_document(made).findings if finding.severity is Severity.ERROR]
        if any(finding.rule == "schema" for finding in errors):
            broken += 1
            assert {finding.rule for finding in errors} == {"schema"}, (path, errors)
    assert broken > 50


@settings(max_examples=150)
@given(data=st.data(), name=st.sampled_from(sorted(BASES)))
def test_no_rule_raises_whatever_a_report_holds(data: st.DataObject, name: str) -> None:
    base, known = BASES[name]
    made = copy.deepcopy(base)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(known))
        node: Any = made
        try:
            for key in path[:-1]:
                node = node[key]
            if data.draw(st.booleans()):
                node[path[-1]] = data.draw(JSON)
            else:
                del node[path[-1]]
        except (KeyError, IndexError, TypeError):  # an earlier change has taken the place away
            continue
    subject = Subject(document=made, strict=True)
    for rule in (rule for rule in RULES if rule.format == "comparison" and not rule.needs_schema):
        for finding in rule.check(subject):
            assert finding.severity in rule.severities
            json.dumps(finding.message)
    check_document(made, strict=True)
    check_document(made, without={"schema"})


@given(JSON)
def test_no_rule_raises_on_any_object(value: Any) -> None:
    for made in ({"samples_per_round": value, "development": value, "mkframe": value}, {"mkframe": {"cells": value, "verdicts": value}}):
        for rule in (rule for rule in CONTENT if not rule.needs_schema):
            list(rule.check(Subject(document=made)))
