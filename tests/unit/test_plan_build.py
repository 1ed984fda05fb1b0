"""Plans: cells, options, timing, memory, and what the report may know of the configuration."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_fakes import CPU, GPU, FakeEngine, Mode, Quick, QuickOptions, bytes_of, make_registry

from mkframe import canonical
from mkframe.errors import ConfigError, PluginError, SelectionError
from mkframe.model.device import Device
from mkframe.model.plan import RunPlan
from mkframe.model.precision import PRECISIONS
from mkframe.plan import build_plan, memory
from mkframe.plan.engines import options_of
from mkframe.plan.memory import Need, amount
from mkframe.plugin.registry import Registry
from mkframe.settings.nodes import (
    Config,
    DeviceConfig,
    DeviceKind,
    EnergyConfig,
    EnergyProtocol,
    EngineConfig,
    Protocol,
    Select,
    TargetsConfig,
    TimingConfig,
    WorkloadConfig,
)

TIMING = TimingConfig(
    protocol=Protocol.PER_CALL,
    rounds=6,
    samples_per_round=200,
    processes=3,
    warmups=20,
    hold="auto",
    spin_up_s="auto",
    cell_timeout_s=600.0,
)
SMOKE = {"cases": [{"rows": 2, "channels": 4, "hidden": 8}, {"rows": 3000, "channels": 4, "hidden": 8, "depth": 2}]}


def config(**changes: Any) -> Config:
    base = Config(
        workload=WorkloadConfig(id="residual_mlp"),
        engine={"quick": EngineConfig()},
        shape={"smoke": SMOKE},
        precision=PRECISIONS["fp16"],
        device=DeviceConfig(kind=DeviceKind.CPU, uuid="GPU-secret"),
        timing=TIMING,
        energy=EnergyConfig(protocol=EnergyProtocol.NONE),
        targets=TargetsConfig(id="h200", source=""),
        plugin_path=("/srv/someone/plugins",),
        out="/srv/someone/results",
    )
    return replace(base, **changes)


def plan(device: Device = CPU, registry: Registry | None = None, **changes: Any) -> RunPlan:
    return build_plan(config(**changes), registry or make_registry(), device)


def selected(*ids: str, **changes: Any) -> dict[str, str | None]:
    """Engine id -> reason of the first case."""
    made = plan(engine={item: _node(item) for item in ids}, **changes)
    return {cell.engine.id: cell.unsupported for cell in made.cases[0].cells}


def _node(name: str) -> EngineConfig:
    return EngineConfig(select=Select(name)) if name in {"all", "baselines"} else EngineConfig()


def test_cases_and_cells() -> None:
    made = plan()
    assert [case.key for case in made.cases] == [("smoke", 0), ("smoke", 1)]
    assert made.cases[0].shape == {"rows": 2, "channels": 4, "hidden": 8}
    assert made.cases[1].shape == {"rows": 3000, "channels": 4, "hidden": 8, "depth": 2}
    assert [[cell.unsupported for cell in case.cells] for case in made.cases] == [[None], ["more than 2000 rows"]]
    assert {case.seed for case in made.cases} == set(made.seeds.values())
    engine = made.cases[0].cells[0].engine
    assert (engine.id, engine.engine, engine.graph, engine.baseline) == ("quick", "quick", False, False)
    assert engine.implementation == "plan_fakes:Quick"
    assert engine.options == {"tile": 16, "mode": "careful", "checked": True, "ratio": 0.5}


def test_all_and_baselines_with_their_graph_forms() -> None:
    graph = "CUDA graphs need a CUDA device"
    on_cpu = selected("all")
    assert on_cpu == {
        "quick": None,
        "quick-graph": graph,
        "host": None,
        "board": "runs on cuda only",
        "board-graph": "runs on cuda only",
        "base": None,
        "base-graph": graph,
    }
    on_gpu = {cell.engine.id: cell.unsupported for cell in plan(GPU, engine={"all": _node("all")}).cases[0].cells}
    assert {name for name, reason in on_gpu.items() if reason} == {"host"}
    assert list(selected("baselines")) == ["base", "base-graph"]


def test_order_of_selection_and_uniqueness() -> None:
    assert list(selected("base-graph", "all", "quick"))[:3] == ["base-graph", "quick", "quick-graph"]
    assert len(selected("base-graph", "all", "quick")) == 7
    assert list(selected("host", "quick")) == ["host", "quick"]


def test_precision_is_checked_per_engine_and_per_workload() -> None:
    assert selected("quick", "base", precision=PRECISIONS["bf16"]) == {"quick": "holds fp16, not bf16", "base": None}
    with pytest.raises(ConfigError, match="residual_mlp does not define tf32"):
        plan(precision=PRECISIONS["tf32"])


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("toy-engine", r"engine toy-engine computes toy, not residual_mlp; there are: quick, host, board, base"),
        ("nope", r"'nope'"),
        ("host-graph", r"host runs on cpu only and has no graph form"),
    ],
)
def test_engines_that_cannot_be_selected(engine: str, message: str) -> None:
    with pytest.raises(SelectionError, match=message):
        selected(engine)
    with pytest.raises(PluginError, match="nowhere"):
        selected("broken")
    with pytest.raises(SelectionError, match="nothing is selected"):
        selected()


def test_options_reach_the_engine_as_its_own_type() -> None:
    made = plan(engine={"quick": EngineConfig(options={"tile": 8, "mode": "fast", "ratio": 2})})
    options = made.cases[0].cells[0].engine.options
    assert options == {"tile": 8, "mode": "fast", "checked": True, "ratio": 2.0}
    json.dumps(options)
    assert options_of(Quick("quick"), options) == QuickOptions(tile=8, mode=Mode.FAST, ratio=2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tile": "8"}, "engine.quick-graph.options.tile: expected an integer, not '8'"),
        ({"tile": True}, "engine.quick-graph.options.tile: expected an integer, not True"),
        ({"mode": "slow"}, "engine.quick-graph.options.mode: expected one of careful, fast, not 'slow'"),
        ({"speed": 1}, "engine.quick-graph.options.speed: no such key"),
        ({"tile": 12}, "engine.quick-graph.options: tile must be a multiple of 8, not 12"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(engine={"quick-graph": EngineConfig(options=options)})
    assert str(caught.value).startswith(message)


class Rude(FakeEngine):
    """Answers `unsupported` with whatever it was given."""

    answer: Any = None

    def unsupported(self, case: Any, precision: Any, device: Device) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [True, "", "  ", 3, ZeroDivisionError("oops")])
def test_an_engine_that_does_not_answer_is_named(answer: Any) -> None:
    registry = make_registry((Rude("rude", answer=answer),))
    with pytest.raises(PluginError, match=r"^engine rude: unsupported\(\)"):
        plan(registry=registry, engine={"rude": EngineConfig()})


def test_a_reason_is_one_line() -> None:
    registry = make_registry((Rude("rude", answer="too\n  wide"),))
    made = plan(registry=registry, engine={"rude": EngineConfig()})
    assert made.cases[0].cells[0].unsupported == "too wide"


def test_timing_depends_on_the_device() -> None:
    assert (plan().timing.hold, plan().timing.spin_up_s) == (False, 0.0)
    assert (plan(GPU).timing.hold, plan(GPU).timing.spin_up_s) == (True, 1.0)
    off = plan(GPU, timing=replace(TIMING, hold=False, spin_up_s=0.25)).timing
    assert (off.hold, off.spin_up_s) == (False, 0.25)
    assert plan().timing.rounds_of(1) == (2, 3)


@pytest.mark.parametrize("change", [{"rounds": 0}, {"samples_per_round": 0}, {"processes": 0}, {"processes": 7}, {"warmups": -1}])
def test_bad_timing(change: dict[str, int]) -> None:
    name = next(iter(change))
    with pytest.raises(ConfigError, match=rf"^timing\.{name}: "):
        plan(timing=replace(TIMING, **change))


def test_the_reports_configuration_names_nothing_of_this_machine() -> None:
    made = plan()
    text = canonical.dumps(made.config)
    for secret in ("someone", "GPU-secret", "plugin_path", '"out"', "uuid"):
        assert secret not in text
    assert made.config["targets"] == "h200"
    assert made.config["timing"]["hold"] == "auto"
    assert made.config["shape"]["smoke"] == SMOKE
    assert made.plugin_paths == ("/srv/someone/plugins",)


def test_what_a_case_needs() -> None:
    registry = make_registry()
    workload = registry.workload("residual_mlp")
    case = workload.Case(rows=5, channels=7, hidden=11)
    quick = SimpleNamespace(engine=Quick("quick"), options=QuickOptions(tile=8))
    plain = SimpleNamespace(engine=FakeEngine("base"), options=None)
    needed = memory.need(workload, case, PRECISIONS["fp16"], [quick, quick, plain])  # type: ignore[list-item]
    given_bytes = bytes_of(((5, 7), "float16"), ((7, 11), "float16"))
    output, scratch = bytes_of(((5, 7), "float32")), bytes_of(((8, 11), "float32"))
    assert needed.device_bytes == given_bytes + 3 * output + 2 * scratch
    assert needed.host_bytes == bytes_of(
        ((5, 7), "float32"), ((7, 11), "float32"), ((5, 7), "float64"), ((7, 11), "float64"), ((5, 7), "float64")
    )


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_what_fits_is_planned_and_what_does_not_is_refused(rows: int, channels: int) -> None:
    shape = {"big": {"cases": [{"rows": rows, "channels": channels, "hidden": 1}]}}
    values, weights = rows * channels, channels
    needed = 2 * (values + weights) + 4 * values + 12 * (values + weights) + 8 * values
    if needed <= CPU.memory_bytes:
        assert len(plan(shape=shape, engine={"base": EngineConfig()}).cases) == 1
    else:
        with pytest.raises(ConfigError, match=r"^shape\.big: \{rows: "):
            plan(shape=shape, engine={"base": EngineConfig()})


def test_device_and_host_memory_are_told_apart() -> None:
    workload = make_registry().workload("residual_mlp")
    case = workload.Case(rows=1, channels=1, hidden=1)
    gib = 2**30
    memory.check(Need(device_bytes=64 * gib, host_bytes=gib), GPU, workload, "s", case, gib)
    with pytest.raises(ConfigError, match=r"needs 65\.0 GiB, and Fake GPU has 64\.0 GiB"):
        memory.check(Need(device_bytes=65 * gib, host_bytes=gib), GPU, workload, "s", case, gib)
    with pytest.raises(ConfigError, match=r"needs 2\.0 GiB, and the machine"):
        memory.check(Need(device_bytes=gib, host_bytes=2 * gib), GPU, workload, "s", case, gib)
    with pytest.raises(ConfigError, match=r"needs 65\.0 GiB, and this machine has 64\.0 GiB"):
        memory.check(Need(device_bytes=33 * gib, host_bytes=32 * gib), CPU, workload, "s", case, gib)


def cell_bytes(rounds: int, samples: int) -> int:
    """What numpy writes for a cell: two arrays of samples, the numbers of the rounds and of their workers."""
    buffer = io.BytesIO()
    numbers = np.zeros(rounds, dtype=np.int64)
    for array in (np.zeros((rounds, samples)), np.zeros((rounds, samples)), numbers, numbers):
        np.save(buffer, array)
    return len(buffer.getvalue())


def test_the_samples_file_has_room() -> None:
    # the largest number of samples whose two cells fit; one more would not
    two = {"smoke": {"cases": [SMOKE["cases"][0], {"rows": 3, "channels": 4, "hidden": 8}]}}
    timing = replace(TIMING, rounds=4, processes=2)
    most = 524_279
    assert 2 * cell_bytes(4, most) <= 64 * 2**20 < 2 * cell_bytes(4, most + 1)
    assert plan(shape=two, timing=replace(timing, samples_per_round=most)).timing.samples_per_round == most
    with pytest.raises(ConfigError, match=rf"^timing\.samples_per_round: .*to at most {most}, "):
        plan(shape=two, timing=replace(timing, samples_per_round=most + 1))
    with pytest.raises(ConfigError, match="and select fewer"):
        plan(shape=two, timing=replace(timing, rounds=10**7, samples_per_round=1))
    # an unsupported cell has no samples
    assert plan(timing=replace(timing, samples_per_round=2 * most)).timing.samples_per_round == 2 * most


def test_too_many_cells() -> None:
    axis = {"start": 1, "stop": 10**6, "num": 150}
    with pytest.raises(ConfigError, match=r"room for 14,285"):
        plan(engine={"all": _node("all")}, shape={"grid": {"rows": axis, "channels": axis, "hidden": 1}})


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**30, "1.0 GiB"), (5 * 2**70, "5,120.0 EiB")]
)
def test_amounts(size: int, text: str) -> None:
    assert amount(size) == text
