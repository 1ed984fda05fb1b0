"""The probe on a device: every check holds, and the figures are those of a device."""

import json
from pathlib import Path
from typing import Any

import pytest

from mkframe.model.device_card import Body, Operation, Scope
from mkframe.probe import cards

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import subprocess
    import sys

    path = tmp_path_factory.mktemp("card") / "card.json"
    command = [sys.executable, "-m", "mkframe", "device", "probe", "device=cuda", "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    return cards.read_card(path)


def test_it_takes_about_a_minute(card: Any) -> None:
    assert card.took_s < 120


def test_launch_floors_are_those_of_a_device(card: Any) -> None:
    empty = cards.launch_twin(card, grid=card.device.multiprocessors, block=128)
    full = cards.launch_twin(card, grid=card.device.multiprocessors, block=128, body=Body.ROUND_TRIP)
    assert empty is not None
    assert full is not None
    assert 0.2 < empty.time.median_us < 5
    assert empty.time.median_us < full.time.median_us < 10


def test_barriers_are_in_order(card: Any) -> None:
    step = {barrier.scope: barrier.step.median_us for barrier in card.barriers if barrier.block == 128}
    assert 0.05 < step[Scope.BLOCK] < step[Scope.GRID] < 20


def test_no_rate_is_above_what_a_datasheet_could_say(card: Any) -> None:
    for operation in Operation:
        best = cards.peak_rate(card, operation)
        assert best is not None
        assert 1e11 < best.rate.median_bytes_per_s < 1e13
    assert all(model.worst_residual < 0.2 for model in card.memory_models)
    assert all(rate.rate.median_bytes_per_s > 1e11 for rate in card.l2)


def test_the_clock_was_read_in_the_kernel_and_agrees_with_the_driver(card: Any) -> None:
    assert card.clock.light_measured.median_mhz == pytest.approx(card.clock.light_nvml_mhz, rel=0.05)
    assert card.clock.rise_s < 1.5


def test_figures_on_an_h200_are_near_the_recorded_ones(card: Any) -> None:
    if card.device.name != "NVIDIA H200":
        pytest.skip("another device")
    empty = cards.launch_twin(card, grid=132, block=128)
    read = cards.peak_rate(card, Operation.READ)
    assert empty is not None
    assert read is not None
    assert 0.5 <= empty.time.median_us <= 0.75
    assert 4.3e12 < read.rate.median_bytes_per_s < 4.8e12


def test_the_card_is_kept_where_reports_look(run_cli: Any, tmp_path: Path) -> None:
    result = run_cli("device", "probe", "device=cuda", "--json", env={"XDG_CACHE_HOME": str(tmp_path / "cache")}, timeout=300)
    assert result.returncode == 0, result.stderr
    device = json.loads(result.stdout)["device"]
    assert cards.load_card(device["uuid"], device["driver"], {"XDG_CACHE_HOME": str(tmp_path / "cache")}) is not None
