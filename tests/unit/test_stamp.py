"""Where the source commit comes from, tried with real checkouts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mkframe import stamp
from mkframe.errors import UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROJECT = '[project]\nname = "mkframe"\n'


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def lay(folder: Path, project: str | None = PROJECT) -> Path:
    """A tree that holds stamp.py where this project has it. Returns the path of the module."""
    module = folder / "mkframe" / "stamp.py"
    module.parent.mkdir(parents=True)
    shutil.copy(stamp.__file__, module)
    if project is not None:
        (folder / "pyproject.toml").write_text(project)
    return module


def commit(folder: Path) -> str:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> tuple[Path, Path, str]:
    """(root, module, commit) of a clean checkout; its path has a space."""
    root = tmp_path / "a checkout"
    module = lay(root)
    return root, module, commit(root)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package lies in no checkout and carries no stamp."""
    monkeypatch.setattr(stamp, "_HERE", tmp_path / "site-packages" / "mkframe" / "stamp.py")
    monkeypatch.setitem(sys.modules, "mkframe._stamp", None)


def test_a_clean_checkout(checkout: tuple[Path, Path, str]) -> None:
    _, module, head = checkout
    assert stamp._checkout(module) == stamp.Source(commit=head, dirty=False)


@pytest.mark.parametrize("name", ["mkframe/stamp.py", "plugins/new.py"], ids=["changed file", "new file"])
def test_a_changed_checkout_is_dirty(checkout: tuple[Path, Path, str], name: str) -> None:
    root, module, head = checkout
    (root / name).parent.mkdir(exist_ok=True)
    with (root / name).open("a") as file:
        file.write("# changed\n")
    assert stamp._checkout(module) == stamp.Source(commit=head, dirty=True)


def test_ignored_files_do_not_count(checkout: tuple[Path, Path, str]) -> None:
    root, module, head = checkout
    (root / ".git" / "info" / "exclude").write_text("outputs/\n")
    (root / "outputs").mkdir()
    (root / "outputs" / "report.json").write_text("{}")
    assert stamp._checkout(module) == stamp.Source(commit=head, dirty=False)


def test_a_linked_worktree_has_its_own_commit(checkout: tuple[Path, Path, str], tmp_path: Path) -> None:
    root, _, first = checkout
    other = tmp_path / "other"
    git(root, "worktree", "add", "--quiet", str(other))
    git(other, "commit", "--quiet", "--allow-empty", "--message", "second")
    found = stamp._checkout(other / "mkframe" / "stamp.py")
    assert found == stamp.Source(commit=git(other, "rev-parse", "HEAD"), dirty=False)
    assert found.commit != first


@pytest.mark.parametrize("place", [".venv/lib/python3.11/site-packages", "vendor", "."])
def test_an_installation_inside_another_checkout_is_no_checkout(tmp_path: Path, place: str) -> None:
    """Also where it was installed straight into the root of that checkout, and even where somebody committed it there."""
    root = tmp_path / "other project"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "other"\n')
    module = lay(root / place, project=None)
    commit(root)
    assert stamp._checkout(module) is None


def test_an_untracked_copy_is_no_checkout(checkout: tuple[Path, Path, str]) -> None:
    root, module, _ = checkout
    git(root, "rm", "--quiet", "--cached", "mkframe/stamp.py")
    git(root, "commit", "--quiet", "--message", "without")
    assert stamp._checkout(module) is None


def test_a_checkout_without_a_commit(tmp_path: Path) -> None:
    module = lay(tmp_path / "new")
    git(tmp_path / "new", "init", "--quiet")
    git(tmp_path / "new", "add", "--all")
    assert stamp._checkout(module) is None


def test_a_broken_repository_does_not_lead_to_the_one_above(tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    module = lay(outer / "inner")
    commit(outer)
    (outer / "inner" / ".git").mkdir()
    assert stamp._checkout(module) is None


def test_variables_of_a_git_hook_are_ignored(checkout: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, module, head = checkout
    lay(tmp_path / "hooked", project=PROJECT + "# another tree\n")
    assert commit(tmp_path / "hooked") != head
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "hooked" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "hooked"))
    assert stamp._checkout(module) == stamp.Source(commit=head, dirty=False)


