"""`compile` and `cache` from the command line, without a GPU."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mkframe.cli import cache_command, compile_command
from mkframe.errors import ConfigError, SelectionError, UsageError
from mkframe.kernels import SHARED_BYTES

pytest.importorskip("nvidia_cutlass_dsl", reason="the CuTe DSL has wheels for Linux only")

PLUGINS = f"plugin_path={Path(__file__).parents[1] / 'kernels' / 'plugins'}"


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One cache for this file: most of it asks for the same kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def compiled(*words: str, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert compile_command.main([PLUGINS, *words, "--format", "json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_kernel_of_a_case_and_an_architecture_once(capsys: pytest.CaptureFixture[str]) -> None:
    found = compiled("engine=[sound,sound-graph]", "shape=development", "device.arch=[sm_90a,sm_86]", code=0, capsys=capsys)
    assert (found["format"], found["passed"], found["archs"]) == ("compile/1", True, ["sm_90a", "sm_86"])
    assert [(row["name"], row["arch"]) for row in found["kernels"]] == [("x2", "sm_90a"), ("x1", "sm_90a"), ("x2", "sm_86")]
    first = found["kernels"][0]
    assert first["engines"] == ["sound"]
    assert first["cases"] == ["development[0]", "development[1]", "development[2]", "development[3]"]
    assert first["config"] == {"block": 128, "factor": 2, "stack": False}
    assert (first["shared_bytes"], first["block"], first["cluster"], first["spill_bytes"]) == (0, 128, 1, 0)
    assert [parameter["size"] for parameter in first["parameters"]] == [8, 8, 4]
    assert first["expects"] == {"ld.global": 1}
    assert first["instructions"]["ret"] == 1
    assert 0 < first["registers"] < 64
    assert first["ptx_lines"] > 20
    assert all(re.fullmatch("[0-9a-f]{64}", first[key]) for key in ("ptx_sha256", "cubin_sha256"))
    assert {(row["case"], row["reason"]) for row in found["refused"]} == {
        (f"development[{index}]", "needs more shared memory") for index in (2, 3, 4)
    }
    again = compiled("engine=sound", "shape=development", "device.arch=sm_90a", code=0, capsys=capsys)
    assert [row["from_cache"] for row in again["kernels"]] == [True, True] or not first["from_cache"]
    assert [row["cubin_sha256"] for row in again["kernels"]] == [row["cubin_sha256"] for row in found["kernels"][:2]]


def test_options_reach_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    found = compiled("engine=sound", "engine.sound.options.block=64", "device.arch=sm_80", code=0, capsys=capsys)
    assert {row["block"] for row in found["kernels"]} == {64}


@pytest.mark.parametrize(
    ("engine", "problem"),
    [
        ("spills", r"spills: \d+ bytes of local memory a thread"),
        ("lacks", "lacks the instruction mma.sync"),
        ("misleads", r"kernel wrong block \(.*\): it declares a block of 32 threads, and is compiled for \(64, 1, 1\)"),
    ],
)
def test_a_kernel_that_is_not_as_promised_is_a_finding(engine: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = compiled(f"engine={engine}", "device.arch=sm_90a", code=1, capsys=capsys)
    assert not found["passed"]
    (told,) = found["kernels"][0]["problems"]
    assert re.fullmatch(problem, told)


def test_an_engine_that_gives_no_answer_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_command.main([PLUGINS, "engine=breaks", "shape=development", "device.arch=sm_90a"]) == 1
    assert "breaks (sm_90a, development[0] and 4 more cases): failed: kernels() failed: KeyError: 'no tile'" in capsys.readouterr().out


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_command.main([PLUGINS, "engine=[sound,lacks,torch-cublas]", "shape=smoke", "device.arch=[sm_90a]"]) == 1
    out = capsys.readouterr().out
    assert "kernels of residual_mlp in fp16, nvidia-cutlass-dsl 4.8" in out
    assert "ld.global 1, mma.sync 0" in out
    assert re.search(r"^x\d \(sm_90a, smoke\[0\]\): lacks the instruction mma\.sync$", out, re.MULTILINE)
    assert "torch-cublas: not compiled ahead: it has no kernels that can be" in out


def test_all_takes_the_engines_with_kernels_and_names_the_others(run_cli: Any) -> None:
    """Of the built-in engines, for every architecture, as in CI: one process, nothing written beside the cache."""
    result = run_cli("compile", "engine=all", f"device.arch=[{','.join(SHARED_BYTES)}]", "--format", "json")
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    found = json.loads(result.stdout)
    assert found["archs"] == list(SHARED_BYTES)
    assert {"torch-cublas", "torch-compile"} <= set(found["not_compiled_ahead"])
    assert list(Path().iterdir()) == []


def archs(*words: str, capsys: pytest.CaptureFixture[str]) -> Sequence[str]:
    found: Sequence[str] = compiled("engine=torch-cublas", *words, code=0, capsys=capsys)["archs"]
    return found


def test_without_a_name_the_device_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert archs("device=cpu", capsys=capsys) == list(SHARED_BYTES)
    assert archs("device=h200", capsys=capsys) == ["sm_90a"]
    assert archs("device=rtx3090", capsys=capsys) == ["sm_86"]
    assert archs("device=h200", "device.arch='[sm_80, sm_89]'", capsys=capsys) == ["sm_80", "sm_89"]


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["device.arch=sm_75"], ConfigError, "device.arch: 'sm_75' is not known; there are: sm_80, sm_86"),
        (["device.arch=[]"], UsageError, "give one architecture or a list"),
        (["device.arch="], UsageError, "give one architecture or a list"),
        (["--format", "xml"], UsageError, "--format takes text or json, not 'xml'"),
        (["engine=none-such"], SelectionError, "none-such"),
        (["precision=fp64"], SelectionError, "fp64"),
        (["-m", "shape=smoke"], UsageError, "compile looks at one job"),
        (["engine=sound", "engine.sound.options.blocks=1"], ConfigError, "blocks"),
    ],
)
def test_wrong_words(words: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        compile_command.main([PLUGINS, *words])


def test_the_cache_is_listed_and_cleared(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "mkframe"
    assert cache_command.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [f"0 kernels, 0 bytes in {folder}/kernels", f"0 device cards in {folder}/devices"]
    compiled("engine=sound", "shape=development", "device.arch=sm_90a", code=0, capsys=capsys)
    (folder / "devices").mkdir()
    (folder / "devices" / "GPU-1.json").write_text("{}", encoding="utf-8")
    (folder / "kernels" / f"{'0' * 64}.kernel").write_bytes(b"junk")
    assert cache_command.main(["list", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["device_cards"] == {"folder": f"{folder}/devices", "files": ["GPU-1.json"]}
    damaged, *rows = found["kernels"]["entries"]
    assert (damaged["kernel"], damaged["arch"], damaged["bytes"]) == (None, None, 4)
    assert sorted((row["kernel"], row["arch"]) for row in rows) == [("x1", "sm_90a"), ("x2", "sm_90a")]
    assert all(row["module"].endswith(".kernels.scaled") for row in rows)
    assert cache_command.main([]) == 0
    text = capsys.readouterr().out
    assert "damaged" in text
    assert "1 device cards" in text
    old = folder / "kernels" / f"{rows[0]['key']}.kernel"
    os.utime(old, (1000.0, 1000.0))
    assert cache_command.main(["clear", "--older-than", "2"]) == 0
    assert capsys.readouterr().out.startswith("1 kernels removed, ")
    assert not old.exists()
    assert cache_command.main(["clear", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 2
    assert list((folder / "kernels").iterdir()) == []
    assert (folder / "devices" / "GPU-1.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--older-than", "1"], "--older-than belongs to clear"),
        (["clear", "--older-than", "x"], "--older-than takes days from 0 on, not 'x'"),
        (["clear", "--older-than", "-1"], "--older-than"),
        (["clear", "--older-than", "nan"], "--older-than takes days from 0 on, not 'nan'"),
        (["empty"], "invalid choice: 'empty'"),
    ],
)
def test_wrong_words_for_the_cache(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        cache_command.main(words)
