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
    packages = {*_HARNESS, *(module.partition(".")[0] for module in plugin_modules)}
    found = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in packages and file and Path(file).suffix == ".py":
            found[_label(name, Path(file))] = _digest(file)
    return found


def file_sources(files: Iterable[str]) -> dict[str, str]:
    """`sources/NAME` -> SHA-256 of files that are no Python modules. Raises UnreadableError for one that cannot be read."""
    return {f"sources/{Path(file).name}": _digest(file) for file in files}


def merge(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """The union, sorted by file."""
    return dict(sorted({**one, **other}.items()))


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
