"""The plugin folders that a user names: which of their files are plugins, and why the others are not."""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, all_suffixes
from pathlib import Path
from types import ModuleType

from mkframe.errors import UsageError
from mkframe.text import printable, told

FOLDER_PREFIX = "mkframe_folder_"
KERNELS = "kernels"


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin to import: the name that a user would ask for, where it stands, and its import name."""

    name: str
    origin: str
    module: str


@dataclass(frozen=True, slots=True)
class Refused:
    """What is called like a plugin and cannot be one."""

    name: str
    origin: str
    reason: str


def open_folders(plugin_paths: Iterable[str]) -> Iterator[Found | Refused]:
    """The contents of every folder, each folder once. Names that begin with `_` or `.` are passed over, and
    so is a folder called `kernels`: its modules import the compiler of kernels, in a process of its own.

    Raises UsageError where a path is no folder that can be read.
    """
    for folder in dict.fromkeys(_resolved(path) for path in plugin_paths):
        package = _synthetic_package(folder)
        names: set[str] = set()
        for path in sorted(_entries(folder), key=lambda path: (not path.is_dir(), path.name)):
            item = None if path.name.startswith(("_", ".")) or path.name == KERNELS else _entry(path, folder.name, package)
            if isinstance(item, Found):  # a package goes before a module of its name, as in every import
                item = None if item.name in names else item
            if item is not None:
                names.add(item.name)
                yield item


def _resolved(path: str) -> Path:
    try:
        folder = Path(path).resolve()
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError, ValueError) as error:  # a symbolic link to itself, a NUL
        raise UsageError(f"plugin_path: {printable(path)} cannot be read ({told(error, kind=False)}); name a folder of plugins") from error
    raise UsageError(f"plugin_path: {printable(str(folder))} is not a folder; name a folder that holds plugin files")


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise UsageError(f"plugin_path: {printable(str(folder))} cannot be read: {error.strerror}") from error


def _entry(path: Path, folder: str, package: str) -> Found | Refused | None:
    suffix = next((suffix for suffix in all_suffixes() if path.name.endswith(suffix)), "")
    name = path.name.removesuffix(suffix) if suffix else path.name
    origin = f"folder {folder}/{path.name}"
    if path.is_dir():
        init = path / "__init__.py"
        if suffix:
            return Refused(name, origin, "is a folder, not a file")
        if not init.is_file():
            return None
        origin += "/__init__.py"
    elif not suffix:
        return None
    elif not path.is_file():
        return Refused(name, origin, _not_a_file(path))
    if "." in name:
        return Refused(name, origin, "cannot be imported: there is a dot in its name; rename it")
    return Found(name, origin, f"{package}.{name}")


def _not_a_file(path: Path) -> str:
    if path.is_symlink():
        return "is a symbolic link that leads to no file"
    kinds = {"is_fifo": "a named pipe", "is_socket": "a socket", "is_block_device": "a device", "is_char_device": "a device"}
    kind = next((kind for question, kind in kinds.items() if getattr(path, question)()), "no regular file")
    return f"is {kind}, not a file"


def _synthetic_package(folder: Path) -> str:
    """Makes a folder importable as a package of its own, so that its modules pickle, and may import one another relatively."""
    name = FOLDER_PREFIX + hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    if name not in sys.modules:
        module = ModuleType(name, "Plugins of one folder.")
        module.__path__ = [str(folder)]
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        module.__spec__.submodule_search_locations = [str(folder)]
        sys.modules[name] = module
    return name
