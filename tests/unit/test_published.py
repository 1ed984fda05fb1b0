"""Published evidence: every report is accepted by our own validator and rebuilt from its samples; the README quotes them truly."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkframe.canonical import sha256
from mkframe.stats import summarize
from mkframe.validate import validate

ROOT = Path(__file__).resolve().parents[2]
REPORTS = sorted((ROOT / "outputs/published").glob("*/report*.json"))
_TABLE = re.compile(r"((?:^\|.*\|\n)+)\nFrom \[(outputs/published/[^\]]+)\]", re.MULTILINE)


def test_there_is_evidence() -> None:
    assert REPORTS


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_accepted_and_clean(path: Path) -> None:
    result = validate(path, strict=True)
    assert result.ok, result.findings
    block = json.loads(path.read_text())["mkframe"]
    assert block["incomplete"] is False
    assert block["environment"]["source_dirty"] is False


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_summaries_follow_from_the_samples(path: Path) -> None:
    document = json.loads(path.read_text())
    block = document["mkframe"]
    file = path.parent / block["samples"]["file"]
    assert sha256(file.read_bytes()) == block["samples"]["sha256"]
    arrays = np.load(file)
    places = {(cell["set"], json.dumps(cell["shape"]), cell["engine"]): cell["case"] for cell in block["cells"]}
    checked = 0
    for name in block["seeds"]:
        for case in document.get(name, []):
            for engine, result in case["engines"].items():
                for clock in ("stream", "host"):
                    if result["passed"]:
                        place = places[name, json.dumps(case["shape"]), engine]
                        summary = summarize(arrays[f"{name}/{place}/{engine}/{clock}_ms"])
                        assert result[f"{clock}_summary"] == {key: getattr(summary, key) for key in summary.__slots__}
                        checked += 1
    assert checked


def _quoted_tables() -> list[tuple[str, str]]:
    return [(table, path) for table, path in _TABLE.findall((ROOT / "README.md").read_text())]


def test_the_readme_quotes_its_reports() -> None:
    tables = _quoted_tables()
    assert tables
    for table, path in tables:
        document: dict[str, Any] = json.loads((ROOT / path).read_text())
        head, _, *rows = [[cell.strip().strip("`") for cell in line.strip("|\n").split("|")] for line in table.strip().splitlines()]
        assert rows
        for row in rows:
            name, shape = row[:2]
            (case,) = [c for c in document[name] if "x".join(map(str, c["shape"].values())) == shape]
            for engine, figure in zip(head[2:], row[2:], strict=True):
                assert figure == f"{case['engines'][engine]['stream_summary']['p50_ms'] * 1e3:.2f}", (path, shape, engine)
