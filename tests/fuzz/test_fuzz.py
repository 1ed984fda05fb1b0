"""The fuzz target within the suite: arbitrary bytes, damaged reports, and what the fuzzers have found (docs/fuzzing.md)."""

import copy
import json
from random import Random
from typing import Any

import pytest
from damage import damaged, places, written
from fuzz_target import check, leads_somewhere
from hypothesis import given, settings
from hypothesis import strategies as st
from probe_fakes import FakeGpu
from seeds import seeds

from mkframe.probe.session import probe_gpu

SEEDS = seeds()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_arbitrary_bytes(data: bytes) -> None:
    check(data)


@given(st.binary(max_size=40), st.sampled_from(sorted(SEEDS)), st.floats(0, 1))
def test_reports_with_bytes_written_over(junk: bytes, name: str, where: float) -> None:
    data = json.dumps(SEEDS[name]).encode()
    at = int(where * len(data))
    check(data[:at] + junk + data[at + len(junk) :])


@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 2**32))
@settings(max_examples=300)
def test_damaged_reports(name: str, seed: int) -> None:
    random = Random(seed)
    check(written(damaged(SEEDS[name], random), random))


@given(st.sampled_from(["development", "mkframe", "compiler", "validation", "rounds", "summary", "provenance", "hardware", "x"]), JSON)
@settings(max_examples=300)
def test_anything_where_a_report_has_something(key: str, value: Any) -> None:
    """Whole blocks replaced: rules must take any JSON at the place where they look."""
    for name in ("own", "energy"):
        text = json.dumps(SEEDS[name] | {key: value}, ensure_ascii=True)
        check(text.encode())


def test_every_value_replaced_by_every_type() -> None:
    """One at a time, at every place of the small reports: no rule takes for granted what the schema alone demands."""
    for name in ("comparison", "energy"):
        count = len(places(SEEDS[name]))
        for index in range(0, count, 7):
            for value in (None, True, -1, 1e300, "x", [], {}, [None], {"": 0}):
                document = copy.deepcopy(SEEDS[name])
                container, key = places(document)[index]
                container[key] = value
                check(json.dumps(document).encode())


# What atheris has found -----------------------------------------------------------------------------------------------------------


def test_a_finding_names_a_rule_that_exists() -> None:
    """A rate of L2 that no time gives was found under the name of a rule that was in no list."""
    gpu = FakeGpu()
    card = probe_gpu(gpu, rounds=1, now=gpu.now).document()
    card["l2"][0]["rate"]["max_bytes_per_s"] *= 2
    assert "l2" in {finding.rule for finding in check(json.dumps(card).encode()).findings}


@pytest.mark.parametrize("count", [10**305, 10**308, 2**1000], ids=["1e305", "1e308", "2^1000"])
def test_a_count_may_be_as_large_as_a_number_can_be(count: int) -> None:
    """Twelve times a number of processes was too large for a float."""
    met = 0
    for seed in SEEDS.values():
        timing = seed.get("mkframe", {}).get("timing", {})
        for key in [key for key, value in timing.items() if type(value) is int]:
            document = copy.deepcopy(seed)
            document["mkframe"]["timing"] |= {"timer_step_ms": 3.2e-05, key: count}
            check(json.dumps(document).encode())
            met += 1
    assert met


@pytest.mark.parametrize(
    ("pointer", "there"), [("", True), ("/a~1b/1", True), ("/a~1b/2", False), ("/a~1b/01", False), ("/a", False), ("/c", False)]
)
def test_the_target_knows_where_a_pointer_leads(pointer: str, there: bool) -> None:
    assert leads_somewhere({"a/b": [0, 1], "": 2}, pointer) is there
