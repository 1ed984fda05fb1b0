"""Conformance on a CUDA device: kernel nodes pass everything, and what a graph cannot hold fails there."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
PLUGINS = Path(__file__).parent / "plugins"


def failed(run_cli: Any, engine: str) -> dict[str, str]:
    done = run_cli("conformance", f"plugin_path={PLUGINS}", f"engine={engine}", "device=cuda", "shape=smoke", "--format", "json")
    document = json.loads(done.stdout)
    rows = {row["name"]: row for row in document["requirements"]}
    assert rows["graph capture"]["result"] != "skip", [row for row in rows.values() if row["result"] != "pass"]
    return {name: row["reason"] for name, row in rows.items() if row["result"] == "fail"}


def test_kernel_nodes_pass_everything(run_cli: Any) -> None:
    assert failed(run_cli, "nodes") == {}


def test_an_engine_that_captures_nothing_fails_the_capture(run_cli: Any) -> None:
    found = failed(run_cli, "captures-nothing")
    assert found.keys() == {"graph capture"}
    assert "holds no node" in found["graph capture"]


def test_an_engine_that_captures_an_old_input_fails_what_changes_it(run_cli: Any) -> None:
    assert {"input negated", "input fresh", "graph capture"} <= failed(run_cli, "captures-an-old-input").keys()


def test_a_lost_context_costs_its_own_requirement(run_cli: Any) -> None:
    done = run_cli("conformance", f"plugin_path={PLUGINS}", "engine=illegal-address", "device=cuda", "shape=smoke", "--format", "json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["requirements"]}
    assert done.returncode == 1
    assert rows["binds"]["result"] == "fail"
    assert rows["scratch declared"]["result"] == "pass"
    assert rows["silent"]["result"] == "skip"
