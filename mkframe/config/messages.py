"""Every mistake in a configuration as one line that says what exists."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from mkframe.config.files import circle
from mkframe.config.grammar import is_key
from mkframe.errors import ConfigError, MkframeError, PluginError, SelectionError
from mkframe.plugin.registry import choices

if TYPE_CHECKING:
    from mkframe.config.compose import Composer

MULTI = ("engine", "shape")
PLUGIN_GROUPS = ("engine", "workload")
LAUNCHERS = ("hydra/launcher", "hydra/sweeper")


def one_line(error: BaseException | str) -> str:
    """Any message on one line."""
    return " ".join(str(error).split())


def as_list(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def unparsable(text: str, error: Exception) -> ConfigError:
    """An override that Hydra's grammar refuses."""
    key, _, value = text.partition("=")
    dotted = re.sub(r"\[(\w+)\]", r".\1", key)
    if dotted != key and is_key(dotted):
        return ConfigError(f"{key}: an item of a list is written with a dot: {dotted}={value}")
    if not is_key(key):
        return ConfigError(f"{key or text}: is no key; a key is one or more names of ASCII letters, digits, _ and -, joined by single dots")
    if not value.strip():
        return ConfigError(f"{key}: no value; write {key}=VALUE (null for none)")
    if value.count("[") != value.count("]") or value.count("{") != value.count("}"):
        return ConfigError(f"{text}: a bracket is missing; quote the override for the shell, as in '{key}=[a,b]'")
    reason = one_line(str(error).splitlines()[0] if str(error) else type(error).__name__).partition(" expecting ")[0]
    return ConfigError(f"{text}: cannot be read ({reason}); quote values with special characters: \"{key}='...'\"")


def other_launcher(key: str) -> ConfigError:
    """Jobs that run side by side share the device."""
    return ConfigError(f"{key}: only basic is possible: jobs run one after the other, or they would spoil each other's timings")


def check_overrides(parsed: Sequence[Override], composer: "Composer") -> None:
    """What can be told from the overrides alone: sweeps without -m, groups and their choices, duplicate selections."""
    for override in parsed:
        key = override.key_or_group
        if key in LAUNCHERS and override.value() != "basic":
            raise other_launcher(key)
        if override.package is not None:
            raise ConfigError(f"{override.input_line}: every group has its one place; leave out @{override.package}")
        if override.is_sweep_override():
            raise ConfigError(_without_multirun(override))
        if key not in composer.groups:
            continue
        if override.is_delete():
            raise ConfigError(f"~{key}: a group cannot be left out; {choices('', composer.options(key))}")
        if override.is_add() or override.is_force_add():
            several = f"; several at once read '{key}=[a,b]'" if key in MULTI else ""
            raise ConfigError(f"{override.input_line}: leave out the +{several}; {choices('', composer.options(key))}")
        value = override.value()
        if isinstance(value, list) and key not in MULTI:
            raise ConfigError(f"{key}: takes one choice, not a list; {choices('', composer.options(key))}")
        if isinstance(value, Mapping) or value is None:
            raise ConfigError(f"{key}: takes the name of a choice; {choices('', composer.options(key))}")
        names = as_list(value)
        if not names:
            raise SelectionError(f"{key}: nothing is selected; {choices('', composer.options(key))}")
        for name in names:
            _check_choice(key, name, composer)
            if names.count(name) > 1:
                raise SelectionError(f"{key}: {name} is selected twice; name it once")


def _without_multirun(override: Override) -> str:
    key, text = override.key_or_group, str(override.input_line)
    if "(" in text or not (key in MULTI or key.startswith("shape.")):
        return f"{text}: this is a sweep; add -m to run one job for each value"
    listed = text.partition("=")[2]
    return f"{key}: for one run with all of them write a list, in quotes: '{key}=[{listed}]'; for one job each add -m"


def _check_choice(group: str, name: str, composer: "Composer") -> None:
    if name in composer.options(group):
        return
    failures = composer.registry.failures if group in PLUGIN_GROUPS else ()
    for failure in failures:
        if name in (failure.id, f"{failure.id}-graph"):
            raise PluginError(f"{group} {name} ({failure.origin}) could not be loaded: {failure.error}")
    broken = f"; could not be loaded: {', '.join(failure.id for failure in failures)} (`mkframe engines` tells why)" if failures else ""
    raise SelectionError(f"no {group} is called {name!r}; {choices(name, composer.options(group))}{broken}")


def explain(error: Exception, parsed: Sequence[Override], composer: "Composer") -> MkframeError:
    """The error behind a composition that failed."""
    for cause in _chain(error):
        if isinstance(cause, MkframeError):
            return cause
        if isinstance(cause, RecursionError):
            return _endless(parsed, composer)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file == composer.config_name:
        names = [name for name in composer.loader.get_group_options("") if not name.startswith("_")]  # Hydra's own
        return ConfigError(f"--config-name: no configuration is called {composer.config_name!r}; {choices(composer.config_name, names)}")
    if isinstance(error, YAMLError):
        return ConfigError(f"a configuration file cannot be read: {one_line(error)}")
    missing = _missing_choice(error, composer)
    if missing is not None:
        return missing
    groups = [str(override.input_line) for override in parsed if override.key_or_group in composer.groups]
    try:
        base = composer.load(groups)
    except Exception as cause:
        return ConfigError(_shorten(cause))
    for override in parsed:
        if override.key_or_group not in composer.groups and not override.is_hydra_override():
            problem = _override_problem(override, base, composer)
            if problem is not None:
                return ConfigError(problem)
    return ConfigError(_shorten(error))


