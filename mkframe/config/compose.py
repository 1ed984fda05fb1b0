"""Hydra's part: search path, overrides, sweeps, composition. What goes wrong leaves as one of our errors."""

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import setup_globals
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from mkframe.config import messages
from mkframe.config.files import CheckedRepository
from mkframe.config.grammar import repeated_key
from mkframe.config.store import own_set, own_sets, register
from mkframe.errors import ConfigError, UsageError
from mkframe.plugin.registry import Registry

MOST_JOBS = 10_000


def conf_folder() -> Path:
    """The folder of the configuration files: of the checkout or of the installed package."""
    spec = find_spec("mkframe_conf")
    assert spec is not None, "the package mkframe_conf is installed with mkframe"
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


class _Loader(ConfigLoaderImpl):  # type: ignore[misc, unused-ignore]
    """Hydra's loader without the nodes that only the framework names, so that neither lists nor globs show them."""

    def __init__(self, search_path: ConfigSearchPath, hidden: frozenset[tuple[str, str]]) -> None:
        super().__init__(search_path)
        self.repository = CheckedRepository(search_path)
        self._hidden = hidden

    def get_group_options(
        self,
        group_name: str,
        results_filter: ObjectType | None = ObjectType.CONFIG,
        config_name: str | None = None,
        overrides: list[str] | None = None,
    ) -> list[str]:
        options = super().get_group_options(group_name, results_filter, config_name, overrides)
        return [option for option in options if (group_name, option) not in self._hidden]


