"""Peaks on a real device: its datasheet is found, shares are possible, and a time beyond the datasheet is rejected, on resume too."""

import json
from pathlib import Path
from typing import Any

import pytest

from mkframe.cli.main import main
from mkframe.config.device_cards import shipped_card

pytestmark = pytest.mark.gpu

SHORT = ("timing.processes=1", "timing.rounds=2", "timing.samples_per_round=10", "shape=smoke")
LARGE = "shape.smoke.cases=[{rows: 4, channels: 2048, hidden: 4096}]"


@pytest.fixture
def card() -> str:
    """The id of the card of this device."""
    import torch

    found = shipped_card(torch.cuda.get_device_name(0), "{}.{}".format(*torch.cuda.get_device_capability(0)))
    if found is None:
        pytest.skip("conf/device has no card of this device")
    return found.id


def document_of(folder: Path) -> tuple[Path, dict[str, Any]]:
    (path,) = folder.glob("outputs/*/report.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return path, found


def test_a_cold_run_states_possible_shares_of_peak(run_cli: Any, tmp_path: Path, card: str) -> None:
    result = run_cli("engine=torch-cublas-graph", "device=cuda", *SHORT, LARGE, "timing=cold", *SHORT[:3], "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    path, document = document_of(tmp_path)
    device = document["mkframe"]["device"]
    (cell,) = document["mkframe"]["cells"]
    assert device["card"] == card
    assert device["peaks"]["datasheet"]["source"]
    assert 0 < cell["rates"]["compute_share"] < 1
    assert 0 < cell["rates"]["memory_share"] < 1
    assert main(["validate", str(path)]) == 0


@pytest.mark.parametrize(
    ("timing", "key", "reason"),
    [
        ((), "fp16_flops", "computes "),
        (("timing=cold",), "memory_bytes_per_s", "moves "),
    ],
)
def test_a_time_beyond_the_datasheet_is_rejected(
    run_cli: Any, tmp_path: Path, card: str, timing: tuple[str, ...], key: str, reason: str
) -> None:
    result = run_cli("engine=torch-cublas-graph", f"device={card}", f"device.card.{key}=1.0e6", *timing, *SHORT, LARGE, "--json")
    assert result.returncode == 1, result.stdout + result.stderr
    path, document = document_of(tmp_path)
    (cell,) = document["mkframe"]["cells"]
    assert (cell["outcome"], cell["rates"]) == ("rejected", None)
    assert cell["reason"].startswith(reason)
    assert f"the datasheet of {card} promises 1.00 M" in cell["reason"]
    assert main(["validate", str(path)]) == 0
    path.unlink()
    assert run_cli(f"resume={path.parent}", "--quiet").returncode == 1
    assert document_of(tmp_path)[1]["mkframe"]["cells"] == [cell]
