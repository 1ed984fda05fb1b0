"""Configuration files, looked at before Hydra reads them: what it would read wrongly, or never finish reading."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra.core.default_element import ConfigDefault, GroupDefault
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig

from mkframe.errors import ConfigError

MOST_NODES = 200_000
"""Keys, values, lists and groups that one file may have once its aliases stand for what they name."""
DEEPEST = 100
_BYTES_PER_NODE = 2
_PLACED = ("engine", "shape")


class CheckedRepository(ConfigRepository):
    """Hydra's repository; a file that cannot be used raises ConfigError with its name."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        file = None
        if source is not None and source.scheme() == "file":
            file = Path(source.path, source._normalize_file_name(config_path))
            check_file(file)
        result: ConfigResult | None = super().load_config(config_path)
        if file is not None and result is not None:
            _check_place(config_path, file, result)
        return result


def check_file(file: Path) -> None:
    """UTF-8 text of at most MOST_NODES nodes, DEEPEST levels deep. Raises ConfigError; mistakes in the YAML are the reader's."""
    try:
        data = file.read_bytes()
        text = data.decode()
    except OSError as error:
        raise ConfigError(f"{shown(file)}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown(file)}: is not UTF-8 text (byte {error.object[error.start]:#04x} at offset {error.start})") from error
    if len(data) < MOST_NODES * _BYTES_PER_NODE and b"*" not in data and text.count("[") + text.count("{") < DEEPEST:
        return  # without aliases no file of that length has as many nodes
    for loader in (getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader):  # the first one, fast, stops at deep nesting
        try:
            _check_nodes(text, shown(file), loader)
        except yaml.YAMLError:
            continue
        return


def _check_nodes(text: str, name: str, loader: Any) -> None:
    """Counts from the parser's events, so that neither depth nor aliases cost more than the text is long."""
    count = 0
    sizes: dict[str, int] = {}  # of what each anchor names, aliases inside it expanded
    opened: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in opened):
                raise ConfigError(f"{name}: the alias *{event.anchor} stands inside what it names; it has no end")
            count += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor:
                sizes[anchor] = count - before
        if count > MOST_NODES:
            raise ConfigError(f"{name}: has more than {MOST_NODES:,} values, its aliases resolved; write a grid, or fewer cases")
        if len(opened) > DEEPEST:
            raise ConfigError(f"{name}: is nested more than {DEEPEST} levels deep")


def _check_place(config_path: str, file: Path, result: ConfigResult) -> None:
    """A choice of `engine` or `shape` stands under its own id; without the line that says so its keys land beside the ids."""
    group, _, name = config_path.partition("/")
    if group in _PLACED and name and isinstance(result.config, DictConfig) and len(result.config) and not result.header.get("package"):
        name = name.removesuffix(".yaml")
        raise ConfigError(f"{shown(file)}: its place is missing; the first line of the file must be: # @package {group}.{name}")


def circle(repository: IConfigRepository, starts: Iterable[str]) -> list[str]:
    """Configurations (as `engine/mine`) whose defaults lists lead from each to the next and from the last to the first; [] for
    none. A single one names itself."""
    clean: set[str] = set()
    for start in starts:
        trail = [start]
        branches = [_named(repository, start)]
        while branches:
            following = next(branches[-1], None)
            if following is None:
                branches.pop()
                clean.add(trail.pop())
            elif following in trail:
                return trail[trail.index(following) :]
            elif following not in clean:
                trail.append(following)
                branches.append(_named(repository, following))
    return []


def _named(repository: IConfigRepository, config_path: str) -> Iterator[str]:
    """The configurations that the defaults list of one names, relative to its group as Hydra has it."""
    result = repository.load_config(config_path)
    group = config_path.rpartition("/")[0]
    for entry in (result.defaults_list if result is not None else None) or ():
        if isinstance(entry, ConfigDefault) and entry.path not in (None, "_self_"):
            yield _joined(group, str(entry.path))
        elif isinstance(entry, GroupDefault) and entry.group is not None:
            values = entry.value if isinstance(entry.value, list) else [entry.value]
            yield from (_joined(group, f"{entry.group}/{value}") for value in values if value is not None)


def _joined(group: str, path: str) -> str:
    path = path.removesuffix(".yaml")
    return path[1:] if path.startswith("/") else f"{group}/{path}" if group else path


def shown(file: Path) -> str:
    """A file for messages: relative where it lies below the current folder."""
    relative = os.path.relpath(file)
    return str(file) if relative.startswith("..") else relative
