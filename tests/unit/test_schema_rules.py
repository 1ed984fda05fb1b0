"""The schemas alone tell what `validate` demands: who is sent to a place by a finding finds the rule described there, and the formulas
that stand in descriptions rebuild honest reports as they are written.

`x-rules` of a schema lists the rules that its description states. A formula is a code span that begins with `= `, in Python's notation.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from energy_reports import report
from own_mutants import with_rates
from report_generator import comparison_report, energy_report, own_energy_report
from test_validate_mutants import found_in_planted

from mkframe.validate import RULES, Finding
from mkframe.validate.schemas import resolved, schema

FORMATS = ("comparison", "energy")
PUBLISHED = Path(__file__).resolve().parents[2] / "outputs" / "published" / "residual-mlp-baselines-h200-per-call" / "report.json"
Node = dict[str, Any]


@cache
def _root(format: str) -> Node:
    return resolved(schema(format))


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child)


def _stated(format: str) -> list[str]:
    return [rule for node in _nodes(schema(format)) for rule in node.get("x-rules", ())]


@pytest.mark.parametrize("format", FORMATS)
def test_every_rule_is_described_and_nothing_else_is_named(format: str) -> None:
    assert set(_stated(format)) == {rule.id for rule in RULES if rule.format == format}


@pytest.mark.parametrize("format", FORMATS)
def test_a_place_that_names_rules_describes_them(format: str) -> None:
    for node in _nodes(_root(format)):
        if "x-rules" in node:
            assert node["description"]
            assert len(set(node["x-rules"])) == len(node["x-rules"]) > 0


def _below(node: Node, key: str) -> Node:
    """The schema of a key of an object, or of an item."""
    if key in node.get("properties", {}):
        found: Node = node["properties"][key]
    elif any(re.search(pattern, key) for pattern in node.get("patternProperties", {})):
        found = next(below for pattern, below in node["patternProperties"].items() if re.search(pattern, key))
    elif "items" in node:
        found = node["items"]
    else:
        others = node.get("additionalProperties")
        found = others if isinstance(others, dict) else {}
    return found.get("then", found) if "if" in found and "type" not in found else found


def _way(format: str, pointer: str) -> Iterator[Node]:
    """The schemas of the values that lead to a place, the outermost first."""
    node = _root(format)
    yield node
    for token in pointer.split("/")[1:]:
        node = _below(node, token.replace("~1", "/").replace("~0", "~"))
        yield node


def _is_described(format: str, finding: Finding) -> bool:
    return any(finding.rule in node.get("x-rules", ()) for node in _way(format, finding.pointer))


def test_a_finding_sends_its_reader_to_a_place_that_states_the_rule() -> None:
    """Every finding in every planted fault, whatever its severity."""
    seen, lost = set(), set()
    for mutant, findings in found_in_planted():
        format = "energy" if "validation" in mutant.document else "comparison"
        for finding in findings:
            seen.add((format, finding.rule))
            if not _is_described(format, finding):
                lost.add((format, finding.rule, re.sub(r"\d+", "0", finding.pointer)))
    assert lost == set()
    assert len(seen) > 60


def test_a_rule_that_is_described_somewhere_else_is_missed() -> None:
    wrong = Finding(severity=RULES[0].severities[0], rule="count", pointer="/development/0/engines/a/stream_summary/p50_ms", message="")
    assert not _is_described("comparison", wrong)


# --- formulas


def _formulas(format: str, *path: str) -> list[str]:
    """The formulas in the description of a place, given by keys; `[]` is an item, `*` any key."""
    node = _root(format)
    for key in path:
        node = _below(node, key)
    return re.findall(r"`= ([^`]+)`", node["description"])


def _evaluated(formula: str, **values: Any) -> Any:
    """Arithmetic on the names that the place itself explains."""
    return eval(formula, {"__builtins__": {}}, values)


def _exactly(stated: float | None, rebuilt: float, slack: float = 0.0) -> bool:
    return stated is not None and math.isclose(stated, rebuilt, rel_tol=1e-12, abs_tol=slack)


def _window(start: Node, end: Node) -> Node:
    return {"E_s": start["energy_mj"], "E_e": end["energy_mj"], "t_s": start["time_s"], "t_e": end["time_s"]}


def _energy_documents() -> Iterator[Node]:
    for seed in range(8):
        yield energy_report(Random(seed))
        yield own_energy_report(Random(seed), on_edges=bool(seed % 2))
        yield report(seed=seed, rounds=1 + seed % 3, edges=seed % 2 == 0)


def test_the_formulas_of_a_round_rebuild_honest_rounds() -> None:
    rebuilt = 0
    for document in _energy_documents():
        energy = document.get("mkframe", {}).get("energy", {})
        on_edges = energy.get("protocol") == "nvml_edge_aligned"
        for index, one in enumerate(document.get("rounds", ())):
            values = {**one, **_window(one["measurement_start"], one["measurement_end"])}
            values |= {"Pb": one["idle_before"]["power_w"], "Pa": one["idle_after"]["power_w"]}
            if on_edges:
                values |= energy["rounds"][index]
            for name in ("wall_ms", "gross_mj", "adjusted_mj"):
                plain, edges = _formulas("energy", "rounds", "[]", name)
                slack = 1e-12 * one["gross_mj"] if name == "adjusted_mj" else 0.0
                assert _exactly(one[name], _evaluated(edges if on_edges else plain, **values), slack), name
                rebuilt += 1
            (power,) = _formulas("energy", "rounds", "[]", "average_power_w")
            assert _exactly(one["average_power_w"], _evaluated(power, **values))
            (idle,) = _formulas("energy", "rounds", "[]", "idle_before", "power_w")
            for name in ("idle_before", "idle_after"):
                window = _window(one[name]["start"], one[name]["end"])
                assert _exactly(one[name]["power_w"], _evaluated(idle, **window))
                assert one[f"{name}_w"] == one[name]["power_w"]
    assert rebuilt > 50


def test_the_formula_of_a_count_counts_samples() -> None:
    (formula,) = _formulas("comparison", "development", "[]", "engines", "*", "stream_summary", "count")
    counted = 0
    for document in map(comparison_report, map(Random, range(40))):
        expected = _evaluated(formula, rounds=document["rounds"], samples_per_round=document["samples_per_round"])
        for case in document.get("development", ()):
            for result in case["engines"].values():
                if result["passed"]:
                    counted += 1
                    assert result["stream_summary"]["count"] == result["host_summary"]["count"] == expected
    assert counted > 5
    (formula,) = _formulas("energy", "mkframe", "timing", "stream_summary", "count")
    timing = own_energy_report(Random(0))["mkframe"]["timing"]
    assert timing["host_summary"]["count"] == _evaluated(formula, **timing)


@pytest.mark.parametrize("cold", [False, True])
def test_the_formulas_of_our_block_rebuild_a_published_report(cold: bool) -> None:
    document = with_rates(json.loads(PUBLISHED.read_text(encoding="utf-8")), cold=cold)
    block = document["mkframe"]
    (formula,) = _formulas("comparison", "mkframe", "timing", "round_process")
    timing = block["timing"]
    assert timing["round_process"] == [_evaluated(formula, r=r, **timing) for r in range(timing["rounds"])]
    medians = {
        (name, json.dumps(case["shape"]), engine): result["stream_summary"]["p50_ms"]
        for name in block["seeds"]
        for case in document.get(name, ())
        for engine, result in case["engines"].items()
        if result["passed"]
    }
    by_case = {}
    for cell in block["cells"]:
        p50_ms = medians.get((cell["set"], json.dumps(cell["shape"]), cell["engine"]))
        by_case[cell["set"], cell["case"], cell["engine"]] = p50_ms
        for name in ("bytes_per_s", "flops_per_s"):
            (formula,) = _formulas("comparison", "mkframe", "cells", "[]", "rates", name)
            assert _exactly(cell["rates"][name], _evaluated(formula, p50_ms=p50_ms, **cell["cost"]))
    (formula,) = _formulas("comparison", "mkframe", "verdicts", "[]", "ratio")
    assert block["verdicts"]
    for verdict in block["verdicts"]:
        one, other = (by_case[verdict["set"], verdict["case"], verdict[name]] for name in ("engine", "baseline"))
        assert _exactly(verdict["ratio"], _evaluated(formula, engine_p50_ms=one, baseline_p50_ms=other))


def test_every_formula_is_held_to_reports_here() -> None:
    """A new one needs a test above."""
    counts = {
        format: sum(len(re.findall(r"`= [^`]+`", node.get("description", ""))) for node in _nodes(schema(format))) for format in FORMATS
    }
    assert counts == {"comparison": 5, "energy": 9}