def test_without_git(checkout: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stamp._checkout(checkout[1]) is None


def test_a_hanging_git_is_given_up(checkout: tuple[Path, Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(stamp, "_GIT_SECONDS", 0.1)
    assert stamp._checkout(checkout[1]) is None


def test_git_prints_nothing(checkout: tuple[Path, Path, str], capfd: pytest.CaptureFixture[str]) -> None:
    stamp._checkout(checkout[1])
    shutil.rmtree(checkout[0] / ".git" / "objects")
    assert stamp._checkout(checkout[1]) is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("dirty", "expected"), [(None, None), ("", None), ("0", False), ("1", True)])
def test_variables(nowhere: None, monkeypatch: pytest.MonkeyPatch, dirty: str | None, expected: bool | None) -> None:
    monkeypatch.setenv("MKFRAME_SOURCE_COMMIT", COMMIT)
    if dirty is not None:
        monkeypatch.setenv("MKFRAME_SOURCE_DIRTY", dirty)
    assert (stamp.source_commit(), stamp.source_dirty()) == (COMMIT, expected)


@pytest.mark.parametrize("commit", ["main", COMMIT[:39], COMMIT + "0", COMMIT.upper(), COMMIT + "\n"])
def test_a_variable_that_is_no_commit(nowhere: None, monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    monkeypatch.setenv("MKFRAME_SOURCE_COMMIT", commit)
    with pytest.raises(UsageError, match=r"MKFRAME_SOURCE_COMMIT=.*40 lower-case hex digits") as caught:
        stamp.source_commit()
    assert "\n" not in str(caught.value)


def test_a_dirty_variable_that_is_no_answer(nowhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKFRAME_SOURCE_COMMIT", COMMIT)
    monkeypatch.setenv("MKFRAME_SOURCE_DIRTY", "maybe")
    with pytest.raises(UsageError, match="MKFRAME_SOURCE_DIRTY='maybe'"):
        stamp.source_dirty()


def test_the_checkout_comes_before_the_variables(checkout: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "_HERE", checkout[1])
    monkeypatch.setenv("MKFRAME_SOURCE_COMMIT", COMMIT)
    assert stamp.source_commit() == checkout[2]


def test_nobody_knows(nowhere: None) -> None:
    assert (stamp.source_commit(), stamp.source_dirty()) == (None, None)


MODULE = ("mkframe/stamp.py",)


def second_commit(root: Path, name: str) -> str:
    (root / name).write_text("# another\n")
    return commit(root)


def test_a_later_commit_that_leaves_the_code_alone_is_no_fault(checkout: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    root, module, head = checkout
    monkeypatch.setattr(stamp, "_HERE", module)
    second_commit(root, "README.md")
    assert stamp.commit_fault(stamp.Source(commit=head, dirty=False), MODULE) is None


@pytest.mark.parametrize("dirty", [False, True])
def test_a_commit_with_other_code_is_a_fault_where_nothing_was_changed(
    checkout: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch, dirty: bool
) -> None:
    root, module, head = checkout
    monkeypatch.setattr(stamp, "_HERE", module)
    other = second_commit(root, "mkframe/stamp.py")
    assert stamp.commit_fault(stamp.Source(commit=other, dirty=dirty), MODULE) is None
    fault = stamp.commit_fault(stamp.Source(commit=head, dirty=dirty), MODULE)
    assert fault == (None if dirty else f"source_commit is {head} without changes, and mkframe/stamp.py is another file there")


def test_a_commit_that_is_in_no_checkout_is_a_fault(checkout: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "_HERE", checkout[1])
    fault = stamp.commit_fault(stamp.Source(commit=COMMIT, dirty=True), MODULE)
    assert fault == f"source_commit is {COMMIT}, which this checkout does not have"


def test_outside_of_a_checkout_the_commit_must_be_the_one_that_is_known(nowhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = stamp.Source(commit=COMMIT, dirty=False)
    assert stamp.commit_fault(stamp.Source(commit=None, dirty=None), MODULE) is None
    assert stamp.commit_fault(recorded, MODULE) == f"source_commit is {COMMIT}, and that of this code is unknown"
    monkeypatch.setenv(stamp.COMMIT_VARIABLE, COMMIT)
    assert stamp.commit_fault(recorded, MODULE) is None
    assert stamp.commit_fault(stamp.Source(commit="f" * 40, dirty=False), MODULE) is not None
