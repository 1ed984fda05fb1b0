"""What the kernel tells of a CPU: its cores and caches. Everything unknown is None or left out."""

import os
import re
from pathlib import Path

from mkframe.model.device_card import Cache

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def cores() -> int | None:
    """Logical cores of the machine."""
    return os.cpu_count()


def caches(folder: Path = _CACHES) -> tuple[Cache, ...]:
    """The caches that the first core uses, nearest first. Virtual machines may show none."""
    found = [cache for path in sorted(folder.glob("index*")) if (cache := _cache(path)) is not None]
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.type)))


def largest_cache_bytes(found: tuple[Cache, ...]) -> int:
    """0 where no cache is known."""
    return max((cache.bytes for cache in found), default=0)


def _cache(path: Path) -> Cache | None:
    try:
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(path / "size"))
        if size is None or int(size[1]) == 0:
            return None
        return Cache(
            level=int(_text(path / "level")),
            type=_text(path / "type"),
            bytes=int(size[1]) * _FACTORS[size[2]],
            shared_by=count_of(_text(path / "shared_cpu_list")),
        )
    except (OSError, ValueError):
        return None


def count_of(ranges: str) -> int:
    """How many cores a list such as `0-3,8` names. Raises ValueError for anything else."""
    total = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()
