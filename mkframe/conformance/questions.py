"""The requirements that need no tensor: what the plugin declares, and what it answers. No torch here."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, fields, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, get_type_hints

from mkframe.conformance.messages import Broken, NotAsked, Setup
from mkframe.conformance.shapes import wide_cases
from mkframe.errors import ConfigError, PluginError, SelectionError
from mkframe.kernels.targets import SHARED_BYTES, capability_of, target
from mkframe.model.device import Device
from mkframe.model.kernel import Kernel
from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import ITEM_BYTES, Role, TensorSpec
from mkframe.plan.engines import options_of
from mkframe.plugin.answers import check_kernels
from mkframe.plugin.contract import ContractBreach, check_engine
from mkframe.plugin.engine import Engine, engine_on
from mkframe.plugin.loader import load_registry
from mkframe.plugin.registry import Registry, choices
from mkframe.plugin.workload import Workload
from mkframe.settings.typed import typed

_WIDE = 200
_ASKED = 200
_BATCHES = 3
_CHEAP_S = 1e-3
_ABSENT = {
    "cpu": Device(kind="cpu", name="a CPU", memory_bytes=2**36, threads=4),
    "cuda": Device(kind="cuda", name="a GPU", memory_bytes=2**37, index=0, uuid="GPU-0", compute_capability="9.0", driver="0"),
}


class Subject:
    """The engine under test, loaded when it is first asked for."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @cached_property
    def registry(self) -> Registry:
        return load_registry(self.setup.plugin_paths)

    @cached_property
    def workload(self) -> Workload:
        return self.registry.workload(self.workload_id)

    @cached_property
    def engine(self) -> Engine:
        return self.registry.engine(self.workload_id, self.setup.engine)

    def on(self, device: Device) -> Engine:
        """What runs under the engine's id on a device."""
        return engine_on(self.engine, device.kind)

    @cached_property
    def workload_id(self) -> str:
        """The workload that was named, else the only one that has the engine. Raises SelectionError."""
        if self.setup.workload is not None:
            return self.setup.workload
        found = [workload for workload, engine in self.registry.engines if engine == self.setup.engine]
        if len(found) > 1:
            raise SelectionError(f"engine {self.setup.engine} computes {' and '.join(found)}; say which: workload={found[0]}")
        if not found:
            self._refuse()
        return found[0]

    def _refuse(self) -> None:
        wanted, failures = self.setup.engine, self.registry.failures
        for failure in failures:
            if failure.id == wanted:
                raise Broken(f"{failure.origin}: {failure.error}")
        foreign = [failure for failure in failures if failure.origin != "built-in"]
        if foreign:
            raise Broken(f"no engine is called {wanted!r}, and {foreign[0].origin} could not be loaded: {foreign[0].error}")
        names = dict.fromkeys(engine for _, engine in self.registry.engines)
        raise SelectionError(f"no engine is called {wanted!r}; {choices(wanted, names)}")

    @cached_property
    def options(self) -> Any:
        return options_of(self.engine, self.setup.options)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """One device for each kind that the engine lists: the one here, or one that it might find elsewhere."""
        here = {device.kind: device for device in self.setup.devices}
        return tuple(here.get(kind, _ABSENT[kind]) for kind in self.engine.devices)


def loads(subject: Subject) -> str:
    try:
        engine = check_engine(subject.engine)
    except (ContractBreach, PluginError) as error:
        raise Broken(str(error)) from error
    return f"{subject.registry.engines[subject.workload_id, engine.id].origin}, for {subject.workload_id}"


def light_import(subject: Subject) -> str:
    assert subject.engine is not None
    if "torch" in sys.modules:
        raise Broken("importing the plugins imports torch, which every listing and every plan would have to wait for; import it in bind()")
    return "torch is not imported"


