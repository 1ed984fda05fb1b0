"""The engine door."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mkframe.errors import PluginError
from mkframe.model.device import Device
from mkframe.model.kernel import Kernel, Target
from mkframe.model.precision import Precision
from mkframe.model.tensors import TensorSpec
from mkframe.plugin.launches import Launches


@dataclass(frozen=True, kw_only=True, slots=True)
class NoOptions:
    """For engines without options."""


class Engine(ABC):
    """One way to compute a workload. An instance holds no state between cells.

    id: the report key. Lower-case letters, digits and hyphens; never ending in `-graph`, which names the graph form that
        the framework makes of every CUDA engine.
    workload: the id of the workload that it computes.
    devices: subset of ("cpu", "cuda").
    precisions: ids of the contracts that it can hold.
    baseline: True for an engine that others are compared with.
    overlaps: True only where calls in a row may overlap: its first launch carries a programmatic edge. Every other engine must
        end its calls before the next one starts, or is rejected.
    limits: one line for people: what it cannot do.
    Options: a dataclass; its fields appear as `engine.ID.options.FIELD` in the configuration, typed.

    Import torch, compilers and the like inside `bind`: listing engines must not cost their import.
    """

    id: str
    workload: str
    devices: tuple[str, ...] = ("cpu", "cuda")
    precisions: tuple[str, ...] = ("fp16",)
    baseline: bool = False
    overlaps: bool = False
    limits: str = ""
    Options: ClassVar[type] = NoOptions

    def on(self, kind: str) -> "Engine":
        """The engine that runs under this id on devices of `kind` ("cpu", "cuda"), which `devices` lists: this one, or another one with
        the same id, workload and options. Everything below is asked of it, `devices`, `baseline` and Options of this one."""
        return self

    def unsupported(self, case: Any, precision: Precision, device: Device) -> str | None:
        """The reason why this cell cannot run, as one short clause, or None. Devices and precisions that the class does
        not list are refused before this is asked. Must be cheap: a plan asks it ten thousand times."""
        return None

    def scratch(self, case: Any, precision: Precision, options: Any) -> Mapping[str, TensorSpec]:
        """Tensors that the engine needs beside the workload's: the framework allocates and poisons them."""
        return {}

    def kernels(self, case: Any, precision: Precision, target: Target, options: Any) -> tuple[Kernel, ...]:
        """The kernels that this cell launches on such a device and that can be compiled ahead, without one; none by itself. `compile`
        asks for them, so nothing may be imported here that needs a device or the kernel's compiler."""
        return ()

    @abstractmethod
    def bind(self, case: Any, precision: Precision, tensors: Mapping[str, Any], options: Any) -> Launches:
        """Binds one cell to its tensors (torch tensors on the device, by name: the workload's and `scratch`).

        Compilation, packing of weights and other set-up happen here; it is timed apart and no sample contains it.
        Any exception ends this cell alone.
        """

    def implementation(self, device: Device) -> str:
        """What runs on this device, for the report: `module:Class` unless the engine says more."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    def sources(self) -> tuple[str, ...]:
        """Files beyond the imported Python modules that the numbers depend on (cubins, C++), for `source_sha256`."""
        return ()


def engine_on(engine: Engine, kind: str) -> Engine:
    """`engine.on(kind)`, or the engine itself where it does not list the kind. Raises PluginError for an answer that is no engine of the
    same id, workload and options for this kind."""
    if kind not in engine.devices:
        return engine
    found = engine.on(kind)
    same = is_engine(found) and (found.id, found.workload, found.Options) == (engine.id, engine.workload, engine.Options)
    if not same or kind not in found.devices:
        raise PluginError(
            f"engine {engine.id}: on({kind!r}) must return an engine of the same id, workload and options for {kind}, not {found!r}"
        )
    return found


def is_engine(candidate: object) -> bool:
    """Whether `candidate` is an instance of a concrete engine class."""
    return isinstance(candidate, Engine) and not inspect.isabstract(type(candidate))
