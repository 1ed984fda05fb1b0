"""`plan` and `plan --estimate` from the command line: nothing runs, nothing is written, and a run remembers for the next estimate."""

import json
from pathlib import Path
from typing import Any

import pytest

from mkframe.cli import plan_command
from mkframe.errors import ConfigError, UsageError
from mkframe.plan.history import remember

ENGINES = "engine=[persistent,torch-cublas,torch-cublas-graph]"


@pytest.fixture(autouse=True)
def _no_history(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own: what other tests ran is not known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def document(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert plan_command.main(["device=cpu", *words, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_plan_names_cells_reasons_blocks_and_memory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = document(ENGINES, "shape=smoke", "timing.rounds=9", capsys=capsys)
    assert (found["cells"], found["runnable_cells"], found["blocks"]) == (6, 4, 36)
    first = found["cases"][0]
    assert first["shape"] == {"rows": 2, "channels": 4, "hidden": 8}
    assert first["engines"] == ["persistent", "torch-cublas"]
    assert first["unsupported"] == {"torch-cublas-graph": "CUDA graphs need a CUDA device"}
    assert first["blocks"] == 18
    given = 2 * 4 * 2 + 2 * (4 * 8 * 2) + 8 * 4 + 4 * 4  # x, W1 and W2 in half; b1 and b2 in float32
    assert first["device_bytes"] >= given + 2 * (2 * 4 * 4)  # and an output for each engine
    assert found["memory"]["device_bytes"] == max(case["device_bytes"] for case in found["cases"])
    assert found["memory"]["samples_file_bytes"] > 4 * 9 * 200 * 16
    assert "estimate" not in found
    assert list(tmp_path.iterdir()) == []


def test_the_estimate_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(ENGINES, "--estimate", capsys=capsys)
    parts = found["estimate"]["parts_s"]
    assert list(parts) == ["start", "draw", "bind", "check", "warm-up", "timing", "statistics"]
    assert found["estimate"]["total_s"] == pytest.approx(sum(parts.values()))
    assert sum(case["expected_s"] for case in found["cases"]) + parts["start"] == pytest.approx(found["estimate"]["total_s"])
    assert (found["estimate"]["cells"], found["estimate"]["cells_seen_before"]) == (4, 0)


def test_text_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command.main([ENGINES, "device=cpu", "--estimate"]) == 0
    text = capsys.readouterr().out
    assert "residual_mlp in fp16 on " in text
    assert "4 of 6 cells can run, 24 blocks" in text
    assert "    torch-cublas-graph cannot: CUDA graphs need a CUDA device" in text
    assert "0 of 4 cells were timed by an earlier run under the same conditions; the others are guessed" in text
    assert plan_command.main([ENGINES, "device=cpu"]) == 0
    assert "expected" not in capsys.readouterr().out


def test_a_long_plan_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ",".join(str(index) for index in range(1, 101))
    assert plan_command.main(["engine=persistent", "device=cpu", "shape=grid", f"shape.grid.rows=[{rows}]"]) == 0
    assert "... and 60 cases more; --format json lists all" in capsys.readouterr().out


def test_the_next_estimate_knows_what_a_run_took(run_cli: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A real report is remembered, and its cells are then expected to take what they took."""
    short = ("engine=torch-cublas", "shape=smoke", "timing.rounds=2", "timing.processes=1", "timing.samples_per_round=30")
    done = run_cli("device=cpu", *short, "out=run")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    remember(report)
    found = document(*short, "--estimate", capsys=capsys)
    assert found["estimate"]["cells_seen_before"] == found["estimate"]["cells"] == 2
    cells = report["mkframe"]["cells"]
    assert found["estimate"]["parts_s"]["bind"] == pytest.approx(sum(cell["bind_s"] for cell in cells))
    means_ms = [case["engines"]["torch-cublas"]["host_summary"]["mean_ms"] for case in report["smoke"]]
    assert found["estimate"]["parts_s"]["warm-up"] == pytest.approx(2 * 20 * sum(means_ms) / 1e3)


def test_a_budget_shows_its_choice(capsys: pytest.CaptureFixture[str]) -> None:
    fitting = document("timing.budget_s=100000", capsys=capsys)
    assert "all 6 rounds over 3 processes fit" in fitting["notes"][0]
    few = document("timing.rounds=30000", "timing.samples_per_round=20", "timing.budget_s=60", capsys=capsys)
    assert few["timing"]["rounds"] % 3 == 0
    assert 3 <= few["timing"]["rounds"] < 30000
    assert f"{few['timing']['rounds']} rounds instead of 30000" in few["notes"][0]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["--format", "xml"], UsageError, "--format takes text or json, not 'xml'"),
        (["--format"], UsageError, "--format takes text or json, not ''"),
        (["-m"], UsageError, "plan looks at one job and takes no -m"),
        (["--cfg", "job"], UsageError, "belong to a run"),
        (["--nonsense"], UsageError, "--nonsense"),
        (["timing.budget_s=1"], ConfigError, "the smallest run (3 rounds, one per process) is expected to take"),
        (["timing.budget_s=soon"], ConfigError, "timing.budget_s: expected"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refused:
        plan_command.main(["device=cpu", *words])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_budget_that_does_not_fit_ends_with_exit_code_2(run_cli: Any, tmp_path: Path) -> None:
    done = run_cli("device=cpu", "timing.budget_s=1")
    assert done.returncode == 2
    assert done.stderr.startswith("mkframe: timing.budget_s: the smallest run")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_command.main(["--help"]) == 0
    assert "--estimate" in capsys.readouterr().out
