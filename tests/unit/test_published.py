"""Published evidence: every report is accepted by our own validator and rebuilt from its samples."""

import json
from pathlib import Path

import numpy as np
import pytest

from mkframe.canonical import digest, sha256
from mkframe.model.checks import all_checks
from mkframe.stats import summarize
from mkframe.validate import validate

ROOT = Path(__file__).resolve().parents[2]
REPORTS = sorted((ROOT / "outputs/published").glob("*/report*.json"))
CARDS = sorted((ROOT / "outputs/published").glob("*/card.json"))


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


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.parent.name)
def test_cells_went_through_the_checks_that_a_journal_must_tell_of(path: Path) -> None:
    document = json.loads(path.read_text())
    timing = document["mkframe"]["config"]["timing"]
    chained = timing["protocol"] == "unrolled" or (timing["protocol"], timing.get("method")) == ("cold", "rotate")
    for cell in document["mkframe"]["cells"]:
        if cell["outcome"] == "passed":
            assert tuple(cell["checks"]) == all_checks("cuda", chained=chained)


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.parent.name)
def test_cards_are_accepted(path: Path) -> None:
    result = validate(path, strict=True)
    assert result.ok, result.findings


def test_measured_peaks_come_from_a_published_card() -> None:
    published = {digest(json.loads(path.read_text())) for path in CARDS}
    stated = {json.loads(path.read_text())["mkframe"]["device"]["peaks"]["measured"]["card_sha256"] for path in REPORTS}
    assert stated <= published
