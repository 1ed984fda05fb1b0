"""Which files produced the numbers: every imported module of the framework and of the plugins that ran, by SHA-256."""

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from mkframe.canonical import sha256
from mkframe.errors import UnreadableError
from mkframe.plugin.loader import BUILT_IN, FOLDER_PREFIX

_HARNESS = ("mkframe", BUILT_IN)


def imported_sources(plugin_modules: Iterable[str]) -> dict[str, str]:
    """File -> SHA-256 for all modules imported by now that belong to the harness, the built-in plugins, or the packages of
    `plugin_modules`. Files are named from their package on, never by an absolute path.

    Raises UnreadableError for a file that has gone since.
    """
    return {label: _digest(str(file)) for label, file in _imported(plugin_modules).items()}


def sources_now(files: Iterable[str], plugin_modules: Iterable[str]) -> dict[str, str]:
    """File -> SHA-256 as it stands now, for those of `files` (named as `imported_sources` names them) that exist in the packages of
    modules imported by now, whether they are imported themselves or not: only workers import some of them.

    Raises UnreadableError for one that cannot be read.
    """
    found = _imported(plugin_modules)
    folders = {label.partition("/")[0]: file.parents[label.count("/") - 1] for label, file in found.items() if "/" in label}
    now = {}
    for label in files:
        package, _, rest = label.partition("/")
        file = found.get(label)
        if file is None and package in folders and rest.endswith(".py") and ".." not in rest.split("/"):
            file = folders[package] / rest
        if file is not None and file.is_file():
            now[label] = _digest(str(file))
    return now


def file_sources(files: Iterable[str]) -> dict[str, str]:
    """`sources/NAME` -> SHA-256 of files that are no Python modules. Raises UnreadableError for one that cannot be read."""
    return {f"sources/{Path(file).name}": _digest(file) for file in files}


def merge(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The union, sorted by file."""
    return dict(sorted({**one, **other}.items()))


def _imported(plugin_modules: Iterable[str]) -> dict[str, Path]:
    packages = {*_HARNESS, *(module.partition(".")[0] for module in plugin_modules)}
    found = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in packages and file and Path(file).suffix == ".py":
            found[_label(name, Path(file))] = Path(file)
    return found


def _label(module: str, file: Path) -> str:
    parts = module.split(".")
    if parts[0].startswith(FOLDER_PREFIX):  # the synthetic package's name is a hash of a path: the folder's own name says more
        parts[0] = file.parents[len(parts) - 2].name
    if file.name == "__init__.py":
        parts.append("__init__")
    return "/".join(parts) + ".py"


@cache
def _digest(file: str) -> str:
    try:
        return sha256(Path(file).read_bytes())
    except OSError as error:
        raise UnreadableError(f"source file {file} cannot be read for its hash: {error.strerror}") from error
