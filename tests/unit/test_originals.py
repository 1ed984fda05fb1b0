"""Functions that were replaced are found, named and put back."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mkframe.originals import Originals, of_host, told_of


class Meter:
    limit = 3

    def read(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return 2

    @staticmethod
    def plain() -> int:
        return 4


class Child(Meter):
    pass


def measure(scale: int = 1, *, offset: int = 0) -> int:
    return scale + offset


def other(scale: int = 7, *, offset: int = 5) -> int:
    return -scale - offset


@pytest.fixture
def module() -> ModuleType:
    found = ModuleType("meters")
    vars(found).update(measure=measure, LIMIT=5, Meter=type("Meter", (Meter,), {**vars(Meter), "__module__": "meters"}))
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("measure", other),
        ("LIMIT", 6),
        ("Meter", Child),
        ("Meter.read", lambda self: 9),
        ("Meter.size", 9),
        ("Meter.plain", staticmethod(other)),
    ],
)
def test_whatever_a_module_binds_is_watched(module: ModuleType, path: str, value: Any) -> None:
    originals = Originals(modules=(module,))
    assert originals.restore() == ()
    *parents, name = path.split(".")
    owner: Any = getattr(module, parents[0]) if parents else module
    right = vars(owner)[name]
    setattr(owner, name, value)
    assert originals.restore() == (f"meters.{path}",)
    assert vars(owner)[name] is right
    assert originals.restore() == ()


def test_a_name_that_was_removed_comes_back(module: ModuleType) -> None:
    originals = Originals(modules=(module,))
    del module.measure
    assert originals.restore() == ("meters.measure",)
    assert module.measure is measure


def test_a_name_in_front_of_a_builtin_or_of_an_inherited_method_goes_away(module: ModuleType) -> None:
    originals = Originals(modules=(module,))
    module.sum = module.Meter.__reduce__ = other  # type: ignore[attr-defined]
    assert originals.restore() == ("meters.sum", "meters.Meter.__reduce__")
    assert not hasattr(module, "sum")
    assert "__reduce__" not in vars(module.Meter)
    assert originals.restore() == ()


def test_submodules_and_what_python_writes_may_come_later(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    originals = Originals(modules=(module,))
    child = ModuleType("meters.child")
    monkeypatch.setitem(sys.modules, "meters.child", child)
    vars(module).update(child=child, __warningregistry__={})
    assert originals.restore() == ()
    vars(module).update(child=ModuleType("meters.child"))
    assert originals.restore() == ("meters.child",)


class Foreign:
    """Its module is that of these tests: nobody's figures are of this type."""


def test_how_figures_are_packed_is_nobody_s_to_say() -> None:
    table: dict[Any, Any] = {np.float64: measure}
    originals = Originals(reducers={"copyreg.dispatch_table": table})
    table.update({Foreign: other, np.ndarray: other, np.float64: other})
    assert sorted(originals.restore()) == ["copyreg.dispatch_table[float64]", "copyreg.dispatch_table[ndarray]"]
    assert table == {Foreign: other, np.float64: measure}
    del table[np.float64]
    assert originals.restore() == ("copyreg.dispatch_table[float64]",)
    assert table[np.float64] is measure


def test_modules_can_be_watched_later(module: ModuleType) -> None:
    originals = Originals()
    originals.watch((module,))
    vars(module).update(measure=other)
    assert originals.restore() == ("meters.measure",)


def test_an_inherited_name_is_inherited_again() -> None:
    originals = Originals(named=((Child, ("read",)),))
    Child.read = lambda self: 9  # type: ignore[method-assign]
    assert originals.restore() == (f"{__name__}.Child.read",)
    assert "read" not in vars(Child)
    assert Child().read() == 1


@pytest.mark.parametrize("attribute", ["__code__", "__defaults__", "__kwdefaults__"])
def test_another_body_in_the_same_function_is_found(attribute: str) -> None:
    originals = Originals(named=((sys.modules[__name__], ("measure",)),))
    setattr(measure, attribute, getattr(other, attribute))
    assert originals.restore() == (f"{__name__}.measure",)
    assert measure(2, offset=3) == 5
    assert measure() == 1


def test_every_replaced_name_is_told() -> None:
    assert told_of(("time.perf_counter",)) == "time.perf_counter is not the function that the framework started with"
    assert told_of(("a.b", "c.d", "e.f")) == "a.b is not the function that the framework started with (nor are 2 more)"


def test_a_name_that_does_not_exist_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        Originals(named=((Meter, ("colour",)),))


@pytest.mark.parametrize(
    ("module_name", "name"),
    [("time", "perf_counter_ns"), ("numpy", "median"), ("mkframe.stats", "bootstrap_medians"), ("mkframe.decision", "decide")],
)
def test_clocks_and_statistics_are_watched_in_every_process(monkeypatch: pytest.MonkeyPatch, module_name: str, name: str) -> None:
    originals = of_host()
    module = sys.modules[module_name]
    monkeypatch.setattr(module, name, getattr(module, name))  # puts it back should the test fail
    setattr(module, name, other)
    assert originals.restore() == (f"{module_name}.{name}",)


CUDA = [
    ("torch.cuda", "synchronize"),
    ("torch.cuda", "Stream"),
    ("torch.cuda", "_sleep"),
    ("torch.cuda.Event", "record"),
    ("torch.cuda.Event", "elapsed_time"),
    ("torch.cuda.Event", "synchronize"),
    ("torch.cuda.CUDAGraph", "replay"),
    ("mkframe.timing.events", "perf_counter_ns"),
    ("mkframe.timing.cpu", "perf_counter_ns"),
    ("mkframe.timing.events.Held", "read"),
    ("mkframe.timing.protocols.Slope", "_slope"),
    ("mkframe.check.content", "SLOWER_THAN"),
    ("mkframe.check.mutants", "survivors"),
    ("mkframe.graph.nodes", "_cluster"),
    ("mkframe.decision", "decide"),
    ("mkframe.run.messages.BlockDone", "__init__"),
    ("mkframe.run.messages.BlockDone", "stream_ms"),
    ("multiprocessing.connection.Connection", "_send_bytes"),
    ("multiprocessing.connection", "_ForkingPickler"),
    ("builtins", "sum"),
    ("time", "thread_time_ns"),
    ("torch", "mm"),
    ("torch.Tensor", "relu_"),
    ("torch.Tensor", "__matmul__"),
    ("torch.nn.functional", "relu"),
]


@pytest.mark.parametrize(("owner_path", "name"), CUDA)
def test_a_worker_watches_what_its_timings_use(owner_path: str, name: str) -> None:
    import pkgutil

    from mkframe.run.watched import of_worker

    originals = of_worker()
    owner = pkgutil.resolve_name(owner_path)
    setattr(owner, name, other)  # an inherited name must go again, which monkeypatch cannot do twice
    (label,) = originals.restore()
    assert label.endswith(f".{name}")
    assert originals.restore() == ()
