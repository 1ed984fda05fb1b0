"""Seconds from the command to the first finished block of `shape=smoke engine=torch-cublas device=cpu`, without torch's import.

Goal: under 1.5 s. The first block is 20 warm-up calls and 200 samples of some 10 us, so it stands for the first sample.
Prints one JSON object: the median of several starts, and of torch's import in processes of its own.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STARTS = 5
GOAL_S = 1.5


def seconds_to_first_block() -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mkframe", "shape=smoke", "engine=torch-cublas", "device=cpu", "--quiet"]
        begin = time.perf_counter()
        with subprocess.Popen(command, cwd=folder) as process:
            while not _has_block(Path(folder)):
                if process.poll() is not None:
                    raise SystemExit(f"the run ended with {process.returncode} before its first block")
                time.sleep(0.002)
            elapsed = time.perf_counter() - begin
            process.terminate()
    return elapsed


def _has_block(folder: Path) -> bool:
    return any(journal.read_bytes().count(b"\n") > 1 for journal in folder.glob("outputs/*/journal.jsonl"))


def seconds_to_import_torch() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    with_torch = time.perf_counter() - begin
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return with_torch - (time.perf_counter() - begin)


def main() -> None:
    first = statistics.median(seconds_to_first_block() for _ in range(STARTS))
    torch = statistics.median(seconds_to_import_torch() for _ in range(STARTS))
    print(
        json.dumps(
            {
                "first_block_s": round(first, 3),
                "torch_import_s": round(torch, 3),
                "without_torch_s": round(first - torch, 3),
                "goal_s": GOAL_S,
            }
        )
    )


if __name__ == "__main__":
    main()
