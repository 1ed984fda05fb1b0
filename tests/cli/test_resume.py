"""Runs that end early go on: nothing measured twice, nothing lost, whatever ended them."""

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkframe.errors import DeviceError, UnreadableError, UsageError
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry
from mkframe.report.write import write_report
from mkframe.run.journal import Journal
from mkframe.run.journal_codec import Entry, encode
from mkframe.run.resume import resume

RUN = (
    "engine=[persistent,torch-cublas]",
    "shape=smoke",
    "device=cpu",
    "timing.processes=2",
    "timing.rounds=4",
    "timing.samples_per_round=20",
)
KILLS_HERE = 20


@pytest.fixture(scope="module")
def torment() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks/kill_resume.py"
    spec = importlib.util.spec_from_file_location("kill_resume", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    done = subprocess.run(
        [sys.executable, "-m", "mkframe", *RUN, f"out={folder}", "--quiet"], cwd=folder.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


@pytest.fixture
def half(finished: Path, tmp_path: Path) -> Path:
    """A run that was cut in the middle of a journal line, before its report."""
    folder = tmp_path / "half"
    folder.mkdir()
    data = (finished / "journal.jsonl").read_bytes()
    cut = data.index(b'"round":1', len(data) // 3) + 5
    (folder / "journal.jsonl").write_bytes(data[:cut])
    return folder


def blocks_of(folder: Path) -> list[dict[str, Any]]:
    entries = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]
    return [entry for entry in entries if entry["event"] == "BlockDone"]


def keys_of(folder: Path) -> list[tuple[Any, ...]]:
    return [(b["set"], b["case"], b["engine"], b["round"]) for b in blocks_of(folder)]


def test_killed_at_random_moments(torment: ModuleType) -> None:
    assert torment.torment(kills=KILLS_HERE, seed=int.from_bytes(os.urandom(4), "big"))["kills"] == KILLS_HERE


def test_a_cut_journal_goes_on_where_it_was_cut(run_cli: Any, half: Path) -> None:
    whole, _, _ = (half / "journal.jsonl").read_text().rpartition("\n")
    before = [json.loads(line) for line in whole.splitlines()[1:]]
    kept = [entry for entry in before if entry["event"] == "BlockDone"]
    assert 0 < len(kept) < 16
    result = run_cli(f"resume={half}")
    assert result.returncode == 0, result.stderr
    assert blocks_of(half)[: len(kept)] == kept
    assert len(keys_of(half)) == len(set(keys_of(half))) == 16
    document = json.loads((half / "report.json").read_text())
    assert document["mkframe"]["incomplete"] is False
    arrays = np.load(half / document["mkframe"]["samples"]["file"])
    workers = arrays["smoke/1/torch-cublas/workers"]
    assert workers.tolist() == sorted(workers.tolist())
    assert len(set(np.concatenate([arrays[key] for key in arrays if key.endswith("/workers")]).tolist())) == 3


def test_a_finished_run_is_only_reported_again(run_cli: Any, finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    before = (folder / "report.json").read_text()
    result = run_cli(f"resume={folder}")
    assert result.returncode == 0, result.stderr
    assert (folder / "journal.jsonl").read_text() == (finished / "journal.jsonl").read_text()
    assert json.loads((folder / "report.json").read_text()) == json.loads(before)


def test_a_report_that_is_replaced_leaves_no_old_samples(run_cli: Any, half: Path) -> None:
    (half / f"samples-{'0' * 64}.npz").touch()
    assert run_cli(f"resume={half}", "--quiet").returncode == 0
    assert len(list(half.glob("samples-*.npz"))) == 1


def test_a_failed_cell_is_not_tried_again(run_cli: Any, root: Path, tmp_path: Path) -> None:
    plugins = f"plugin_path={root / 'tests/cheats/cheating'}"
    first = run_cli(plugins, "engine=[zeros,telling-the-truth]", *RUN[1:], "out=run", "--quiet")
    assert first.returncode == 1
    journal = (tmp_path / "run/journal.jsonl").read_text()
    again = run_cli(plugins, "resume=run", "--quiet")
    assert again.returncode == 1
    assert (tmp_path / "run/journal.jsonl").read_text() == journal


def test_a_plugin_that_is_gone_is_named(run_cli: Any, root: Path) -> None:
    run_cli(f"plugin_path={root / 'tests/cheats/cheating'}", "engine=telling-the-truth", *RUN[1:], "out=run", "--quiet")
    result = run_cli("resume=run")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "telling-the-truth" in result.stderr


def test_other_code_is_refused(run_cli: Any, half: Path) -> None:
    path = half / "journal.jsonl"
    head, _, rest = path.read_text().partition("\n")
    document = json.loads(head)
    document["source_sha256"]["mkframe/stats/rule.py"] = "0" * 64
    path.write_text(json.dumps(document) + "\n" + rest)
    result = run_cli(f"resume={half}")
    assert result.returncode == 2
    assert "mkframe/stats/rule.py has changed since the run began" in result.stderr


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("threads", 777, "the number of threads that torch uses was 777 when the run began and is [0-9]+ now; .* set OMP_NUM_THREADS=777,"),
        ("packages", {"torch": "0.1"}, "the version of .* when the run began and is .* now"),
        ("name", "other", "the name of the device was other when the run began and is cpu now"),
    ],
)
def test_other_conditions_are_refused_and_nothing_is_lost(run_cli: Any, half: Path, field: str, value: Any, complaint: str) -> None:
    path = half / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True)[:-1]
    first = json.loads(lines[1])
    assert first["event"] == "Hello"
    path.write_text("".join([lines[0], json.dumps({**first, field: value}) + "\n", *lines[2:]]))
    before = path.read_bytes()
    result = run_cli(f"resume={half}")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert re.search(complaint, result.stderr)
    assert path.read_bytes() == before
    assert [item.name for item in half.iterdir()] == ["journal.jsonl"]


