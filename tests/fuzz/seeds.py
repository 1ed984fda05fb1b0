"""Small whole documents of every format that fuzzers begin with. `python tests/fuzz/seeds.py FOLDER` writes them as files."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mkframe import sentences  # noqa: E402
from mkframe.canonical import digest  # noqa: E402
from mkframe.validate.rule import Subject  # noqa: E402
from mkframe.validate.run_facts import run_facts  # noqa: E402

RECORDED = ROOT / "tests" / "data" / "valid"
PUBLISHED = ROOT / "outputs" / "published"

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


def small_own(name: str = "residual-mlp-baselines-h200-per-call") -> Document:
    """A published report of ours with one case of each set and five of its engines, without what `mkframe` holds of the others."""
    document = _read(PUBLISHED / name / "report.json")
    block = document["mkframe"]
    sets = sorted(block["seeds"])
    engines = sorted({cell["engine"] for cell in block["cells"]})[:5]
    for name in sets:
        document[name] = document[name][:1]
        document[name][0]["engines"] = {engine: result for engine, result in document[name][0]["engines"].items() if engine in engines}
    for name in ("cells", "rounds", "verdicts"):
        block[name] = [entry for entry in block[name] if entry["case"] == 0 and entry.get("engine", engines[0]) in engines]
    for name in sets:
        block["config"]["shape"][name]["cases"] = block["config"]["shape"][name]["cases"][:1]
    block["config"]["engine"] = {name: node for name, node in block["config"]["engine"].items() if name in engines}
    block["config_sha256"] = digest(block["config"])
    document["source_sha256"] = dict(list(document["source_sha256"].items())[:2])
    facts = run_facts(Subject(document=document))
    assert facts is not None, "one of our protocols"
    document |= {"limitations": list(sentences.limitations(facts)), "source_replay_checks": sentences.replay_checks(facts)}
    return document


def older_own() -> Document:
    """One of ours without what schema 1.2 brought."""
    document = small_own()
    block = document["mkframe"]
    del block["device"]["peaks"]
    for cell in block["cells"]:
        for key in ("rates", "kernels", "twin"):
            del cell[key]
    return document


def seeds() -> dict[str, Document]:
    """Documents by name; each call makes new ones."""
    made = {"comparison": small_comparison(), "energy": small_energy(), "verify-only": verify_only(), "own": small_own()}
    made |= {"unrolled": small_own("residual-mlp-engines-h200-unrolled"), "cold": small_own("residual-mlp-footprint-2-h200-cold")}
    made |= {"older": older_own(), "faults": small_own("faults-h200-per-call")}
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
