"""What may lie in the repository: no path of somebody's machine, and not too much of anything."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MIB = 2**20
# A folder of a person, of root, or of a workplace, as a machine has it; not `~`, not a relative path, not a URL.
MACHINE_PATH = re.compile(rb"(?<![\w.~:/-])/(?:home|Users|root|work|mnt|scratch|data\d*)/[\w.-]+|(?<![\w.~:/-])/root\b|[A-Z]:\\\\?Users\\")


def tracked(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=True).stdout.decode()
    return [root / name for name in listed.split("\0") if name and (root / name).is_file()]


def machine_paths(data: bytes) -> list[str]:
    return [match.decode(errors="replace") for match in MACHINE_PATH.findall(data)]


def test_no_tracked_file_names_a_path_of_a_machine(root: Path) -> None:
    files = tracked(root)
    assert len(files) > 20
    found = {str(path.relative_to(root)): machine_paths(path.read_bytes()) for path in files if path != Path(__file__).resolve()}
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize(
    "text", ["open('/home/ada/x.json')", "cd /root", "PYTHONPATH=/work/main:", '"/Users/ada/report"', r'"C:\\Users\\ada"', "see /mnt/disk1"]
)
def test_paths_of_a_machine_are_found(text: str) -> None:
    assert machine_paths(text.encode())


@pytest.mark.parametrize("text", ["/proc/cpuinfo", "~/work/x", "docs/home/page", "../work/x", "x/root/y", "/usr/bin/env bash", "a/work/b"])
def test_other_paths_are_not(text: str) -> None:
    assert not machine_paths(text.encode())


def test_the_tree_is_small(root: Path) -> None:
    assert sum(path.stat().st_size for path in tracked(root)) < 6 * MIB


def test_the_published_evidence_is_small(root: Path) -> None:
    published = root / "outputs" / "published"
    assert sum(path.stat().st_size for path in tracked(root) if path.is_relative_to(published)) < 4 * MIB


def test_what_a_run_or_a_build_leaves_is_ignored(root: Path) -> None:
    left = [
        "outputs/2030-01-01/report.json",
        ".venv/bin/python",
        ".venv.lock",
        "build/lib/x.py",
        "mkframe.egg-info/PKG-INFO",
        "mkframe/_stamp.py",
    ]
    done = subprocess.run(["git", "-C", str(root), "check-ignore", "--no-index", *left], capture_output=True, text=True, check=False)
    assert done.stdout.split() == left


def test_every_link_of_the_documents_leads_somewhere() -> None:
    dead = []
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
            if "://" not in target and not (document.parent / target).exists():
                dead.append(f"{document.relative_to(ROOT)}: {target}")
    assert dead == []
