"""Runs from the command line to a report that its schema accepts and its own samples rebuild."""

import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

SHORT = ("device=cpu", "timing.processes=2", "timing.rounds=3", "timing.samples_per_round=10", "timing.warmups=2", "shape=smoke")
CUBLAS = ("engine=torch-cublas", *SHORT)


def only_report(folder: Path) -> tuple[Path, dict[str, Any]]:
    (path,) = folder.glob("outputs/*/report.json")
    return path, json.loads(path.read_text())


def blocks_in(journal: Path) -> list[dict[str, Any]]:
    """The finished blocks of a journal, whose last line may be in the making."""
    lines = [line for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [entry for entry in map(json.loads, lines[1:]) if entry["event"] == "BlockDone"]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run with three engines, shared by the tests that only read it."""
    folder = tmp_path_factory.mktemp("comparison")
    command = [sys.executable, "-m", "mkframe", "engine=[persistent,conventional,torch-cublas,torch-cublas-graph]", *SHORT]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    return folder


def test_the_report_passes_the_schema_by_another_tool(comparison: Path, root: Path) -> None:
    _, document = only_report(comparison)
    schema = json.loads((root / "schemas/comparison.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


def test_the_report_passes_validate(comparison: Path, run_cli: Any) -> None:
    path, _ = only_report(comparison)
    assert run_cli("validate", path).returncode == 0


def test_every_figure_is_rebuilt_from_the_samples_file(comparison: Path) -> None:
    path, document = only_report(comparison)
    samples = document["mkframe"]["samples"]
    data = (path.parent / samples["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == samples["sha256"]
    assert samples["file"] == f"samples-{samples['sha256']}.npz"
    arrays = np.load(path.parent / samples["file"])
    count = 0
    for index, case in enumerate(document["smoke"]):
        for engine, result in case["engines"].items():
            for clock in ("stream", "host"):
                values = arrays[f"smoke/{index}/{engine}/{clock}_ms"]
                assert values.shape == (3, 10)
                summary = result[f"{clock}_summary"]
                assert summary["count"] == values.size == document["rounds"] * document["samples_per_round"]
                assert summary["p50_ms"] == pytest.approx(float(np.median(values)), rel=1e-12)
                assert summary["p95_ms"] == pytest.approx(float(np.quantile(values, 0.95)), rel=1e-12)
                assert summary["mean_ms"] == pytest.approx(float(values.mean()), rel=1e-12)
                assert (summary["min_ms"], summary["max_ms"]) == (values.min(), values.max())
                count += 1
    assert count == 2 * 3 * 2


def test_the_journal_holds_every_block_once(comparison: Path) -> None:
    path, document = only_report(comparison)
    head, *entries = [json.loads(line) for line in (path.parent / "journal.jsonl").read_text().splitlines()]
    blocks = [entry for entry in entries if entry["event"] == "BlockDone"]
    assert head["config_sha256"] == document["mkframe"]["config_sha256"]
    keys = [(b["set"], b["case"], b["engine"], b["round"]) for b in blocks]
    engines = ("persistent", "conventional", "torch-cublas")
    assert sorted(keys) == sorted(("smoke", case, engine, r) for case in range(2) for engine in engines for r in range(3))
    assert {(b["round"], b["process"]) for b in blocks} == {(0, 0), (1, 0), (2, 1)}


def test_engines_are_rotated_by_one_position_per_round(comparison: Path) -> None:
    path, _ = only_report(comparison)
    blocks = blocks_in(path.parent / "journal.jsonl")
    orders = {r: [b["engine"] for b in blocks if (b["case"], b["round"]) == (0, r)] for r in range(3)}
    assert orders[1] == orders[0][1:] + orders[0][:1]
    assert orders[2] == orders[0][2:] + orders[0][:2]


def test_unsupported_cells_are_listed_with_their_reason_and_absent_from_the_results(comparison: Path) -> None:
    _, document = only_report(comparison)
    assert all("torch-cublas-graph" not in case["engines"] for case in document["smoke"])
    cells = [cell for cell in document["mkframe"]["cells"] if cell["engine"] == "torch-cublas-graph"]
    assert [cell["outcome"] for cell in cells] == ["unsupported"] * 2
    assert all(cell["reason"] == "CUDA graphs need a CUDA device" for cell in cells)


def test_every_passed_cell_says_what_was_checked_and_what_ran(comparison: Path) -> None:
    _, document = only_report(comparison)
    passed = [cell for cell in document["mkframe"]["cells"] if cell["outcome"] == "passed"]
    assert len(passed) == 6
    for cell in passed:
        expected = ["poison nan", "poison second", "input negated", "input fresh", "inputs intact", "shifted buffers", "plain tensors"]
        expected += ["after timing", "fresh input", "joined"]
        assert cell["checks"] == expected
        assert cell["check"]["violations"] == 0
        assert cell["interval"]["low_ms"] <= cell["interval"]["high_ms"]
        assert cell["implementation"].startswith("mkframe_plugins.")


def test_verdicts_stand_beside_the_fastest_baseline(comparison: Path) -> None:
    _, document = only_report(comparison)
    verdicts = document["mkframe"]["verdicts"]
    assert {(v["case"], v["engine"]) for v in verdicts} == {(c, e) for c in range(2) for e in ("persistent", "conventional")}
    for verdict in verdicts:
        engines = document["smoke"][verdict["case"]]["engines"]
        own, other = (engines[verdict[key]]["stream_summary"]["p50_ms"] for key in ("engine", "baseline"))
        assert verdict["ratio"] == pytest.approx(own / other, rel=1e-12)


def test_nothing_in_the_folder_names_the_machine(comparison: Path) -> None:
    path, _ = only_report(comparison)
    assert {item.name.partition("-")[0] for item in path.parent.iterdir()} == {"report.json", "journal.jsonl", "samples"}
    for item in path.parent.iterdir():
        text = item.read_bytes()
        for word in (str(comparison), str(Path.home()), os.uname().nodename, str(Path(__file__).parents[2])):
            assert len(word) < 4 or word.encode() not in text, (item, word)


def test_sources_are_hashed_as_they_are(comparison: Path, root: Path) -> None:
    _, document = only_report(comparison)
    sources = document["source_sha256"]
    for name in ("mkframe/run/worker.py", "mkframe/check/cell.py", "mkframe_plugins/residual_mlp/workload.py"):
        file = root / name.replace("mkframe_plugins", "plugins")
        assert sources[name] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_table_tells_losses_as_plainly_as_wins(comparison: Path, run_cli: Any) -> None:
    path, document = only_report(comparison)
    shown = run_cli("table", path).stdout
    printed = (comparison / "stdout").read_text()
    assert shown.strip() in printed
    assert "2x4x8" in shown
    for verdict in document["mkframe"]["verdicts"]:
        word = {"FASTER": "faster", "SLOWER": "slower", "SAME": "same", "UNDECIDED": "undecided"}[verdict["verdict"]]
        assert word in shown


def test_a_limitation_follows_from_what_ran(run_cli: Any, tmp_path: Path, comparison: Path) -> None:
    assert run_cli(*CUBLAS, "timing.processes=1").returncode == 0
    _, one = only_report(tmp_path)
    _, two = only_report(comparison)
    assert any("one process" in sentence for sentence in one["limitations"])
    assert not any("one process" in sentence for sentence in two["limitations"])
    assert any(
        "spread over 2 processes; intervals are Student's t over the processes' medians." in sentence for sentence in two["limitations"]
    )
    assert any("per_call" in sentence for sentence in one["limitations"])


def test_machine_readable_output_is_one_document(run_cli: Any, tmp_path: Path) -> None:
    result = run_cli(*CUBLAS, "--json")
    document = json.loads(result.stdout)
    assert document["exit_code"] == result.returncode == 0
    assert (tmp_path / document["report"]).is_file()
    assert [cell["p50_us"] > 0 for cell in document["cells"]] == [True, True]


def test_quiet_prints_nothing(run_cli: Any) -> None:
    result = run_cli(*CUBLAS, "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_sweep_gives_a_report_per_job_and_an_index(run_cli: Any, tmp_path: Path) -> None:
    result = run_cli("-m", "engine=persistent,conventional", *SHORT)
    assert result.returncode == 0, result.stderr
    (index,) = tmp_path.glob("outputs/**/index.json")
    jobs = json.loads(index.read_text())["jobs"]
    assert [job["exit_code"] for job in jobs] == [0, 0]
    for job, engine in zip(jobs, ("persistent", "conventional"), strict=True):
        data = (index.parent / job["report"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == job["sha256"]
        assert list(json.loads(data)["smoke"][0]["engines"]) == [engine]
        assert f"engine={engine}" in job["overrides"]


def test_a_sweep_names_the_jobs_that_failed_and_runs_the_others(run_cli: Any, tmp_path: Path, root: Path) -> None:
    plugins = root / "tests/cheats/cheating"
    result = run_cli(f"plugin_path={plugins}", "-m", "engine=zeros,telling-the-truth", *SHORT)
    assert result.returncode == 1
    assert re.search(r"job 0 .*engine=zeros.* failed: 2 of 2 cells did not pass", result.stderr)
    (index,) = tmp_path.glob("outputs/**/index.json")
    jobs = json.loads(index.read_text())["jobs"]
    assert [job["exit_code"] for job in jobs] == [1, 0]
    failed = json.loads((index.parent / jobs[0]["report"]).read_text())
    for case in failed["smoke"]:
        assert case["engines"] == {"zeros": {"passed": False, "replay_changed_input": False}}


def test_nothing_supported_is_no_report(run_cli: Any, tmp_path: Path) -> None:
    result = run_cli("engine=torch-cublas-graph", *SHORT)
    assert result.returncode == 1
    assert "every cell is unsupported" in result.stderr
    assert "CUDA graphs need a CUDA device" in result.stderr
    assert not list(tmp_path.glob("outputs/*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_measured(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=2000", "timing.processes=1", "timing.samples_per_round=200"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        journal = _wait_for(tmp_path, "outputs/*/journal.jsonl", process)
        deadline = time.monotonic() + 120
        while len(blocks_in(journal)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "Traceback" not in errors
    _, document = only_report(tmp_path)
    assert document["mkframe"]["incomplete"] is True
    assert document["limitations"][0].startswith("INCOMPLETE")
    finished = blocks_in(journal)
    arrays = np.load(next(journal.parent.glob("samples-*.npz")))
    assert len(finished) >= 4
    for block in finished:
        key = f"smoke/{block['case']}/{block['engine']}"
        row = list(arrays[f"{key}/rounds"]).index(block["round"])
        assert arrays[f"{key}/stream_ms"][row].tolist() == block["stream_ms"]


def _wait_for(folder: Path, pattern: str, process: "subprocess.Popen[str]") -> Path:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = next(folder.glob(pattern), None)
        if found is not None:
            return found
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError(f"{pattern} did not appear")


def test_the_coordinator_never_imports_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from mkframe.cli.main import main\n"
        "if __name__ == '__main__':\n"
        f"    code = main({[*CUBLAS, '--quiet']!r})\n"
        "    assert code == 0, code\n"
        "    assert 'torch' not in sys.modules, 'the coordinator imported torch'\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("delay_s", [0.4, 0.8, 1.2, 1.6])
def test_an_early_interrupt_is_one_line(tmp_path: Path, delay_s: float) -> None:
    command = [sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=500", "timing.processes=1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)  # a wrapper often sends it twice
        _, errors = process.communicate(timeout=60)
    assert process.returncode in (1, -signal.SIGINT), errors
    assert "Traceback" not in errors or "mkframe" not in errors.split("Traceback")[0]
    for folder in tmp_path.glob("outputs/*"):
        assert (folder / "report.json").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_interrupted_before_its_worker_is_ready_ends_the_sweep(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "mkframe", "-m", "engine=torch-cublas,conventional,persistent", *SHORT, "out=sweep"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        journal = _wait_for(tmp_path, "sweep/*/journal.jsonl", process)
        while not journal.read_text().endswith("\n") and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "Traceback" not in errors
    assert "2 of 3 jobs were not started" in errors
    (job,) = json.loads((tmp_path / "sweep/index.json").read_text())["jobs"]
    assert (job["number"], job["exit_code"], job["report"]) == (0, 1, None)
    assert "ended before anything was measured" in job["error"]
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == ["index.json"]


def test_a_second_signal_does_not_cost_the_report(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=2000", "timing.processes=1", "timing.samples_per_round=200"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        journal = _wait_for(tmp_path, "outputs/*/journal.jsonl", process)
        deadline = time.monotonic() + 120
        while len(blocks_in(journal)) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert only_report(tmp_path)[1]["mkframe"]["incomplete"] is True


def test_a_full_disk_is_told_with_the_folder_at_the_terminal_and_without_it_in_the_report(tmp_path: Path) -> None:
    limit = 150_000

    def scarce() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=100", "timing.samples_per_round=100", f"out={tmp_path / 'run'}"]
    done = subprocess.run(command, cwd=tmp_path.parent, capture_output=True, text=True, check=False, preexec_fn=scarce)
    assert done.returncode == 1, done.stderr
    assert f"free some space, then resume={tmp_path.name}/run measures the rest" in done.stderr
    text = (tmp_path / "run/report.json").read_text()
    assert str(tmp_path) not in text
    reasons = {cell["reason"] for cell in json.loads(text)["mkframe"]["cells"]}
    assert any("cannot write journal.jsonl: File too large" in (reason or "") for reason in reasons), reasons


def test_a_disk_that_is_full_from_the_start_is_one_line_that_can_be_followed(tmp_path: Path) -> None:
    def scarce() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [sys.executable, "-m", "mkframe", *CUBLAS, "out=run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, preexec_fn=scarce)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "free some space and start the run again" in done.stderr
    assert "resume=" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_removed_ends_the_run_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=2000", "timing.processes=1", "out=run", "--quiet"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        journal = _wait_for(tmp_path, "run/journal.jsonl", process)
        while not blocks_in(journal) and process.poll() is None:
            time.sleep(0.01)
        shutil.rmtree(tmp_path / "run")
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors.count("\n")) == (2, 1), errors
    assert "was removed while the run went on, and what was measured with it; start the run again" in errors


def test_a_run_outlives_its_terminal_where_that_was_asked_for(tmp_path: Path) -> None:
    """As under nohup."""
    command = ["nohup", sys.executable, "-m", "mkframe", *CUBLAS, "timing.rounds=40", "timing.processes=1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        journal = _wait_for(tmp_path, "outputs/*/journal.jsonl", process)
        while not blocks_in(journal) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert only_report(tmp_path)[1]["mkframe"]["incomplete"] is False


def test_a_reader_that_goes_away_changes_nothing(tmp_path: Path) -> None:
    command = f"{sys.executable} -m mkframe {' '.join(CUBLAS)} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_a_full_standard_output_is_told(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "mkframe", *CUBLAS]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if "standard output" in line]
    assert len(told) == 1
    assert "cannot write to standard output: No space left on device; the report is " in told[0]
    assert only_report(tmp_path)[1]["mkframe"]["incomplete"] is False


REPORT = "outputs/published/residual-mlp-baselines-h200-per-call/report.json"


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("engines",),
        ("conformance", "engine=torch-cublas", "shape=smoke", "device=cpu"),
        CUBLAS,
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_closed_streams_change_nothing(tmp_path: Path, words: tuple[str, ...], closed: str) -> None:
    command = [sys.executable, "-m", "mkframe", *words]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(command)} {closed}"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False, timeout=300
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("words", [("validate", REPORT), ("explain", REPORT), ("table", REPORT), ("compare", REPORT, REPORT)])
@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full", "1</dev/null"])
def test_what_is_only_read_and_cannot_be_written_is_2(root: Path, words: tuple[str, ...], streams: str) -> None:
    command = [sys.executable, "-m", "mkframe", *words]
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(command)} {streams}"], cwd=root, stderr=subprocess.PIPE, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 0 if "2>" in streams else 1), done.stderr
    assert "Traceback" not in done.stderr
