"""What plugins answer to a plan: every wrong answer is one line that names who gave it."""

import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from plan_fakes import CPU, FakeEngine, FakeMlp, make_registry
from test_plan_build import config

from mkframe.errors import ConfigError, PluginError
from mkframe.model.plan import RunPlan
from mkframe.plan import build_plan
from mkframe.plugin import Cost, Engine, NoOptions, Role, TensorSpec
from mkframe.plugin.registry import Loaded
from mkframe.settings.nodes import EngineConfig, Select

ALL = {"all": EngineConfig(select=Select.ALL)}


class Scripted(FakeEngine):
    """Answers each question with what the attribute of that name says; an exception is raised."""

    unsupported_answer: Any = None
    scratch_answer: Any = {}  # noqa: RUF012
    implementation_answer: Any = "mine"

    def unsupported(self, case: Any, precision: Any, device: Any) -> Any:
        return said(self.unsupported_answer)

    def scratch(self, case: Any, precision: Any, options: Any) -> Any:
        return said(self.scratch_answer)

    def implementation(self, device: Any) -> Any:
        return said(self.implementation_answer)


def said(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer


def plan(engine: Engine | None = None, select: dict[str, EngineConfig] | None = None, workload: Any = None) -> RunPlan:
    registry = make_registry(() if engine is None else (engine,))
    if workload is not None:
        loaded = Loaded(plugin=workload, origin="built-in", module="fake")
        registry = replace(registry, workloads={**registry.workloads, "residual_mlp": loaded})
    chosen = select or {(engine.id if engine else "base"): EngineConfig()}
    return build_plan(config(engine=chosen), registry, CPU)


def spec(shape: Any = (2,), dtype: Any = "float32", role: Any = Role.SCRATCH) -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype, role=role)


BAD_ENGINES = [
    ("unsupported", ZeroDivisionError("oops"), "unsupported() failed: ZeroDivisionError: oops"),
    ("unsupported", SystemExit(0), "unsupported() failed: SystemExit: 0"),
    ("unsupported", ConfigError("shape: as if it were ours"), "unsupported() failed: ConfigError: shape"),
    ("unsupported", True, "unsupported() must return a reason or None, not True"),
    ("implementation", ZeroDivisionError("oops"), "implementation() failed: ZeroDivisionError: oops"),
    ("implementation", None, "implementation() must return a text, not None"),
    ("implementation", " ", "implementation() must return a text, not ' '"),
    ("scratch", ZeroDivisionError("oops"), "scratch() failed: ZeroDivisionError: oops"),
    ("scratch", None, "scratch() must return names and TensorSpecs, not None"),
    ("scratch", {"h": 5}, "scratch() gives 'h' -> 5; every name stands for a TensorSpec"),
    ("scratch", {5: spec()}, "scratch() gives 5 -> TensorSpec; every name stands"),
    ("scratch", {"h": spec(dtype="float7")}, "scratch() gives h the dtype 'float7'; there are: float16"),
    ("scratch", {"h": spec(dtype=[])}, "scratch() gives h the dtype list; there are: float16"),
    ("scratch", {"h": spec((2, -1))}, "scratch() gives h the shape (2, -1); a shape is a tuple of integers"),
    ("scratch", {"h": spec((2.0,))}, "scratch() gives h the shape (2.0,); a shape"),
    ("scratch", {"h": spec(5)}, "scratch() gives h the shape 5; a shape"),
    ("scratch", {"h": spec((np.int64(5),))}, "scratch() gives h the shape (np.int64(5),); a shape"),
    ("scratch", {"h": spec(role=Role.INPUT)}, "scratch() gives h the role Role.INPUT; here: Role.SCRATCH"),
    ("scratch", {"h": spec(role="scratch")}, "scratch() gives h the role 'scratch'; here: Role.SCRATCH"),
]


@pytest.mark.parametrize(("question", "answer", "message"), BAD_ENGINES)
def test_an_engine_that_was_asked_for_by_name(question: str, answer: Any, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        plan(Scripted("rude", **{f"{question}_answer": answer}))
    assert str(caught.value).startswith(f"engine rude: {message}")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("question", "answer", "message"), BAD_ENGINES)
def test_an_engine_that_a_preset_brings_costs_its_own_cells_alone(question: str, answer: Any, message: str) -> None:
    made = plan(Scripted("rude", **{f"{question}_answer": answer}), select=ALL)
    for case in made.cases:
        reasons = {cell.engine.id: cell.unsupported for cell in case.cells}
        assert message in str(reasons["rude"])
        assert reasons["host"] is None


