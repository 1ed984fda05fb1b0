"""A kernel launch as a captured graph holds it."""

from dataclasses import dataclass


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
