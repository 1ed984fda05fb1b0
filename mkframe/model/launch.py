"""A kernel launch as a captured graph holds it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchRecord:
    """One kernel of a captured graph: `grid` in blocks, `block` in threads, `cluster` in blocks, `shared_bytes` per block, static and
    dynamic together; registers and local memory (spills live there) per thread. `programmatic`: it may start before
    a kernel that it waits for has ended."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared_bytes: int
    cooperative: bool
    programmatic: bool
    registers: int
    local_bytes: int

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "LaunchRecord":
        """From plain JSON types. Raises TypeError for other fields."""
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in document.items()}
        return cls(**values)