class Composer:
    """Composes the configurations of one command line."""

    def __init__(self, registry: Registry, *, config_dir: str | None = None, config_name: str = "config") -> None:
        version.setbase("1.3")
        setup_globals()
        conf = conf_folder()
        hidden = register(registry, conf)
        search_path = create_config_search_path(str(conf))
        if config_dir is not None:
            _add_folder(search_path, config_dir)
        self.registry = registry
        self.config_name = config_name
        self.loader = _Loader(search_path, hidden)
        self.options = cache(self._options)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Our own groups, without Hydra's."""
        found = self.loader.get_group_options("", ObjectType.GROUP)
        return tuple(sorted({*found, *messages.PLUGIN_GROUPS} - {"hydra"}))

    def _options(self, group: str) -> tuple[str, ...]:
        return tuple(self.loader.get_group_options(group))

    def parse(self, overrides: Iterable[str]) -> list[Override]:
        """Raises ConfigError for text that Hydra's grammar does not know."""
        parser = OverridesParser.create(config_loader=self.loader)
        parsed = []
        for text in overrides:
            try:
                override = parser.parse_override(text)
            except Exception as error:
                raise messages.unparsable(text, error) from error
            twice = repeated_key(text)
            if twice is not None:
                raise ConfigError(f"{override.key_or_group}: {twice} stands twice in one {{...}}; give it once")
            override.config_loader = self.loader  # for glob(...)
            parsed.append(override)
        return parsed

    def jobs(self, overrides: Sequence[str]) -> list[list[str]]:
        """The overrides of every job of a sweep, in Hydra's order (the last override varies fastest)."""
        jobs = self._split(overrides)
        params = OmegaConf.select(self.compose(jobs[0]), "hydra.sweeper.params")  # sweeps of a primary configuration
        return self._split([*(f"{key}={value}" for key, value in params.items()), *overrides]) if params else jobs

    def _split(self, overrides: Sequence[str]) -> list[list[str]]:
        parsed = self.parse(overrides)
        for override in parsed:
            if override.is_sweep_override() and override.is_hydra_override():
                raise ConfigError(f"{override.key_or_group}: Hydra's own keys cannot be swept over")
            if override.is_interval_sweep():
                raise ConfigError(f"{override.key_or_group}: an interval is no list of values; write range(1,10) or values with commas")
        number = 1
        for override in parsed:
            if override.is_sweep_override():
                values = sum(1 for _ in islice(override.sweep_string_iterator(), MOST_JOBS + 1))
                if not values:
                    raise ConfigError(f"{override.input_line}: matches nothing; {self._listing(override.key_or_group)}")
                number *= values
                if number > MOST_JOBS:
                    raise ConfigError(
                        f"{override.key_or_group}: makes this a sweep of more than {MOST_JOBS:,} jobs; give fewer values, or one job "
                        "a list of shapes or engines in brackets"
                    )
        (jobs,) = BasicSweeper.split_arguments(parsed, None)
        return jobs

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """One job's configuration, with Hydra's node. Raises UsageError or PluginError."""
        parsed = self.parse(overrides)
        messages.check_overrides(parsed, self)
        lines = self._own_sets(overrides, parsed)
        try:
            config = self.load(lines)
        except Exception as error:  # whatever Hydra, omegaconf or the YAML reader raise here is about what the user wrote
            raise messages.explain(error, parsed, self) from error
        _refuse_other_launchers(config)
        return config

    def load(self, overrides: Sequence[str]) -> DictConfig:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Hydra only warns of a search path that does not exist
            return self.loader.load_configuration(self.config_name, list(overrides), RunMode.RUN)

    def _own_sets(self, overrides: Sequence[str], parsed: Sequence[Override]) -> list[str]:
        """Points `shape=S` at the workload's own S where it brings one."""
        lines = list(overrides)
        for index, override in enumerate(parsed):
            names = messages.as_list(override.value()) if override.key_or_group == "shape" else []
            if any(name in own for name in names for own in self._brought.values()):
                workload = self._workload(parsed)
                own = self._brought.get(workload, frozenset())
                chosen = ",".join(own_set(workload, name) if name in own else name for name in names)
                lines[index] = f"shape=[{chosen}]"
        return lines

    @cached_property
    def _brought(self) -> dict[str, frozenset[str]]:
        """Workload -> names of the shape sets that it brings itself."""
        return {workload: frozenset(own_sets(loaded.plugin)) for workload, loaded in self.registry.workloads.items()}

    def _workload(self, parsed: Sequence[Override]) -> str:
        named = [str(override.value()) for override in parsed if override.key_or_group == "workload"]
        return named[-1] if named else self._default_workload

    @cached_property
    def _default_workload(self) -> str:
        """The workload of the primary configuration; "" where it cannot be composed as it stands."""
        with suppress(Exception):
            return str(OmegaConf.select(self.load([]), "workload.id"))
        return ""

    def _listing(self, key: str) -> str:
        return f"there are: {', '.join(self.options(key))}" if key in self.groups else "give at least one value"


def number_job(config: DictConfig, number: int) -> None:
    """Tells a job of a sweep its number, for `hydra.sweep.subdir`."""
    with read_write(config.hydra), open_dict(config.hydra.job):
        config.hydra.job.num = number
        config.hydra.job.id = str(number)


def plain(config: DictConfig) -> dict[str, Any]:
    """The configuration without Hydra's node, interpolations resolved, as dictionaries and lists. Raises ConfigError."""
    result: dict[str, Any] = {}
    for key in config:
        if key == "hydra":
            continue
        try:
            value = config[key]
            result[str(key)] = OmegaConf.to_container(value, resolve=True, throw_on_missing=True) if OmegaConf.is_config(value) else value
        except Exception as error:
            raise messages.unresolved(str(key), error) from error
    return result


def _add_folder(search_path: ConfigSearchPath, folder: str) -> None:
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise UsageError(f"--config-dir: {folder} is not a folder")
    search_path.prepend(provider="command-line", path=f"file://{path}", anchor=SearchPathQuery(provider="schema"))


def _refuse_other_launchers(config: DictConfig) -> None:
    for key, basic in (("launcher", "BasicLauncher"), ("sweeper", "BasicSweeper")):
        target = str(OmegaConf.select(config, f"hydra.{key}._target_"))
        if not target.endswith(f".{basic}"):
            raise messages.other_launcher(f"hydra/{key}")
