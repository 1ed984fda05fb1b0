"""Runs that end early go on: nothing measured twice, nothing lost, whatever ended them."""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

RUN = (
    "engine=[persistent,torch-cublas]",
    "shape=smoke",
    "device=cpu",
    "timing.processes=2",
    "timing.rounds=4",
    "timing.samples_per_round=20",
)
KILLS_HERE = 20


@pytest.fixture(scope="module")
def torment() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks/kill_resume.py"
    spec = importlib.util.spec_from_file_location("kill_resume", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    done = subprocess.run(
        [sys.executable, "-m", "mkframe", *RUN, f"out={folder}", "--quiet"], cwd=folder.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def half(finished: Path, tmp_path: Path) -> Path:
    """A run that was cut in the middle of a journal line, before its report."""
    folder = tmp_path / "half"
    folder.mkdir()
    data = (finished / "journal.jsonl").read_bytes()
    cut = data.index(b'"round":1', len(data) // 3) + 5
    (folder / "journal.jsonl").write_bytes(data[:cut])
    return folder


def blocks_of(folder: Path) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]
    return [entry for entry in entries if entry["event"] == "BlockDone"]


def keys_of(folder: Path) -> list[tuple[Any, ...]]:
    return [(b["set"], b["case"], b["engine"], b["round"]) for b in blocks_of(folder)]


def test_killed_at_random_moments(torment: ModuleType) -> None:
    assert torment.torment(kills=KILLS_HERE, seed=int.from_bytes(os.urandom(4), "big"))["kills"] == KILLS_HERE


def test_a_cut_journal_goes_on_where_it_was_cut(run_cli: Any, half: Path) -> None:
    whole, _, _ = (half / "journal.jsonl").read_text().rpartition("\n")
    before = [json.loads(line) for line in whole.splitlines()[1:]]
    kept = [entry for entry in before if entry["event"] == "BlockDone"]
    assert 0 < len(kept) < 16
    result = run_cli(f"resume={half}")
    assert result.returncode == 0, result.stderr
    assert blocks_of(half)[: len(kept)] == kept
    assert len(keys_of(half)) == len(set(keys_of(half))) == 16
    document = json.loads((half / "report.json").read_text())
    assert document["mkframe"]["incomplete"] is False
    arrays = np.load(half / document["mkframe"]["samples"]["file"])
    workers = arrays["smoke/1/torch-cublas/workers"]
    assert workers.tolist() == sorted(workers.tolist())
    assert len(set(np.concatenate([arrays[key] for key in arrays if key.endswith("/workers")]).tolist())) == 3


def test_a_finished_run_is_only_reported_again(run_cli: Any, finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    before = (folder / "report.json").read_text()
    result = run_cli(f"resume={folder}")
    assert result.returncode == 0, result.stderr
    assert (folder / "journal.jsonl").read_text() == (finished / "journal.jsonl").read_text()
    assert json.loads((folder / "report.json").read_text()) == json.loads(before)


def test_a_report_that_is_replaced_leaves_no_old_samples(run_cli: Any, half: Path) -> None:
    (half / f"samples-{'0' * 64}.npz").touch()
    assert run_cli(f"resume={half}", "--quiet").returncode == 0
    assert len(list(half.glob("samples-*.npz"))) == 1


def test_a_failed_cell_is_not_tried_again(run_cli: Any, root: Path, tmp_path: Path) -> None:
    plugins = f"plugin_path={root / 'tests/cheats/cheating'}"
    first = run_cli(plugins, "engine=[zeros,telling-the-truth]", *RUN[1:], "out=run", "--quiet")
    assert first.returncode == 1
    journal = (tmp_path / "run/journal.jsonl").read_text()
    again = run_cli(plugins, "resume=run", "--quiet")
    assert again.returncode == 1
    assert (tmp_path / "run/journal.jsonl").read_text() == journal


def test_a_plugin_that_is_gone_is_named(run_cli: Any, root: Path) -> None:
    run_cli(f"plugin_path={root / 'tests/cheats/cheating'}", "engine=telling-the-truth", *RUN[1:], "out=run", "--quiet")
    result = run_cli("resume=run")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "telling-the-truth" in result.stderr


def test_other_code_is_refused(run_cli: Any, half: Path) -> None:
    path = half / "journal.jsonl"
    head, _, rest = path.read_text().partition("\n")
    document = json.loads(head)
    document["source_sha256"]["mkframe/stats/rule.py"] = "0" * 64
    path.write_text(json.dumps(document) + "\n" + rest)
    result = run_cli(f"resume={half}")
    assert result.returncode == 2
    assert "mkframe/stats/rule.py has changed since the run began" in result.stderr


def test_a_run_that_goes_on_is_left_alone(run_cli: Any, half: Path) -> None:
    with (half / "journal.jsonl").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run_cli(f"resume={half}")
    assert result.returncode == 2
    assert "still going on" in result.stderr


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is empty"),
        ("{}\n", "does not begin as a journal"),
        ('{"format":"journal/1"}\n', "does not fit its own plan"),
        ("nonsense\n", "line 1 is not JSON"),
        ("[]\n", "line 1 is no object"),
    ],
)
def test_what_is_no_journal_is_told(run_cli: Any, tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/journal.jsonl").write_text(content)
    result = run_cli("resume=run")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert complaint in result.stderr


def test_a_broken_line_in_the_middle_is_told(run_cli: Any, half: Path) -> None:
    lines = (half / "journal.jsonl").read_text().splitlines(keepends=True)
    lines[3] = '{"event":"BlockDone"}\n'
    (half / "journal.jsonl").write_text("".join(lines))
    result = run_cli(f"resume={half}")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "line 4 is no entry" in result.stderr


@pytest.mark.parametrize("words", [("resume=",), ("resume=nowhere",), ("resume=nowhere", "shape=smoke")])
def test_usage(run_cli: Any, words: tuple[str, ...]) -> None:
    result = run_cli(*words)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "resume" in result.stderr
