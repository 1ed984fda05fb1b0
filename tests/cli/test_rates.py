"""A run on a CPU states rates, no share that nobody knows, and the measured card of the machine where there is one."""

import json
from pathlib import Path
from typing import Any

from mkframe import canonical
from mkframe.plan.devices import cpu
from mkframe.probe.cards import card_path, identity, save_card
from mkframe.probe.cpu import probe_cpu

RUN = ("engine=torch-cublas", "shape=smoke", "device=cpu", "timing.processes=1", "timing.rounds=1", "timing.samples_per_round=5", "--quiet")


def block_of(run_cli: Any, folder: Path, cache: Path) -> dict[str, Any]:
    result = run_cli(*RUN, f"out={folder}", env={"XDG_CACHE_HOME": str(cache)})
    assert result.returncode == 0, result.stderr
    assert run_cli("validate", folder / "report.json").returncode == 0
    document = json.loads((folder / "report.json").read_text())
    medians = [case["engines"]["torch-cublas"]["stream_summary"]["p50_ms"] / 1e3 for case in document["smoke"]]
    for cell, seconds in zip(document["mkframe"]["cells"], medians, strict=True):
        assert cell["rates"] == {
            "bytes_per_s": cell["cost"]["bytes"] / seconds,
            "flops_per_s": cell["cost"]["flops"] / seconds,
            "compute_share": None,
            "memory_share": None,
            "read_share": None,
        }
    block: dict[str, Any] = document["mkframe"]
    return block


def test_peaks_of_a_cpu_are_those_of_its_probe_or_none(run_cli: Any, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert block_of(run_cli, tmp_path / "before", cache)["device"]["peaks"] is None
    card = probe_cpu(cpu(), rounds=2, sizes=(2**20, 2**21))
    save_card(card.document(), card_path(*identity(cpu()), {"XDG_CACHE_HOME": str(cache)}))
    peaks = block_of(run_cli, tmp_path / "after", cache)["device"]["peaks"]
    assert peaks["datasheet"] is None
    assert peaks["measured"]["card_sha256"] == canonical.digest(card.document())
    assert peaks["measured"]["driver"] is None
    assert peaks["measured"]["read_bytes_per_s"] == max(r.rate.median_bytes_per_s for r in card.memory if r.operation == "read")