def test_scratch_under_the_name_of_a_tensor_of_the_workload() -> None:
    with pytest.raises(PluginError, match=r"^engine rude: scratch\(\) gives y, which is one of the workload's tensors"):
        plan(Scripted("rude", scratch_answer={"y": spec()}))


@dataclass(frozen=True, kw_only=True, slots=True)
class Raising(NoOptions):
    def __post_init__(self) -> None:
        raise ZeroDivisionError("a\nb")


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaving(NoOptions):
    def __post_init__(self) -> None:
        sys.exit(0)


@pytest.mark.parametrize(("options", "message"), [(Raising, "ZeroDivisionError: a b"), (Leaving, "SystemExit: 0")])
def test_options_that_fail(options: type, message: str) -> None:
    engine = FakeEngine("rude", Options=options)
    with pytest.raises(ConfigError) as caught:
        plan(engine)
    assert str(caught.value) == f"engine.rude.options: {message}"
    reasons = {cell.engine.id: cell.unsupported for cell in plan(engine, select=ALL).cases[0].cells}
    assert (reasons["rude"], reasons["host"]) == (f"engine.rude.options: {message}", None)


class ScriptedMlp(FakeMlp):
    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def tensors(self, case: Any, precision: Any) -> Any:
        return said(self.answers["tensors"]) if "tensors" in self.answers else super().tensors(case, precision)

    def cost(self, case: Any, precision: Any) -> Any:
        return said(self.answers.get("cost", Cost(bytes=1, flops=1)))

    def shape_of(self, case: Any) -> Any:
        return said(self.answers["shape_of"]) if "shape_of" in self.answers else super().shape_of(case)


@pytest.mark.parametrize(
    ("question", "answer", "message"),
    [
        ("tensors", None, "must return names and TensorSpecs, not None"),
        ("tensors", {"y": spec(dtype="float7", role=Role.OUTPUT)}, "gives y the dtype 'float7'; there are"),
        ("tensors", {"y": spec(role=Role.SCRATCH)}, "gives y the role Role.SCRATCH; here: Role.INPUT, Role.WEIGHT, Role.OUTPUT"),
        ("tensors", {"x": spec(role=Role.INPUT)}, "names no output"),
        ("tensors", SystemExit(1), "failed: SystemExit: 1"),
        ("cost", ZeroDivisionError("oops"), "failed: ZeroDivisionError: oops"),
        ("cost", (1, 2), "must return a Cost, not tuple"),
        ("cost", Cost(bytes=-1, flops=1), "gives bytes -1; it must be an integer of at least 0"),
        ("cost", Cost(bytes=1, flops=float("nan")), "gives flops nan; it must be an integer"),  # type: ignore[arg-type]
        ("cost", Cost(bytes=1.5, flops=1), "gives bytes 1.5; it must be an integer"),  # type: ignore[arg-type]
        ("cost", Cost(bytes=1, flops=True), "gives flops True; it must be an integer"),
        ("shape_of", {"rows": 2.5}, "gives rows the size 2.5; sizes are integers"),
        ("shape_of", {"rows": np.int64(2)}, "gives rows the size int64; sizes are integers"),
        ("shape_of", {3: 4}, "gives 3 the size 4"),
        ("shape_of", None, "must return names and sizes, not None"),
        ("shape_of", KeyError("rows"), "failed: KeyError: 'rows'"),
    ],
)
def test_a_workload_is_named(question: str, answer: Any, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        plan(workload=ScriptedMlp(**{question: answer}))
    assert str(caught.value).startswith(f"workload residual_mlp: {question}() {message}")


def test_a_case_that_fails_otherwise_than_by_refusing() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Case:
        rows: int
        channels: int
        hidden: int
        depth: int = 1

        def __post_init__(self) -> None:
            raise ZeroDivisionError("oops")

    class Odd(FakeMlp):
        pass

    Odd.Case = Case
    with pytest.raises(
        PluginError, match=r"^workload residual_mlp: Case failed for shape\.smoke\.cases\[0\], .*: ZeroDivisionError: oops$"
    ):
        plan(workload=Odd())


def test_what_plugins_print_and_warn_of_in_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    class Loud(FakeEngine):
        def unsupported(self, case: Any, precision: Any, device: Any) -> None:
            print("loud")
            warnings.warn("with a path", RuntimeWarning, stacklevel=1)

    assert plan(Loud("loud")).cases[0].cells[0].unsupported is None
    out, err = capsys.readouterr()
    assert (out, err) == ("", "loud\n" * 2)
