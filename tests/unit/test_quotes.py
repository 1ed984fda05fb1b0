"""README and docs/h200.md quote the published reports truly: every table, and every figure in a sentence."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkframe.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "outputs/published"
PAGES = (ROOT / "README.md", ROOT / "docs/h200.md", *sorted((ROOT / "docs/kernels").glob("*.md")))
_TABLE = re.compile(r"((?:^\|.*\|\n)+)(?:\nFrom \[(outputs/published/[^\]]+)\])?", re.MULTILINE)
_LINK = re.compile(r"\[report\.json\]\(\.\./(outputs/published/[^)]+)\)")

Row = list[str]


def report(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PUBLISHED / name / "report.json").read_text())
    return document


def microseconds(document: dict[str, Any], name: str, case: int, engine: str) -> float:
    return float(document[name][case]["engines"][engine]["stream_summary"]["p50_ms"]) * 1e3


def times(head: Row, rows: list[Row], path: str | None) -> None:
    """Shape set, shape, then one engine a column."""
    assert path
    document = json.loads((ROOT / path).read_text())
    for row in rows:
        name, shape = row[:2]
        (case,) = [i for i, c in enumerate(document[name]) if "x".join(map(str, c["shape"].values())) == shape]
        for engine, figure in zip(head[2:], row[2:], strict=True):
            assert figure == f"{microseconds(document, name, case, engine):.2f}", (path, shape, engine)
    assert len(rows) == sum(len(document[name]) for name in document["mkframe"]["seeds"])


def outcome_of_a_prediction(head: Row, rows: list[Row], path: str | None) -> None:
    """Shape, prediction, reason, and what one engine took."""
    assert path
    document = json.loads((ROOT / path).read_text())
    engine = head[-1].split(",")[0].strip("`")
    found = {
        "x".join(map(str, case["shape"].values())): microseconds(document, name, index, engine)
        for name in document["mkframe"]["seeds"]
        for index, case in enumerate(document[name])
    }
    assert {row[0]: row[-1] for row in rows} == {shape: f"{median:.2f}" for shape, median in found.items()}


def footprints(head: Row, rows: list[Row], path: str | None) -> None:
    """One report a row."""
    assert path is None
    for footprint, sets, figure, link in rows:
        (linked,) = _LINK.findall(link)
        document = json.loads((ROOT / linked).read_text())
        assert float(footprint) == document["mkframe"]["config"]["timing"]["footprint"]
        assert int(sets) == document["mkframe"]["cells"][0]["facts"]["sets"]
        assert figure == f"{microseconds(document, 'footprint', 0, head[2].split(',')[0].strip('`')):.2f}"


def outcomes(head: Row, rows: list[Row], path: str | None) -> None:
    assert path
    cells = json.loads((ROOT / path).read_text())["mkframe"]["cells"]
    assert [(engine, outcome) for engine, _, outcome in rows] == [(cell["engine"], cell["outcome"]) for cell in cells]


def places(head: Row, rows: list[Row], path: str | None) -> None:
    assert path
    card = json.loads((ROOT / path).read_text())
    for what, unit, figure, pointer in rows:
        value = card
        for key in pointer.strip("/").split("/"):
            value = value[int(key)] if isinstance(value, list) else value[key]
        assert figure == f"{value / {'us': 1.0, 'TB/s': 1e12}[unit]:.2f}", what


KINDS: dict[str, Callable[[Row, list[Row], str | None], None]] = {
    "shape set": times,
    "rows x channels x hidden": outcome_of_a_prediction,
    "footprint": footprints,
    "engine": outcomes,
    "what": places,
}


def quoted() -> Iterator[tuple[Row, list[Row], str | None]]:
    for page in PAGES:
        for table, path in _TABLE.findall(page.read_text()):
            head, _, *rows = [[cell.strip().strip("`") for cell in line.strip("|\n").split("|")] for line in table.strip().splitlines()]
            if path or head[0] == "footprint":
                yield head, rows, path or None


def test_tables() -> None:
    met = set()
    for head, rows, path in quoted():
        assert rows
        KINDS[head[0]](head, rows, path)
        met.add(head[0])
    assert met == set(KINDS)


def twins(document: dict[str, Any], engine: str) -> list[float]:
    return [cell["twin"]["stream_summary"]["p50_ms"] * 1e3 for cell in document["mkframe"]["cells"] if cell["engine"] == engine]


def medians(document: dict[str, Any], engine: str) -> list[float]:
    return [microseconds(document, cell["set"], cell["case"], engine) for cell in document["mkframe"]["cells"] if cell["engine"] == engine]


def spreads(name: str) -> dict[str, list[float]]:
    """By engine: (highest - lowest) / middle of the processes' medians, a cell each."""
    document = report(name)
    by_engine: dict[str, list[float]] = {}
    process = np.array(document["mkframe"]["timing"]["round_process"])
    with np.load(PUBLISHED / name / document["mkframe"]["samples"]["file"]) as arrays:
        for cell in document["mkframe"]["cells"]:
            samples = arrays[f"{cell['set']}/{cell['case']}/{cell['engine']}/stream_ms"].reshape(len(process), -1)
            found = [float(np.median(samples[process == one])) for one in sorted(set(process))]
            by_engine.setdefault(cell["engine"], []).append((max(found) - min(found)) / float(np.median(found)))
    return by_engine


def floor_range(floor: str, *names: str) -> tuple[float, float]:
    found = [f for name in names for f in report(name)["mkframe"]["timing"]["floors"] if f["name"] == floor and f["clock"] == "stream"]
    medians_us = [f["summary"]["p50_ms"] * 1e3 for f in found]
    return min(medians_us), max(medians_us)


