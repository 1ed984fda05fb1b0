"""Which files a kernel is made of: its module and what that imports out of its own package, found without importing any of it."""

import ast
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from mkframe.errors import KernelError
from mkframe.text import told


def package_paths(module: str) -> tuple[str, ...]:
    """The folders that the top package of a module is made of; none for a module that stands alone."""
    top = module.partition(".")[0]
    loaded = sys.modules.get(top)
    if loaded is not None:
        return tuple(getattr(loaded, "__path__", ()))
    spec = _spec(top)
    return tuple(spec.submodule_search_locations or ()) if spec is not None else ()


def source_files(*modules: str) -> dict[str, Path]:
    """Import name -> file, for each of `modules` and all that they import out of their own packages, however indirectly, by name.
    A module that stands in no package is taken with the modules of its folder that it imports.

    Raises KernelError for a module that is not there or is no Python source.
    """
    found: dict[str, Path] = {}
    queue = list(modules)
    for module in modules:
        if _file(module) is None:
            raise KernelError(f"kernel module {module} is not there, or is no Python source; name a module that can be imported")
    while queue:
        module = queue.pop()
        file = None if module in found else _file(module)
        if file is None:
            continue
        found[module] = file
        queue += _imported(read_source(file), module, file.name == "__init__.py", alone=not package_paths(module))
        queue += (module[:end] for end, letter in enumerate(module) if letter == ".")  # importing a.b runs a/__init__.py
    return dict(sorted(found.items()))


def kernel_sources(*modules: str) -> tuple[str, ...]:
    """The files that `modules` are made of and that this process has not imported, for Engine.sources: a report names imported ones by
    itself. Empty files are none. Raises KernelError as `source_files` does."""
    files = {module: file for module, file in source_files(*modules).items() if module not in sys.modules}
    return tuple(str(file) for file in files.values() if read_source(file).strip())


def read_source(file: Path) -> bytes:
    """The bytes of a source file. Raises KernelError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise KernelError(f"kernel source {file.name} cannot be read: {error.strerror or error}") from error


def _file(module: str) -> Path | None:
    """The source of a module: in its top package, or beside where a module that stands alone was found."""
    top, *rest = module.split(".")
    roots = package_paths(module)
    if not roots:
        spec = None if rest else _spec(top)
        origin: str | None = None if spec is None else spec.origin
        return Path(origin) if origin is not None and origin.endswith(".py") else None
    for root in roots:
        base = Path(root, *rest)
        candidates = [base / "__init__.py", *([base.with_name(f"{base.name}.py")] if rest else [])]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
    return None


def _spec(top: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


def _imported(source: bytes, module: str, is_package: bool, *, alone: bool) -> Iterator[str]:
    """Names out of the module's own package that its source imports; `alone`: names that lie in its folder."""
    top, folder = module.partition(".")[0], _folder(module) if alone else None
    for name in _all_imported(source, module, is_package):
        if name == top or name.startswith(f"{top}.") or (alone and "." not in name and _folder(name) == folder):
            yield name


@lru_cache(maxsize=512)
def _all_imported(source: bytes, module: str, is_package: bool) -> frozenset[str]:
    """Every name that could be a module among those that a source imports, wherever in it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise KernelError(f"kernel module {module} cannot be parsed: {told(error, kind=False)}") from error
    return frozenset(name for node in ast.walk(tree) for name in _names(node, module, is_package))


def _folder(module: str) -> Path | None:
    file = _file(module)
    return None if file is None else file.parent


def _names(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = module.split(".") if is_package else module.split(".")[:-1]
            base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)
