"""Runs killed with SIGKILL at random moments and resumed until they end, again and again.

    python benchmarks/kill_resume.py [KILLS=100] [SEED=0]

After every kill: nothing that the journal held is gone, and no worker is left. At each end: every block stands in the journal
exactly once, and the report equals an undisturbed one outside times. Prints one JSON object; exits 1 where any of this fails.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RUN = (
    "engine=[persistent,conventional,torch-cublas]",
    "shape=smoke",
    "device=cpu",
    "timing.processes=2",
    "timing.rounds=6",
    "timing.samples_per_round=20",
    "timing.warmups=2",
    "--quiet",
)
BLOCKS = 3 * 2 * 6
TIMES = ("interval", "rates", "bind_s", "check_s", "capture_s", "late_samples")
ORPHAN_S = 10.0


def start(*words: str, cwd: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "mkframe", *words], cwd=cwd, stderr=subprocess.PIPE)


def undisturbed(folder: Path) -> tuple[dict[str, Any], float]:
    """A report that nobody disturbed, without its times, and how long it took in seconds."""
    begin = time.monotonic()
    process = start(*RUN, "out=undisturbed", cwd=folder)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return without_times(folder / "undisturbed"), time.monotonic() - begin


def kill_until_done(folder: Path, kills: int, longest_s: float, generator: random.Random, expected: dict[str, Any]) -> int:
    """One run, killed and resumed until it ends or `kills` kills are used up (the last start is left alone). Returns the kills."""
    used, blocks = 0, []
    run = folder / "run"
    while True:
        process = start("resume=run", "--quiet", cwd=folder) if has_head(run) else start(*RUN, f"out={fresh(run)}", cwd=folder)
        killed = used < kills and not ended_within(process, generator.uniform(0.0, longest_s))
        if killed:
            process.send_signal(signal.SIGKILL)
            used += 1
        _, errors = process.communicate()
        now = blocks_of(run)
        assert now[: len(blocks)] == blocks, "a finished block is gone from the journal"
        blocks = now
        wait_for_workers(run)
        if process.returncode == 0:
            break
        assert killed, errors.decode()
    assert len(blocks) == len(set(blocks)) == BLOCKS, f"{len(blocks)} blocks in the journal, {len(set(blocks))} different ones"
    assert without_times(run) == expected, "the report differs from an undisturbed one"
    return used


def fresh(run: Path) -> str:
    """The folder for a start from nothing; what a kill before the first line left there is cleared away."""
    if run.is_dir():
        for item in run.iterdir():
            item.unlink()
    return run.name


def ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def lines_of(run: Path) -> list[dict[str, Any]]:
    """The whole lines of the journal: a last one that was cut short does not count."""
    path = run / "journal.jsonl"
    text = path.read_text() if path.is_file() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def has_head(run: Path) -> bool:
    return bool(lines_of(run))


def blocks_of(run: Path) -> list[tuple[Any, ...]]:
    return [(e["set"], e["case"], e["engine"], e["round"]) for e in lines_of(run)[1:] if e["event"] == "BlockDone"]


def wait_for_workers(run: Path) -> None:
    """Every worker that said hello is gone soon after its coordinator."""
    deadline = time.monotonic() + ORPHAN_S
    for entry in lines_of(run)[1:]:
        while entry["event"] == "Hello" and alive(entry["pid"]):
            assert time.monotonic() < deadline, f"worker {entry['pid']} outlives its coordinator"
            time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a mkframe worker runs under this number."""
    try:
        os.kill(pid, 0)
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def without_times(run: Path) -> dict[str, Any]:
    """The report without what a clock said: times, and what is derived from them (verdicts, floors, clock readings, hashes of samples)."""
    document: dict[str, Any] = json.loads((run / "report.json").read_text())
    block = document["mkframe"]
    for key in ("rounds", "verdicts", "samples"):
        del block[key]
    for key in ("floors", "timer_step_ms"):
        del block["timing"][key]
    for cell in block["cells"]:
        for key in TIMES:
            del cell[key]
    for case in document["smoke"]:
        for result in case["engines"].values():
            for clock in ("stream_summary", "host_summary"):
                result[clock] = result[clock]["count"]
    del document["recorded_on"]
    return document


def torment(kills: int, seed: int) -> dict[str, Any]:
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        expected, seconds = undisturbed(Path(name))
    used = runs = 0
    while used < kills:
        with tempfile.TemporaryDirectory() as name:
            used += kill_until_done(Path(name), kills - used, 1.2 * seconds, generator, expected)
        runs += 1
    return {"kills": used, "runs": runs, "undisturbed_s": round(seconds, 2), "seed": seed}


def main() -> None:
    words = dict(enumerate(sys.argv[1:]))
    print(json.dumps(torment(kills=int(words.get(0, 100)), seed=int(words.get(1, 0)))))


if __name__ == "__main__":
    main()
