"""The user's cache folder: what can be made again, and is kept because that takes time."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`mkframe` in XDG_CACHE_HOME, where that is an absolute path as its specification demands, else in ~/.cache."""
    named = environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if named and Path(named).is_absolute() else Path(environ.get("HOME") or Path.home()) / ".cache"
    return base / "mkframe"
