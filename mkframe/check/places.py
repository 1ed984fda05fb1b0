"""Where the tensors of a cell lie, and that they stay there as plain tensors."""

from typing import Any

import torch

from mkframe.check.buffers import Tensors
from mkframe.model.outcome import Rejected

NAME = "plain tensors"


class Places:
    """The tensors of a cell as they were allocated. An engine gets these very objects: one that gives them another storage, or
    another class that computes when it is looked at, would be checked on memory or code of its own."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = dict(tensors)
        self._places = {name: _place(tensor) for name, tensor in tensors.items()}

    def check(self) -> None:
        """Raises Rejected with the first tensor that is something else now."""
        for name, tensor in self._tensors.items():
            if type(tensor) is not torch.Tensor:
                raise Rejected(f"{NAME}: the engine made {name} a {type(tensor).__name__}")
            if _place(tensor) != self._places[name]:
                raise Rejected(f"{NAME}: the engine gave {name} another storage, shape or dtype than the framework allocated")


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.untyped_storage().data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device
