"""Engine persistent-global: persistent in everything but where h lies. The control for what keeping h with the worker gains."""

from typing import Any

from mkframe.plugin import Engine
from mkframe_plugins.residual_mlp.persistent import Persistent
from mkframe_plugins.residual_mlp.persistent_cuda import PersistentGlobalCuda
from mkframe_plugins.residual_mlp.workload import MlpCase


class PersistentGlobal(Persistent):
    """The same owner, tiles and order of work, with h in a buffer of all rows."""

    id = "persistent-global"

    def on(self, kind: str) -> Engine:
        return self if kind == "cpu" else PersistentGlobalCuda()

    def hidden_rows(self, case: MlpCase, tile: int) -> int:
        """Rows of the buffer for h: all."""
        return case.rows

    def hidden_of(self, h: Any, tile: slice) -> Any:
        """The part of h that a tile uses: its own rows."""
        return h[tile]


ENGINES = (PersistentGlobal(),)