def test_another_number_of_threads_is_told_with_what_to_do(run_cli: Any, tmp_path: Path) -> None:
    assert run_cli("engine=torch-cublas", *RUN[1:], "out=run", "--quiet", env={"OMP_NUM_THREADS": "1"}).returncode == 0
    path = tmp_path / "run/journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    for name in os.listdir(tmp_path / "run"):
        if name != "journal.jsonl":
            (tmp_path / "run" / name).unlink()
    refused = run_cli("resume=run", env={"OMP_NUM_THREADS": "2"})
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "set OMP_NUM_THREADS=1, or start the run again" in refused.stderr
    assert path.read_bytes() == b"".join(lines[:6])
    assert run_cli("resume=run", env={"OMP_NUM_THREADS": "1"}).returncode == 0


@pytest.mark.parametrize("changed", ["my_engine.py", "_help.py"])
def test_a_changed_plugin_leaves_everything_as_it_was(run_cli: Any, root: Path, tmp_path: Path, changed: str) -> None:
    """The plugin's own file, and one that it imports when it is bound, which the worker alone sees."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    engine = (root / "docs/examples/my_engine.py").read_text()
    (plugins / "my_engine.py").write_text(engine.replace("        tiles = [", "        from . import _help\n\n        tiles = [", 1))
    assert "_help" in (plugins / "my_engine.py").read_text()
    (plugins / "_help.py").write_text("ANYTHING = 1\n")
    assert run_cli(f"plugin_path={plugins}", "engine=my-engine", *RUN[1:], "out=run", "--quiet").returncode == 0
    path = tmp_path / "run/journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    (tmp_path / "run/report.json").unlink()
    (plugins / changed).write_text((plugins / changed).read_text() + "# later\n")
    result = run_cli(f"plugin_path={plugins}", "resume=run")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert f"plugins/{changed} has changed since the run began" in result.stderr
    assert "go back to it, or start the run again" in result.stderr
    assert path.read_bytes() == b"".join(lines[:6])
    assert not (tmp_path / "run/report.json").exists()


def test_a_run_that_goes_on_is_left_alone(run_cli: Any, half: Path) -> None:
    with (half / "journal.jsonl").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = run_cli(f"resume={half}")
    assert result.returncode == 2
    assert "still going on" in result.stderr


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is empty"),
        ("{}\n", "does not begin as a journal"),
        ('{"format":"journal/1"}\n', "line 1 is no head of a journal (it lacks mkframe)"),
        ("nonsense\n", "line 1 is not JSON"),
        ("[]\n", "line 1 is no object"),
    ],
)
def test_what_is_no_journal_is_told(run_cli: Any, tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/journal.jsonl").write_text(content)
    result = run_cli("resume=run")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert complaint in result.stderr


def test_a_broken_line_in_the_middle_is_told(run_cli: Any, half: Path) -> None:
    lines = (half / "journal.jsonl").read_text().splitlines(keepends=True)
    lines[3] = '{"event":"BlockDone"}\n'
    (half / "journal.jsonl").write_text("".join(lines))
    result = run_cli(f"resume={half}")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "line 4 is no entry" in result.stderr


def edited(lines: list[Any], event: str, change: Callable[[Any], None]) -> list[Any]:
    """The lines with the first one of its kind changed; "" is the head."""
    index = 0 if not event else next(i for i, line in enumerate(lines) if line.get("event") == event)
    changed = [*lines]
    changed[index] = json.loads(json.dumps(lines[index]))
    change(changed[index])
    return changed


def put(**values: Any) -> Callable[[Any], None]:
    return lambda line: line.update(values)


def last(lines: list[Any], event: str) -> Any:
    return [line for line in lines if line.get("event") == event][-1]


EDITS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "samples are cut": lambda lines: edited(
        lines, "BlockDone", lambda line: line.update(stream_ms=line["stream_ms"][:9], host_ms=line["host_ms"][:9])
    ),
    "samples are nested": lambda lines: edited(lines, "BlockDone", put(stream_ms=[[1.0] * 20])),
    "samples are texts": lambda lines: edited(lines, "BlockDone", put(stream_ms=["1.0"] * 20)),
    "samples are booleans": lambda lines: edited(lines, "BlockDone", put(stream_ms=[True] * 20)),
    "samples are too large": lambda lines: edited(lines, "BlockDone", put(stream_ms=[1e308] * 20, host_ms=[1e308] * 20)),
    "samples are negative": lambda lines: edited(lines, "BlockDone", put(stream_ms=[-1.0] * 20)),
    "late is a text": lambda lines: edited(lines, "BlockDone", put(late="x")),
    "the round is beyond the plan": lambda lines: edited(lines, "BlockDone", put(round=99)),
    "the round is huge": lambda lines: edited(lines, "BlockDone", put(round=10**30)),
    "the worker is huge": lambda lines: edited(lines, "BlockDone", put(worker=10**30)),
    "the engine is unknown": lambda lines: edited(lines, "BlockDone", put(engine="nobody")),
    "the case is unknown": lambda lines: edited(lines, "BlockDone", put(case=9)),
    "there is no case": lambda lines: edited(lines, "BlockDone", put(case=None)),
    "packages are null": lambda lines: edited(lines, "Hello", put(packages=None)),
    "a floor is empty": lambda lines: edited(lines, "Hello", put(floors=[["a", "b", []]])),
    "facts are a list": lambda lines: edited(lines, "CellReady", put(facts=[1])),
    "a block is told twice": lambda lines: [*lines, last(lines, "BlockDone")],
    "a round is told twice": lambda lines: [*lines, last(lines, "RoundDone")],
    "a failure is a success": lambda lines: [
        *lines,
        {**last(lines, "CellClosed"), "event": "CellFailed", "outcome": "passed", "reason": "x"},
    ],
    "there is no Hello": lambda lines: [line for line in lines if line.get("event") != "Hello"],
    "no cell was ready": lambda lines: [line for line in lines if line.get("event") != "CellReady"],
    "checks are cut": lambda lines: edited(lines, "CellReady", lambda line: line.update(checks=line["checks"][:2])),
    "last checks are cut": lambda lines: edited(lines, "CellClosed", lambda line: line.update(checks=line["checks"][:2])),
    "an error shrinks": lambda lines: edited(lines, "CellReady", lambda line: line["check"].update(max_abs_error=0.5)),
    "no case was ready": lambda lines: [line for line in lines if line.get("event") != "CaseReady"],
    "no cell was closed": lambda lines: [line for line in lines if line.get("event") != "CellClosed"],
    "two rounds change places": lambda lines: [
        {**line, "round": 1 - line["round"]} if line.get("round") in (0, 1) else line for line in lines
    ],
    "the device is of no kind": lambda lines: edited(lines, "", lambda line: line["device"].update(kind="tpu")),
    "the configuration is another one": lambda lines: edited(lines, "", lambda line: line["config"]["timing"].update(rounds=5)),
    "the commit is none": lambda lines: edited(lines, "", put(source_commit="main")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_journal_is_one_line_that_names_it(finished: Path, registry: Registry, tmp_path: Path, edit: str) -> None:
    lines = [json.loads(line) for line in (finished / "journal.jsonl").read_text().splitlines()]
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in EDITS[edit](lines)))
    with pytest.raises(UnreadableError, match=rf"{re.escape(str(path))}, line [0-9]+ ") as refused:
        resume(tmp_path, registry, ())
    assert "\n" not in str(refused.value)


def no_such_commit(lines: list[Any]) -> tuple[list[Any], str]:
    return edited(lines, "", put(source_commit="0" * 40)), "line 1: source_commit is 0{40}, (which this checkout does not have|and that of)"


def no_such_file(lines: list[Any]) -> tuple[list[Any], str]:
    """A file that workers import, and the coordinator does not."""
    file = "mkframe/check/cell.py"
    ready = next(i for i, line in enumerate(lines) if line.get("event") == "CaseReady")
    assert file in lines[ready]["sources"]
    changed = edited(lines, "CaseReady", lambda line: line["sources"].update({file: "0" * 64}))
    return changed, f"line {ready + 1}: {file} has changed since the run began"


def no_such_module(lines: list[Any]) -> tuple[list[Any], str]:
    return edited(
        lines, "", lambda line: line["source_sha256"].update({"mkframe/text.py": "0" * 64})
    ), r"line 1: mkframe/text.py has changed"


@pytest.mark.parametrize("edit", [no_such_commit, no_such_file, no_such_module])
def test_code_that_is_not_this_one_is_one_line_that_names_it(
    finished: Path, registry: Registry, tmp_path: Path, edit: Callable[[list[Any]], tuple[list[Any], str]]
) -> None:
    lines, complaint = edit([json.loads(line) for line in (finished / "journal.jsonl").read_text().splitlines()])
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError, match=f"{re.escape(str(path))}, {complaint}") as refused:
        resume(tmp_path, registry, ())
    assert "\n" not in str(refused.value)


def test_an_edited_journal_ends_the_command_with_2(run_cli: Any, half: Path) -> None:
    path = half / "journal.jsonl"
    path.write_text(re.sub(r'"late":null', '"late":"x"', path.read_text(), count=1))
    result = run_cli(f"resume={half}")
    assert (result.returncode, result.stderr.count("\n"), result.stdout) == (2, 1, "")
    assert f"{path}, line " in result.stderr


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([10**30, 1e308, 5e-324, -1, 0, 1, 1.0, "", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_other_value_is_refused_or_a_journal_that_gives_a_report(
    finished: Path, registry: Registry, tmp_path: Path, data: st.DataObject
) -> None:
    lines = (finished / "journal.jsonl").read_text().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    document = json.loads(lines[number])
    inside, key = data.draw(st.sampled_from(list(places_in(document))))
    inside[key] = data.draw(anything)
    lines[number] = json.dumps(document)
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    refusal: Exception | None = None
    try:
        resumed = resume(tmp_path, registry, ())
        resumed.journal.close()
    except (UnreadableError, UsageError, DeviceError) as error:
        refusal = error
    if refusal is not None:
        named = f"{path}, line " in str(refusal)
        assert named or number == 0, refusal  # the head may name another device
        return
    assert [json.loads(json.dumps(encode(entry))) for entry in entries_of(tmp_path)] == [json.loads(line) for line in lines[1:]]
    assert write_report(tmp_path, resumed.ledger, None) is not None


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) inside a JSON document."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from places_in(item)


def entries_of(folder: Path) -> tuple[Entry, ...]:
    with Journal(folder) as journal:
        return journal.read().entries


@pytest.mark.parametrize("words", [("resume=",), ("resume=nowhere",), ("resume=nowhere", "shape=smoke")])
def test_usage(run_cli: Any, words: tuple[str, ...]) -> None:
    result = run_cli(*words)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "resume" in result.stderr