def option_defaults(subject: Subject) -> str:
    kind = subject.engine.Options
    defaults = {item.name: _default(item) for item in fields(kind)}
    for name, value in defaults.items():
        try:
            typed(kind, {name: value}, "options")
        except ConfigError as error:
            raise Broken(str(error)) from error
    typed(kind, defaults, "options")
    return f"{len(defaults)} options" if defaults else "no options"


def _default(item: Any) -> Any:
    return item.default if item.default is not MISSING else item.default_factory()


def option_types(subject: Subject) -> str:
    kind = subject.engine.Options
    hints = get_type_hints(kind)
    for item in fields(kind):
        for wrong in _wrong_values(hints[item.name]):
            try:
                typed(kind, {item.name: wrong}, "options")
            except ConfigError:
                continue
            raise Broken(f"options.{item.name} takes {wrong!r}, which is no {hints[item.name].__name__}")
    return f"{len(fields(kind))} options" if fields(kind) else "no options"


def _wrong_values(kind: Any) -> tuple[Any, ...]:
    wrong: tuple[Any, ...] = ([], {}, None)
    if kind is int:
        return (*wrong, "many", 1.5, True)
    if kind is float:
        return (*wrong, "much", True, float("nan"))
    if kind is bool:
        return (*wrong, "perhaps", 1, 0.5)
    if kind is str:
        return (*wrong, True)
    assert issubclass(kind, Enum), "the contract allows no other type"
    return (*wrong, "no such choice of this option", -987_654)


def implementation(subject: Subject) -> str:
    names: list[str] = []
    for device in subject.devices:
        name: Any = subject.on(device).implementation(device)
        if not isinstance(name, str) or not name.strip():
            raise Broken(f"implementation() returns {name!r} on {device.kind}; return a text")
        names.append(name)
    return ", ".join(dict.fromkeys(names))


def sources(subject: Subject) -> str:
    files: Any = subject.engine.sources()
    if not isinstance(files, tuple):
        raise Broken(f"sources() returns {files!r}; return a tuple of files")
    for file in files:
        try:
            with Path(file).open("rb") as opened:
                opened.read(1)
        except (OSError, TypeError, ValueError) as error:
            raise Broken(f"sources() names {file!r}, which cannot be read: {error}") from error
    return f"{len(files)} files" if files else "no files beyond the plugin's modules"


def unsupported_total(subject: Subject) -> str:
    count = 0
    for device, precision, case in _questions(subject):
        where = f"{precision} on {device.kind}, {asdict(case)}"
        try:
            reason: Any = subject.on(device).unsupported(case, PRECISIONS[precision], device)
        except Exception as error:
            raise Broken(f"{where}: {type(error).__name__}: {error}") from error
        if reason is not None and not (isinstance(reason, str) and reason.strip()):
            raise Broken(f"{where}: returns {reason!r}; return a reason or None")
        count += 1
    if not count:
        raise NotAsked("engine and workload share no precision")
    return f"{count} questions"


def unsupported_steady(subject: Subject) -> str:
    questions = list(_questions(subject))

    def answers(order: list[tuple[Device, str, Any]]) -> dict[tuple[str, str, Any], str | None]:
        return {(device.kind, name, case): subject.on(device).unsupported(case, PRECISIONS[name], device) for device, name, case in order}

    first, second = answers(questions), answers(questions[::-1])
    for key, answer in first.items():
        if second[key] != answer:
            raise Broken(f"{key[1]} on {key[0]}, {asdict(key[2])}: first {answer!r}, then {second[key]!r}")
    return f"{len(questions)} questions, asked again in reverse order"


def unsupported_cheap(subject: Subject) -> str:
    questions = list(_questions(subject))[:_ASKED]
    best_s = float("inf")
    for _ in range(_BATCHES):
        begin = perf_counter()
        for device, precision, case in questions:
            subject.on(device).unsupported(case, PRECISIONS[precision], device)
        best_s = min(best_s, (perf_counter() - begin) / len(questions))
    if best_s > _CHEAP_S:
        raise Broken(f"{best_s * 1e3:.1f} ms a question; a plan asks ten thousand times, so find out once and remember it")
    return f"{best_s * 1e6:.1f} us a question"


