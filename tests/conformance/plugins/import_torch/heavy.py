"""Imports torch when it is listed."""

import torch

from mkframe.plugin import Engine, Launches


class Heavy(Engine):
    id, workload = "heavy", "residual_mlp"

    def bind(self, case, precision, tensors, options):
        return Launches(call=lambda: torch.relu(tensors["x"]))


ENGINES = (Heavy(),)
