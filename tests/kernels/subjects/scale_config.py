"""The compile-time parameters of scale.py, for processes without the CuTe DSL."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """`words`: floats that it allocates in shared memory, `shared_bytes`: what its launch asks for."""

    block: int = 128
    factor: int = 3
    words: int = 0
    shared_bytes: int = 0
    cluster: int = 1
