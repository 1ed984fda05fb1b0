"""Which engines were selected, with their options; and what stands against one cell."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from mkframe.errors import ConfigError, MkframeError, PluginError, SelectionError
from mkframe.model.device import Device
from mkframe.model.plan import GRAPH_SUFFIX, EnginePlan
from mkframe.model.precision import Precision
from mkframe.plugin.answers import check_reason, check_scratch, check_text
from mkframe.plugin.asking import asking, failing_as
from mkframe.plugin.contract import ContractBreach
from mkframe.plugin.engine import Engine, engine_on
from mkframe.plugin.registry import Registry, choices
from mkframe.settings.nodes import EngineConfig, Select
from mkframe.settings.typed import typed
from mkframe.text import told

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selected:
    """An engine as the plan names it, with its plugin and its options as the plugin's own type.

    `named`: it was asked for by name, so its mistakes refuse the run. One that a preset brought along costs only its own cells:
    `broken` says why none of them can run, and `options` is None then.
    """

    plan: EnginePlan
    engine: Engine
    options: Any
    named: bool = True
    broken: str | None = None


def select(config: Mapping[str, EngineConfig], workload_id: str, registry: Registry, device: Device) -> tuple[Selected, ...]:
    """Selected engines in order, each once; presets stand for what they name, a named engine's options count wherever it stands.

    Raises SelectionError, PluginError (an engine that could not be loaded, or does not answer) or ConfigError (its options).
    """
    ids: dict[str, None] = {}
    for engine_id, node in config.items():
        ids.update(dict.fromkeys([engine_id] if node.select is None else _preset(node.select, workload_id, registry)))
    if not ids:
        raise SelectionError(f"engine: nothing is selected; {choices('', registry.engine_ids(workload_id))}")
    return tuple(_selected(engine_id, config.get(engine_id), workload_id, registry, device) for engine_id in ids)


def unsupported(selected: Selected, case: Any, precision: Precision, device: Device, protocol: str = "per_call") -> str | None:
    """Why this cell cannot run, as one short clause, or None. Raises PluginError where an engine that was asked for by name gives
    no answer; of one that a preset brought along this is the reason."""
    engine, plan = selected.engine, selected.plan
    if device.kind not in engine.devices:
        return f"runs on {' and '.join(engine.devices)} only"
    if plan.graph and device.kind != "cuda":
        return "CUDA graphs need a CUDA device"
    if protocol != "per_call" and not plan.graph:
        return f"timing={protocol} is for graph forms; select {plan.id}{GRAPH_SUFFIX}"
    if precision.id not in engine.precisions:
        return f"holds {', '.join(engine.precisions)}, not {precision.id}"
    if selected.broken is not None:
        return selected.broken
    whose = "" if not selected.named else f"engine {engine.id}: "
    try:
        reason = answer(f"{whose}unsupported()", check_reason, engine.unsupported, case, precision, device)
        if reason is None and not selected.named:  # the plan will ask for it, and cannot do without an answer
            answer("scratch()", check_scratch, engine.scratch, case, precision, selected.options)
    except PluginError as error:
        if selected.named:
            raise
        return str(error)
    return reason


def asked(what: str, question: Any, *arguments: Any) -> Any:
    """Asks a plugin. Whatever it raises becomes a PluginError that names it; what it prints goes to stderr."""
    with failing_as(PluginError, what):
        return question(*arguments)


def answer(what: str, check: Callable[[Any], T], question: Any, *arguments: Any) -> T:
    """Asks a plugin and checks what it says. Raises PluginError: `WHAT must return ...`."""
    found = asked(what, question, *arguments)
    try:
        return check(found)
    except ContractBreach as breach:
        raise PluginError(f"{what} {breach}") from breach


def _preset(preset: Select, workload_id: str, registry: Registry) -> Iterator[str]:
    for engine_id in registry.engine_ids(workload_id):
        engine = registry.engine(workload_id, engine_id)
        if preset is Select.ALL or engine.baseline:
            yield engine_id
            if "cuda" in engine.devices:
                yield engine_id + GRAPH_SUFFIX


def _selected(engine_id: str, node: EngineConfig | None, workload_id: str, registry: Registry, device: Device) -> Selected:
    base = engine_id.removesuffix(GRAPH_SUFFIX)
    graph = base != engine_id
    engine = _engine(base, engine_id, workload_id, registry)
    if graph and "cuda" not in engine.devices:
        raise SelectionError(f"engine {base} runs on {', '.join(engine.devices)} only and has no graph form; select {base}")
    broken = None
    try:
        options = _options(engine, engine_id, node or EngineConfig())
        engine = asked(f"engine {base}: on()", engine_on, engine, device.kind)
        implementation = answer(f"engine {base}: implementation()", check_text, engine.implementation, device)
    except MkframeError as error:
        if node is not None:
            raise
        broken, options, implementation = str(error), None, f"{type(engine).__module__}:{type(engine).__qualname__}"
    plan = EnginePlan(
        id=engine_id,
        engine=base,
        graph=graph,
        baseline=engine.baseline,
        implementation=implementation,
        options={} if options is None else _plain(options),
    )
    return Selected(plan=plan, engine=engine, options=options, named=node is not None, broken=broken)


def _engine(base: str, engine_id: str, workload_id: str, registry: Registry) -> Engine:
    """Adds to the registry's refusal which workloads the engine does belong to."""
    try:
        return registry.engine(workload_id, base)
    except SelectionError:
        others = [workload for workload, engine in registry.engines if engine == base]
        if not others:
            raise
        right = choices(engine_id, registry.engine_ids(workload_id))
        raise SelectionError(f"engine {engine_id} computes {' and '.join(others)}, not {workload_id}; {right}") from None


def _options(engine: Engine, engine_id: str, node: EngineConfig) -> Any:
    key = f"engine.{engine_id}.options"
    if not isinstance(node.options, Mapping):
        raise ConfigError(f"{key}: expected a group of keys")
    try:
        with asking():
            return typed(engine.Options, dict(node.options), key)
    except (MkframeError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too: no plugin may end the program
        refused = isinstance(error, ValueError | TypeError | AssertionError)  # how a plugin refuses on purpose
        raise ConfigError(f"{key}: {told(error, kind=not refused) if str(error).strip() else 'refused by the engine'}") from error


def _plain(options: Any) -> dict[str, Any]:
    """JSON types: an Enum by its value where that is a text, else by its name."""
    return {name: _plain_value(value) for name, value in asdict(options).items()}


def _plain_value(value: Any) -> Any:
    if hasattr(value, "name") and hasattr(value, "value"):
        return value.value if isinstance(value.value, str) else value.name
    return value


def options_of(engine: Engine, options: Mapping[str, Any]) -> Any:
    """An EnginePlan's `options` as the engine's own type again, for the process that binds it."""
    return typed(engine.Options, dict(options), f"engine.{engine.id}.options")
