"""What a report of ours is held to beyond the planted faults: shapes written in other ways, long shapes, verdicts, floors, configuration."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from mkframe.validate import check_document
from report_mutants_own import with_rates

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
