"""A GPU that somebody else uses too: a second run waits or is refused, and rounds beside another process are unstable."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu

PLUGINS = Path(__file__).parent / "plugins"
SHORT = ("device=cuda", "timing.processes=1", "timing.rounds=2", "timing.samples_per_round=20", "shape=smoke")
BUSY = "import torch; x = torch.ones(1 << 20, device='cuda'); print('busy', flush=True)\nwhile True: x.mul_(1.0); torch.cuda.synchronize()"


@pytest.fixture
def neighbour() -> Iterator[Any]:
    """Starts a process and waits for its first line; kills it in the end."""
    started = []

    def start(*command: str, cwd: Path | None = None) -> Any:
        process = subprocess.Popen([sys.executable, *command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_second_run_on_a_gpu_is_refused_or_waits(run_cli: Any, neighbour: Any, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    long = ("timing.rounds=20", "timing.samples_per_round=2000")
    process = neighbour("-m", "mkframe", f"plugin_path={PLUGINS}", "engine=nodes", *SHORT, *long, "hydra.run.dir=run", cwd=first)
    journal = first / "run" / "journal.jsonl"
    while not (journal.exists() and "BlockDone" in journal.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    refused = run_cli(f"plugin_path={PLUGINS}", "engine=nodes", *SHORT)
    assert process.poll() is None, "the first run was too short for this test"
    assert refused.returncode == 2
    assert f"taken by another run (process {process.pid})" in refused.stderr
    assert refused.stderr.count("\n") == 1
    waited = run_cli(f"plugin_path={PLUGINS}", "engine=nodes", *SHORT, "device.wait_s=200")
    assert waited.returncode == 0, waited.stderr
    assert f"waiting up to 200 s for the run of process {process.pid}" in waited.stderr
    assert process.wait(10) == 0


def test_rounds_beside_another_process_are_unstable(run_cli: Any, neighbour: Any, tmp_path: Path) -> None:
    process = neighbour("-c", BUSY)
    assert process.stdout.readline() == "busy\n"
    result = run_cli(f"plugin_path={PLUGINS}", "engine=nodes", *SHORT, "--json")
    (path,) = tmp_path.glob("outputs/*/report.json")
    rounds = json.loads(path.read_text())["mkframe"]["rounds"]
    if rounds[0]["before"]["other_processes"] is None:
        pytest.skip("this driver does not tell processes apart")
    assert result.returncode == 1
    for cell in json.loads(result.stdout)["cells"]:
        assert (cell["outcome"], cell["p50_us"]) == ("unstable", None)
        assert "other processes on the GPU" in cell["reason"]
