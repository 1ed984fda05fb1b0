"""Every command in docs/configuration.md is composed and planned with the real registry."""

import re
import shlex
from pathlib import Path

import pytest
from plan_fakes import CPU

from mkframe.config.app import JobResult, run_hydra
from mkframe.plan import build_plan
from mkframe.plan.host import HostRates
from mkframe.plugin.loader import load_registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
COMMANDS = re.findall(r"^python -m mkframe (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 10


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_works(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether a budget fits must not depend on what else this machine is doing.
    monkeypatch.setattr("mkframe.plan.build.measure_host", lambda: HostRates(flops_per_s=2e10, draw_bytes_per_s=5e8))
    registry = load_registry()
    code = run_hydra(
        shlex.split(command),
        registry,
        prepare=lambda config: build_plan(config, registry, CPU),
        job=lambda *_: JobResult(exit_code=0),
        finish_sweep=lambda *_: None,
        tell=lambda _: None,  # how long composing takes is no matter here
    )
    assert (code, capsys.readouterr().err) == (0, "")


def test_the_table_lists_every_group() -> None:
    from mkframe.config.compose import Composer

    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(Composer(load_registry()).groups)
