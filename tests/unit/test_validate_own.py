"""What a report of ours is held to beyond the planted faults."""

import json
from pathlib import Path
from typing import Any

import pytest
from report_mutants_own import with_rates

from mkframe.validate import check_document

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "outputs" / "published"
Document = dict[str, Any]


def _published(name: str = "residual-mlp-baselines-h200-per-call") -> Document:
    loaded: Document = json.loads((PUBLISHED / name / "report.json").read_text(encoding="utf-8"))
    return loaded


def _errors(document: Document) -> list[tuple[str, str]]:
    return [(found.rule, found.pointer) for found in check_document(document).findings if found.severity == "E"]


# Shapes ---------------------------------------------------------------------------------------------------------------------------


def _with_depth(shape: Document) -> Document:
    return shape | {"depth": 1}


def _as_float(shape: Document) -> Document:
    return {name: float(size) for name, size in shape.items()}


@pytest.mark.parametrize("write", [_with_depth, _as_float])
@pytest.mark.parametrize("where", ["lists", "cells"])
def test_a_shape_written_in_another_way_is_the_same_shape(write: Any, where: str) -> None:
    honest = with_rates(_published(), cold=False)
    impossible = with_rates(_published(), cold=False, peak_flops=1.0)
    for document in (honest, impossible):
        for item in (*document["development"], *document["assessment"]) if where == "lists" else document["mkframe"]["cells"]:
            item["shape"] = write(item["shape"])
    assert _errors(honest) == []
    assert len([rule for rule, _ in _errors(impossible) if rule == "impossible-rate"]) == len(impossible["mkframe"]["cells"])


class _Counted(int):
    """A size that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        _Counted.hashed += 1
        return super().__hash__()


def _hashes(engines: int) -> int:
    """How often a size is hashed where a case has so many engines, and the block one cell."""
    document = _published()
    case = document["development"][0]
    engine, result = next(iter(case["engines"].items()))
    case["shape"] = {"rows": _Counted(3)}
    case["engines"] = {engine: result} | {f"e{index}": result for index in range(engines)}
    document["development"], document["mkframe"]["cells"] = [case], document["mkframe"]["cells"][:1]
    _Counted.hashed = 0
    check_document(document, without={"schema", "samples", "rates", "impossible-rate", "above-measured-peak"})
    return _Counted.hashed


def test_a_shape_is_looked_at_once_for_its_case_and_not_for_each_engine() -> None:
    assert 0 < _hashes(200) == _hashes(2)


# Verdicts -------------------------------------------------------------------------------------------------------------------------


def _one_process(ratio: float, low: float, high: float, word: str, reason: str | None) -> list[tuple[str, str]]:
    """The errors of verdicts where one process measured, and the first loss has this ratio."""
    document = _published()
    block = document["mkframe"]
    block["timing"] |= {"processes": 1, "round_process": [0] * 6}
    block["timing"]["floors"] = [floor for floor in block["timing"]["floors"] if floor["process"] == 0]
    verdict = block["verdicts"][0]
    engines = document[verdict["set"]][verdict["case"]]["engines"]
    p50_ms = engines[verdict["baseline"]]["stream_summary"]["p50_ms"] * ratio
    engines[verdict["engine"]]["stream_summary"]["p50_ms"] = p50_ms
    cell = next(c for c in block["cells"] if (c["set"], c["case"], c["engine"]) == tuple(verdict[k] for k in ("set", "case", "engine")))
    cell["interval"] = {"low_ms": p50_ms * (1 - 1e-4), "high_ms": p50_ms * (1 + 1e-4)}
    base = next(c for c in block["cells"] if (c["set"], c["case"], c["engine"]) == tuple(verdict[k] for k in ("set", "case", "baseline")))
    base["interval"] = {"low_ms": p50_ms / ratio * (1 - 1e-4), "high_ms": p50_ms / ratio * (1 + 1e-4)}
    verdict |= {"verdict": word, "reason": reason, "ratio": ratio, "ratio_low": low, "ratio_high": high}
    return [(rule, pointer) for rule, pointer in _errors(document) if rule == "verdict-word" and pointer.startswith("/mkframe/verdicts/0")]


_ONE = "one process decides nothing below 5 %"


@pytest.mark.parametrize(
    ("ratio", "word", "reason", "holds"),
    [
        (1.2, "SLOWER", None, True),
        (1.2, "UNDECIDED", "the intervals of the medians overlap", False),
        (1.04, "SLOWER", None, False),
        (1.04, "UNDECIDED", _ONE, True),
        (1.2, "UNDECIDED", _ONE, False),
        (1.0005, "SAME", None, False),
    ],
)
def test_one_process_ranks_nothing_below_five_percent(ratio: float, word: str, reason: str | None, holds: bool) -> None:
    assert (_one_process(ratio, ratio * 0.9995, ratio * 1.0005, word, reason) == []) is holds
