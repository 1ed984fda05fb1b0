"""Small whole documents of every format that fuzzers begin with. `python tests/fuzz/seeds.py FOLDER` writes them as files."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "valid"
PUBLISHED = ROOT / "outputs" / "published" / "residual-mlp-baselines-h200-per-call" / "report.json"

Document = dict[str, Any]


def _read(path: Path) -> Document:
    loaded: Document = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def small_comparison() -> Document:
    """The recorded comparison report with two cases a set and two engines a case."""
    document = _read(RECORDED / "residual-mlp-rtx3090.json")
    for name in ("development", "assessment"):
        document[name] = document[name][:2]
        for case in document[name]:
            case["engines"] = dict(list(case["engines"].items())[:2])
    document["source_sha256"] = dict(list(document["source_sha256"].items())[:2])
    return document


def small_energy() -> Document:
    """The recorded energy report with two draws and three rounds: whole, but its totals are those of all."""
    document = _read(RECORDED / "qda-energy-a100.json")
    manifest = document["provenance"]["payload_manifest"]
    manifest["seeds"], manifest["draws"] = manifest["seeds"][:2], manifest["draws"][:2]
    document["validation"]["draws"] = document["validation"]["draws"][:2]
    document["rounds"] = document["rounds"][:3]
    return document


def verify_only() -> Document:
    return {key: value for key, value in small_energy().items() if key not in ("rounds", "summary", "completed_at_utc")}


def small_own() -> Document:
    """A published report of ours with one case of each set, and what `mkframe` holds of the others cut away."""
    document = _read(PUBLISHED)
    block = document["mkframe"]
    for name in ("development", "assessment"):
        document[name] = document[name][:1]
    for name in ("cells", "rounds", "verdicts"):
        block[name] = [entry for entry in block[name] if entry["case"] == 0]
    document["source_sha256"] = dict(list(document["source_sha256"].items())[:2])
    return document


def seeds() -> dict[str, Document]:
    """Documents by name; each call makes new ones."""
    made = {"comparison": small_comparison(), "energy": small_energy(), "verify-only": verify_only(), "own": small_own()}
    return {**made, "minimal": _read(RECORDED / "minimal-comparison.json")}


def main(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "unit"))
    from probe_fakes import FakeGpu  # a paper GPU; needs numpy

    from mkframe.probe.session import probe_gpu

    gpu = FakeGpu()
    card = probe_gpu(gpu, rounds=1, now=gpu.now).document()
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in {**seeds(), "card": copy.deepcopy(card)}.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