def percent(shares: Iterable[float], digits: int = 1) -> str:
    low, high = min(shares := list(shares)), max(shares)
    return f"{low * 100:.{digits}f} to {high * 100:.{digits}f} %"


def test_sentences_on_floors() -> None:
    text = " ".join((ROOT / "docs/h200.md").read_text().split())
    low, high = floor_range("empty-pair", "residual-mlp-baselines-h200-per-call")
    assert f"{low:.1f}" == f"{high:.1f}"
    assert f"An event pair around nothing reads {low:.1f} there" in text
    low, high = floor_range("empty-kernel-graph", "residual-mlp-baselines-h200-per-call")
    assert f"around a graph of one empty kernel {low:.1f} to {high:.1f} (" in text


def test_sentences_of_the_readme() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    block = report("residual-mlp-engines-h200-unrolled")["mkframe"]
    verdicts = [v["verdict"] for v in block["verdicts"] if v["engine"] == "persistent-graph"]
    assert sorted(verdicts) == ["FASTER"] * 8 + ["SLOWER"]
    (slower,) = [v for v in block["verdicts"] if v["engine"] == "persistent-graph" and v["verdict"] == "SLOWER"]
    assert (slower["set"], slower["case"], f"{slower['ratio']:.2f}") == ("assessment", 0, "1.01")
    assert (
        "`persistent` is the fastest on eight of nine shapes, and 1 % slower than the fastest, a tuned Triton kernel, on 5x19x37." in text
    )


def test_what_the_kernels_take() -> None:
    text = (ROOT / "docs/kernels/persistent.md").read_text()
    cells = report("residual-mlp-engines-h200-unrolled")["mkframe"]["cells"]
    own, control = ([cell for cell in cells if cell["engine"] == f"{name}-graph"] for name in ("persistent", "persistent-global"))
    assert len(own) == 9
    for one, other in zip(own, control, strict=True):
        (launch,), (kernel,), (beside,) = one["kernels"], one["facts"]["compiled"], other["facts"]["compiled"]
        assert launch["grid"] == other["kernels"][0]["grid"]
        assert launch["block"] == other["kernels"][0]["block"]
        row = (
            "x".join(map(str, one["shape"].values())),
            kernel["name"],
            f"{launch['grid'][0]} x {launch['block'][0]}",
            f"{launch['cluster'][0]}",
            f"{kernel['registers']} / {beside['registers']}",
            f"{kernel['shared_bytes']} / {beside['shared_bytes']}",
        )
        assert f"| {' | '.join(row)} |" in text


def test_what_two_launches_take() -> None:
    text = (ROOT / "docs/kernels/conventional.md").read_text()
    cells = report("residual-mlp-engines-h200-unrolled")["mkframe"]["cells"]
    own = [cell for cell in cells if cell["engine"] == "conventional-graph"]
    assert len(own) == 9
    for cell in own:
        (first, second), (one, other) = cell["kernels"], cell["facts"]["compiled"]
        assert {first["block"][0], second["block"][0]} == {128}
        start = f"| {'x'.join(map(str, cell['shape'].values()))} | {first['grid'][0]} / {second['grid'][0]} | "
        end = f" | {one['registers']} / {other['registers']} | {one['shared_bytes']} / {other['shared_bytes']} |"
        assert any(line.startswith(start) and line.endswith(end) for line in text.splitlines()), (start, end)


def test_spreads_of_processes() -> None:
    text = " ".join((ROOT / "docs/compare.md").read_text().split())
    found = spreads("residual-mlp-baselines-h200-per-call")
    for engine in ("torch-cublas-graph", "torch-compile-graph"):
        assert f"{percent(found[engine])} for {engine}" in text
    assert f"{percent([*found['torch-cublas'], *found['torch-compile']])} for eager calls" in text


def test_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join((ROOT / "docs/h200.md").read_text().split())
    first, again = "residual-mlp-graphs-h200-unrolled", "residual-mlp-graphs-h200-unrolled-again"
    assert main(["compare", *(str(PUBLISHED / name / "report.json") for name in (first, again))]) == 0
    assert capsys.readouterr().out.strip().splitlines()[-1] in text

    assert f"differ by up to {max(max(shares) for name in (first, again) for shares in spreads(name).values()) * 100:.1f} %:" in text
    low, high = floor_range("empty-kernel-slope", first, again)
    assert f"An empty kernel costs {low:.3f} to {high:.3f} us in a chain in the six workers." in text

    document = report(first)
    low, high = min(twins(document, "torch-cublas-graph")), max(twins(document, "torch-cublas-graph"))
    all_low, all_high = min(medians(document, "torch-cublas-graph")), max(medians(document, "torch-cublas-graph"))
    assert f"takes {low:.1f} to {high:.1f} us of its {all_low:.1f} to {all_high:.1f} us;" in text
    smallest, *others = twins(document, "torch-compile-graph")
    assert f"its twin takes {smallest:.1f} us there and {min(others):.1f} to {max(others):.1f} us elsewhere." in text
    nodes = {
        engine: [len(c["nodes"]) for c in document["mkframe"]["cells"] if c["engine"] == engine]
        for engine in ("torch-cublas-graph", "torch-compile-graph")
    }
    assert nodes == {"torch-cublas-graph": [8] * 9, "torch-compile-graph": [2, *[4] * 8]}

    far = [
        microseconds(report(f"residual-mlp-footprint-{footprint}-h200-cold"), "footprint", 0, "torch-cublas-graph")
        for footprint in (5, 7, 10, 14)
    ]
    assert f"lie within {max(far) / min(far) - 1:.1%} of each other".replace("%", " %") in text
    assert max(far) / min(far) < 1.02