def _missing_choice(error: Exception, composer: "Composer") -> MkframeError | None:
    """A file, or a workload's defaults, that name a choice which does not exist."""
    found = re.search(r"Could not (?:load|find) '([^'/]+)/([^']+)'", str(error))
    if found is None or found[1] not in composer.groups:
        return None
    try:
        _check_choice(found[1], found[2], composer)
    except MkframeError as problem:
        return problem
    return None


def _override_problem(override: Override, base: DictConfig, composer: "Composer") -> str | None:
    key = override.key_or_group
    if "/" in key:
        return f"no configuration group is called {key!r}; {choices(key, composer.groups)}"
    found = _first_unknown(base, key)
    if override.is_add():
        return f"{key}: exists already; leave out the +" if found is None else None
    if override.is_force_add() and found is not None:
        return None
    if found is None:
        return _kind_problem(key, override.value(), base)
    level, name, existing = found
    if existing is None:
        return f"{level} is a single value, not a group of keys; write {level}=VALUE"
    if level == "engine" or level == "shape":
        return f"{level}.{name} is not selected; add it to {level}=[...], or use one of: {', '.join(existing)}"
    names = [*existing, *(composer.groups if not level else ())]
    where = f"{level}.{name}" if level else name
    return f"{where}: no such key; {choices(name, dict.fromkeys(names))}"


def _kind_problem(key: str, value: Any, base: DictConfig) -> str | None:
    """A list in place of a group of keys, or the other way round."""
    node = OmegaConf.select(base, key, throw_on_resolution_failure=False)
    if OmegaConf.is_list(node) and isinstance(value, Mapping):
        return f"{key}: expected a list, not a group of keys; write a list in brackets: '{key}=[{{...}}]'"
    if OmegaConf.is_dict(node) and isinstance(value, list):
        keys = ", ".join(str(name) for name in node)
        return f"{key}: expected a group of keys, not a list; " + (f"its keys are {keys}" if keys else "it has no keys")
    return None


def _endless(parsed: Sequence[Override], composer: "Composer") -> ConfigError:
    """Defaults lists that lead back to themselves, or a nesting that Python cannot follow."""
    selected = [f"{item.key_or_group}/{name}" for item in parsed if item.key_or_group in composer.groups for name in as_list(item.value())]
    round_trip: list[str] = []
    with suppress(Exception):  # a file that cannot be read for its depth
        round_trip = circle(composer.loader.repository, [composer.config_name, *selected])
    if len(round_trip) == 1:
        return ConfigError(f"{round_trip[0]}.yaml: names itself in its defaults; take it out of that list")
    if round_trip:
        trail = " -> ".join(f"{name}.yaml" for name in [*round_trip, round_trip[0]])
        return ConfigError(f"{round_trip[0]}.yaml: its defaults lead back to itself ({trail}); take one of them out")
    return ConfigError("the configuration is nested too deeply to be composed")


def _first_unknown(base: DictConfig, key: str) -> tuple[str, str, list[str] | None] | None:
    """(level, unknown name, keys at that level) of the first part of a dotted key that does not exist; keys are None where
    the level is a single value."""
    node: Any = base
    done: list[str] = []
    for name in re.sub(r"\[([^]]*)\]", r".\1", key).split("."):
        if OmegaConf.is_list(node):
            return None  # omegaconf knows better
        if not OmegaConf.is_dict(node):
            return ".".join(done), name, None
        existing = [str(item) for item in node if not (not done and item == "hydra")]
        if name not in existing:
            return ".".join(done), name, existing
        node = node._get_node(name)
        done.append(name)
    return None


def unresolved(key: str, error: Exception) -> ConfigError:
    """An interpolation or a `???` that has no value."""
    place = getattr(error, "full_key", None) or key
    reason = getattr(error, "msg", None) or str(error)
    return ConfigError(f"{place}: has no value: {one_line(str(reason).splitlines()[0] if reason else type(error).__name__)}")


def _shorten(error: BaseException) -> str:
    """The message of the innermost cause that says anything, without omegaconf's trailer."""
    said = [cause for cause in _chain(error) if str(cause).strip()]
    if not said:
        return f"the configuration cannot be composed ({type(error).__name__})"
    deepest = next((cause for cause in reversed(said) if isinstance(cause, HydraException | OmegaConfBaseException)), said[-1])
    text = re.split(r"\n\s*(?:full_key:|Config search path:|Search path:)", str(deepest))[0]
    key = getattr(deepest, "full_key", None)
    return one_line(f"{key}: {text}" if key else text)


def _chain(error: BaseException) -> Iterable[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
