"""A third-party engine in one file: residual_mlp in row tiles of torch operators, with one typed option.

python -m mkframe plugin_path=docs/examples engine=my-engine engine.my-engine.options.tile_rows=32
"""

from dataclasses import dataclass

from mkframe.plugin import Engine, Launches


@dataclass(frozen=True)
class Options:
    tile_rows: int = 64


class MyEngine(Engine):
    id, workload, precisions, Options = "my-engine", "residual_mlp", ("fp16", "bf16", "fp32"), Options

    def unsupported(self, case, precision, device):
        return None if case.depth == 1 else "one block only"

    def bind(self, case, precision, tensors, options):
        x, W1, b1, W2, b2, y = (tensors[name] for name in ("x", "W1", "b1", "W2", "b2", "y"))
        tiles = [slice(row, row + options.tile_rows) for row in range(0, case.rows, options.tile_rows)]

        def call():
            for rows in tiles:
                h = (x[rows].float() @ W1.float() + b1).relu_().to(x.dtype)
                y[rows] = (h.float() @ W2.float()).add_(b2).add_(x[rows]).relu_()

        return Launches(call=call)


ENGINES = (MyEngine(),)
