"""The tensors of one case: allocated, filled, poisoned and read back by the framework, never by an engine."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mkframe.model.tensors import Role, TensorSpec

Tensors = dict[str, torch.Tensor]
Specs = Mapping[str, TensorSpec]

SHIFT_BYTES = 256
"""How far a shifted buffer starts behind an allocation: another address with the alignment that CUDA allocations have."""

PATTERNS = ("nan", "second")
"""Poisons, in the order of use. `second` is finite, so that an engine that filters NaN cannot hide behind the first."""

_SECOND = -12345.0  # exact in every dtype that we use, and far from any result
_INTEGER_POISON = {"nan": -(2**31), "second": -12345}


def allocate(specs: Specs, device: torch.device, shifted: bool = False) -> Tensors:
    """Uninitialised contiguous tensors. `shifted` places each SHIFT_BYTES behind the start of an allocation of its own.

    Raises torch.OutOfMemoryError (CUDA) or RuntimeError (CPU) where the memory is not there.
    """
    return {name: _allocate(spec, device, SHIFT_BYTES if shifted else 0) for name, spec in specs.items()}


def _allocate(spec: TensorSpec, device: torch.device, offset_bytes: int) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, spec.dtype)
    skip = offset_bytes // dtype.itemsize
    storage = torch.empty(skip + spec.elements, dtype=dtype, device=device)
    return storage[skip:].view(spec.shape)


def fill(tensors: Tensors, values: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> None:
    """Copies drawn values into tensors, rounded once to their dtypes (nearest, ties to even)."""
    for name in names:
        tensors[name].copy_(torch.from_numpy(np.ascontiguousarray(values[name])).to(tensors[name].dtype))


def write(tensor: torch.Tensor, content: torch.Tensor) -> None:
    """Copies `content` into a tensor in place, past torch's count of its changes: an engine that goes by that count, and not by what
    the tensor holds, does not notice, as it would not with inputs that a kernel of somebody else has written."""
    tensor.data.copy_(content)


def poison(tensors: Tensors, specs: Specs, pattern: str) -> None:
    """Fills every output and scratch tensor with a value that no engine computes."""
    for name, spec in specs.items():
        if spec.role in (Role.OUTPUT, Role.SCRATCH):
            tensor = tensors[name].data  # past torch's count of changes, as `write`
            if tensor.is_floating_point():
                tensor.fill_(float("nan") if pattern == "nan" else _SECOND)
            else:
                tensor.fill_(_INTEGER_POISON[pattern])


def names_of(specs: Specs, *roles: Role) -> tuple[str, ...]:
    """The tensors with one of `roles`, in order."""
    return tuple(name for name, spec in specs.items() if spec.role in roles)


def read_back(tensors: Tensors, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Tensors as numpy arrays: float64 for floating-point dtypes, int64 for integers. Waits for the device."""
    return {name: _wide(tensors[name]) for name in names}


def _wide(tensor: torch.Tensor) -> NDArray[Any]:
    host = tensor.detach().cpu()
    wide: NDArray[Any] = host.to(torch.float64 if host.is_floating_point() else torch.int64).numpy()
    return wide
