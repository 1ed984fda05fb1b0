"""Faults on a device cost their own cell: every other cell has numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

PLUGINS = Path(__file__).parent / "faulty"
OUTCOMES = {
    "crash": "crashed",
    "raise-error": "crashed",
    "leave": "crashed",
    "leave-at-once": "crashed",
    "hang": "timeout",
    "hang-on-the-device": "timeout",
    "exhaust": "oom",
    "exhaust-the-device": "oom",
    "corrupt-the-context": "crashed",
}
REST = ("sound", "sound-graph", "torch-cublas", "torch-cublas-graph")


def test_each_fault_gets_its_outcome_and_the_others_their_numbers(run_cli: Any) -> None:
    faulty = [f"{name}-at-{when}" for name in OUTCOMES for when in ("bind", "clock")]
    result = run_cli(
        f"plugin_path={PLUGINS}",
        f"engine=[{','.join([*faulty, *REST])}]",
        "device=cuda",
        "shape=smoke",
        "shape.smoke.cases=[{rows: 33, channels: 32, hidden: 64}]",
        "timing.processes=1",
        "timing.rounds=2",
        "timing.samples_per_round=100",
        "timing.cell_timeout_s=12",
        "--json",
        timeout=400,
    )
    assert result.returncode == 1, result.stderr
    cells = {cell["engine"]: cell for cell in json.loads(result.stdout)["cells"]}
    for name, outcome in OUTCOMES.items():
        for when, stage in (("bind", "binding and checking"), ("clock", "timing round 0")):
            cell = cells[f"{name}-at-{when}"]
            assert (cell["outcome"], cell["p50_us"]) == (outcome, None), cell
            assert stage in cell["reason"], cell
    for name in REST:
        assert (cells[name]["outcome"], cells[name]["reason"]) == ("passed", None), cells[name]
        assert cells[name]["p50_us"] > 0
