"""compute-sanitizer itself: each tool catches a kernel that is broken for it, and finds nothing in sound ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from mkframe.errors import UsageError
from mkframe.sanitize.tool import TOOLS, find

pytestmark = pytest.mark.gpu

PLUGINS = Path(__file__).parent / "broken"
CAUGHT_BY = {
    "memcheck": ("beyond-the-end", "Invalid __global__ write"),
    "racecheck": ("without-a-barrier", "Race reported"),
    "synccheck": ("divergent-barrier", "Barrier error detected"),
    "initcheck": ("never-written", "Uninitialized __global__ memory read"),
}


@pytest.fixture(autouse=True)
def _needs_the_tool() -> None:
    try:
        find(None)
    except UsageError as error:
        pytest.skip(str(error))


def sanitize(run_cli: Any, folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    output = folder / "result.json"
    result = run_cli("sanitize", f"plugin_path={PLUGINS}", "device=cuda", "shape=smoke", *words, "--output", output, timeout=900)
    assert output.is_file(), result.stderr
    return result.returncode, json.loads(output.read_text()), result.stdout + result.stderr


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_catches_what_is_broken_for_it(run_cli: Any, tmp_path: Path, tool: str) -> None:
    engine, message = CAUGHT_BY[tool]
    code, found, output = sanitize(run_cli, tmp_path, f"engine={engine}", f"tool={tool}", "--jobs", "2")
    assert (code, found["passed"]) == (1, False), output
    for cell in found["cells"]:
        assert cell["outcome"] == "errors", output
        assert cell["errors"] > 0
        assert any(message in text for text in cell["messages"]), output


@pytest.mark.parametrize("engine", ["sound", "persistent", "persistent-global"])
def test_sound_engines_have_no_errors(run_cli: Any, tmp_path: Path, engine: str) -> None:
    code, found, output = sanitize(run_cli, tmp_path, f"engine=[{engine},{engine}-graph]", "--jobs", "8")
    assert (code, found["passed"]) == (0, True), output
    assert {cell["tool"] for cell in found["cells"]} == set(TOOLS)
    assert {(cell["outcome"], cell["errors"], cell["calls"]) for cell in found["cells"]} == {("clean", 0, 2)}
    if engine != "sound":  # it allocates, so its graph needs the caching allocator
        assert {cell["allocator"] for cell in found["cells"]} == {"exact"}
