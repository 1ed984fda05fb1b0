"""What no launch of CUDA can have (CUDA C++ Programming Guide, technical specifications per compute capability)."""

import math
from typing import Any

_BLOCK = (1024, 1024, 64)
_GRID = (2**31 - 1, 65535, 65535)
_REGISTERS_OF_A_BLOCK = 65536
_BLOCKS_AT_ONCE, _THREADS_AT_ONCE = 32, 2048
"""The most that a multiprocessor of any known capability holds."""
_SHARED_KIB = {"7.0": 96, "7.2": 96, "7.5": 64, "8.0": 164, "8.6": 100, "8.7": 164, "8.9": 100, "9.0": 228}
"""Shared memory of a multiprocessor, a little more than a block may have. Other capabilities are held to nothing here."""


def beyond(kernel: dict[str, Any], capability: str | None, multiprocessors: int | None) -> str | None:
    """Why a launch of a report cannot have run: one clause, or None. `kernel` holds to the schema."""
    threads, blocks = math.prod(kernel["block"]), math.prod(kernel["grid"])
    if any(size > most for size, most in zip(kernel["block"], _BLOCK, strict=False)):
        return f"a block of {' x '.join(map(str, kernel['block']))} threads, and CUDA has at most {' x '.join(map(str, _BLOCK))}"
    if any(size > most for size, most in zip(kernel["grid"], _GRID, strict=False)):
        return f"a grid larger than {' x '.join(map(str, _GRID))} blocks"
    if kernel["registers"] * threads > _REGISTERS_OF_A_BLOCK:
        return f"{kernel['registers']} registers for {threads} threads are more than the {_REGISTERS_OF_A_BLOCK} of a block"
    shared_kib = _SHARED_KIB.get(capability or "")
    if shared_kib is not None and kernel["shared_bytes"] > 1024 * shared_kib:
        return f"more shared memory than the {shared_kib} KiB that a multiprocessor of capability {capability} has"
    if not kernel["cooperative"] or shared_kib is None or multiprocessors is None:
        return None
    if blocks > _BLOCKS_AT_ONCE * multiprocessors or blocks * threads > _THREADS_AT_ONCE * multiprocessors:
        return f"a cooperative launch of more blocks than {multiprocessors} multiprocessors hold at once"
    return None
