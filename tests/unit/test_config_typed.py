"""The strict converter, plugin paths from the command line, and the claim of run folders."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.config.folders import claim_job_folder, claim_run_folder, claim_sweep_folder
from mkframe.config.plugin_paths import split_plugin_paths
from mkframe.errors import ConfigError, UnreadableError
from mkframe.settings.typed import typed


class Colour(Enum):
    RED = "red"
    DEEP = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    size: int
    label: str = "x"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_name: Mapping[str, float]
    colour: Colour
    hold: bool | Literal["auto"]
    extra: int | None = None


GOOD: dict[str, Any] = {"leaves": [{"size": 1}], "by_name": {"a": 2}, "colour": "red", "hold": "auto"}


def test_a_tree_is_converted_and_frozen() -> None:
    tree = typed(Tree, GOOD)
    assert tree == Tree(leaves=(Leaf(size=1),), by_name={"a": 2.0}, colour=Colour.RED, hold="auto")
    assert type(tree.by_name["a"]) is float
    assert typed(Tree, {**GOOD, "colour": "DEEP", "hold": False, "extra": 3}).colour is Colour.DEEP


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leaves": [{"size": 1}, {"size": "2"}]}, "k.leaves[1].size: expected an integer, not '2'"),
        ({"leaves": [{"size": True}]}, "k.leaves[0].size: expected an integer, not True"),
        ({"leaves": [{"size": 1.0}]}, "k.leaves[0].size: expected an integer, not 1.0"),
        ({"leaves": {"size": 1}}, "k.leaves: expected a list, not a group of keys"),
        ({"leaves": [{}]}, "k.leaves[0].size: missing"),
        ({"leaves": [{"size": 1, "lable": "y"}]}, "k.leaves[0].lable: no such key; did you mean label?"),
        ({"leaves": [{"size": 1, "label": True}]}, "k.leaves[0].label: expected a text, not True"),
        ({"by_name": {"a": "2"}}, "k.by_name.a: expected a number, not '2'"),
        ({"by_name": {"a": True}}, "k.by_name.a: expected a number, not True"),
        ({"by_name": {"a": float("nan")}}, "k.by_name.a: expected a number, not nan"),
        ({"by_name": [1]}, "k.by_name: expected a group of keys, not a list"),
        ({"colour": "blue"}, "k.colour: expected one of red, DEEP, not 'blue'"),
        ({"hold": "yes"}, "k.hold: expected true or false or auto, not 'yes'"),
        ({"hold": 1}, "k.hold: expected true or false or auto, not 1"),
        ({"extra": "3"}, "k.extra: expected an integer, not '3'"),
    ],
)
def test_a_refusal_names_key_expectation_and_value(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed(Tree, {**GOOD, **change}, "k")
    assert str(caught.value).startswith(message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["leaves", "by_name", "colour", "hold", "size", "x"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_anything_is_converted_or_refused(value: Any) -> None:
    try:
        tree: object = typed(Tree, value, "k")
    except ConfigError as error:
        tree = str(error)
    assert tree.startswith("k") if isinstance(tree, str) else isinstance(tree, Tree)


def split(*argv: str, **environ: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return split_plugin_paths(argv, environ)


def test_plugin_paths_are_taken_off_the_command_line(tmp_path: Path) -> None:
    assert split("engine=a", "plugin_path=here", "-m") == ((str(tmp_path / "here"),), ("engine=a", "-m"))
    assert split('plugin_path=[a, "b c" ,/d]')[0] == (str(tmp_path / "a"), str(tmp_path / "b c"), "/d")
    assert split("plugin_path='[a]'")[0] == (str(tmp_path / "a"),)
    assert split("plugin_path=[]") == ((), ())
    assert split("plugin_path=a", "plugin_path=b")[0] == (str(tmp_path / "b"),)


def test_plugin_paths_of_the_environment_come_last_and_count_once() -> None:
    assert split("plugin_path=/a", MKFRAME_PLUGIN_PATH=os.pathsep.join(["/b", "", "/a"]))[0] == ("/a", "/b")
    assert split(MKFRAME_PLUGIN_PATH="") == ((), ())


def test_plugin_paths_with_a_comma(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'plugin_path=\[a,b\]'"):
        split("plugin_path=a,b")
    (tmp_path / "a,b").mkdir()
    assert split("plugin_path=a,b")[0] == (str(tmp_path / "a,b"),)


def test_a_new_run_folder_gets_a_suffix_where_it_is_taken(tmp_path: Path) -> None:
    folders = [claim_run_folder(tmp_path / "runs" / "now", named=False) for _ in range(3)]
    assert [folder.name for folder in folders] == ["now", "now-2", "now-3"]


def test_runs_started_at_once_never_share_a_folder(tmp_path: Path) -> None:
    start = threading.Barrier(16)
    claimed: list[Path] = []

    def claim() -> None:
        start.wait()
        claimed.append(claim_run_folder(tmp_path / "now", named=False))

    threads = [threading.Thread(target=claim) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(claimed)) == 16


def test_of_runs_that_name_one_folder_at_once_one_gets_it(tmp_path: Path) -> None:
    start = threading.Barrier(16)
    ends: list[str] = []

    def claim() -> None:
        start.wait()
        try:
            claim_run_folder(tmp_path / "mine", named=True)
        except UnreadableError:
            ends.append("refused")
        else:
            ends.append("claimed")

    threads = [threading.Thread(target=claim) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["claimed", *["refused"] * 15]


@pytest.mark.parametrize("trace", ["report.json", "report-fused.json", "samples-abc.npz", "journal.jsonl", "index.json"])
def test_a_named_folder_with_a_run_is_refused(tmp_path: Path, trace: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert claim_sweep_folder(tmp_path, named=True) == tmp_path
    (tmp_path / trace).write_text("")
    for claim in (claim_run_folder, claim_sweep_folder):
        with pytest.raises(UnreadableError, match="holds a run already"):
            claim(tmp_path, named=True)


def test_job_folders_are_exclusive(tmp_path: Path) -> None:
    claim_job_folder(tmp_path / "sweep" / "0")
    with pytest.raises(UnreadableError):
        claim_job_folder(tmp_path / "sweep" / "0")
    with pytest.raises(UnreadableError, match="holds a run already"):
        claim_sweep_folder(tmp_path / "sweep", named=True)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UnreadableError, match="out=DIR"):
            claim_run_folder(path, named=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UnreadableError, match="cannot write"):
            claim_run_folder(tmp_path / "x", named=True)
        with pytest.raises(UnreadableError, match="cannot write"):
            claim_run_folder(tmp_path, named=True)
    finally:
        tmp_path.chmod(0o700)