def scratch_declared(subject: Subject) -> str:
    count = 0
    for device, precision, case in _questions(subject):
        if subject.on(device).unsupported(case, PRECISIONS[precision], device) is None:
            first, second = (subject.on(device).scratch(case, PRECISIONS[precision], subject.options) for _ in range(2))
            _check_scratch(subject, precision, case, first)
            if dict(first) != dict(second):
                raise Broken(f"{precision}, {asdict(case)}: two answers differ")
            count += 1
    if not count:
        raise NotAsked("unsupported() refuses every generated case")
    return f"{count} answers"


def _check_scratch(subject: Subject, precision: str, case: Any, found: Any) -> None:
    where = f"{precision}, {asdict(case)}"
    if not isinstance(found, Mapping):
        raise Broken(f"{where}: scratch() returns {type(found).__name__}; return a mapping of TensorSpec")
    taken = subject.workload.tensors(case, PRECISIONS[precision])
    for name, spec in found.items():
        if not isinstance(name, str) or not isinstance(spec, TensorSpec):
            raise Broken(f"{where}: scratch() maps {name!r} to {type(spec).__name__}; map a name to a TensorSpec")
        if name in taken:
            raise Broken(f"{where}: scratch tensor {name} has the name of one of the workload's tensors")
        if spec.role is not Role.SCRATCH:
            raise Broken(f"{where}: scratch tensor {name} has the role {spec.role}")
        if spec.dtype not in ITEM_BYTES:
            raise Broken(f"{where}: scratch tensor {name} has the dtype {spec.dtype!r}; there are: {', '.join(ITEM_BYTES)}")
        if not all(type(size) is int and size >= 0 for size in spec.shape):
            raise Broken(f"{where}: scratch tensor {name} has the shape {spec.shape}")


def kernels_declared(subject: Subject) -> str:
    if "cuda" not in subject.engine.devices:
        return "it runs on no CUDA device"
    kernels: set[Kernel] = set()
    for precision, case in dict.fromkeys((precision, case) for _, precision, case in _questions(subject)):
        contract = PRECISIONS[precision]
        for arch in SHARED_BYTES:
            device = replace(_ABSENT["cuda"], compute_capability=capability_of(arch))
            engine = subject.on(device)
            if precision not in engine.precisions or engine.unsupported(case, contract, device) is not None:
                continue
            where = f"{precision}, {asdict(case)}, {arch}"
            answers = [engine.kernels(case, contract, target(arch, multiprocessors=132), subject.options) for _ in range(2)]
            try:
                first, second = (check_kernels(found) for found in answers)
            except ContractBreach as breach:
                raise Broken(f"{where}: kernels() {breach}") from breach
            if first != second:
                raise Broken(f"{where}: two answers differ")
            for kernel in first:
                if kernel.shared_bytes > SHARED_BYTES[arch]:
                    raise Broken(
                        f"{where}: {kernel.name} takes {kernel.shared_bytes} bytes of shared memory, there are {SHARED_BYTES[arch]}"
                    )
            kernels.update(first)
    return f"{len(kernels)} kernels"


def _questions(subject: Subject) -> Iterator[tuple[Device, str, Any]]:
    """Every generated case in every precision that workload and engine share, on every kind of device that the engine lists."""
    for device in subject.devices:
        for precision in (name for name in subject.on(device).precisions if name in subject.workload.precisions):
            for case in wide_cases(subject.workload, _WIDE):
                yield device, precision, case


CHECKS: Mapping[str, Callable[[Subject], str]] = {
    "loads": loads,
    "light import": light_import,
    "option defaults": option_defaults,
    "option types": option_types,
    "implementation": implementation,
    "sources": sources,
    "unsupported total": unsupported_total,
    "unsupported steady": unsupported_steady,
    "unsupported cheap": unsupported_cheap,
    "scratch declared": scratch_declared,
    "kernels declared": kernels_declared,
}
