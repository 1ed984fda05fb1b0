"""Breaks a clause of the contract."""

from dataclasses import dataclass

from mkframe.plugin import Engine, Launches


@dataclass(frozen=True)
class Options:
    stages: int


class Breach(Engine):
    id, workload, Options = "breach", "residual_mlp", Options

    def bind(self, case, precision, tensors, options):
        return Launches(call=lambda: None)


ENGINES = (Breach(),)
