"""The part of L2 that is set aside for persisting accesses. It belongs to the context: what one engine leaves, all others run with."""

from typing import Any

from mkframe.graph.driver import check, driver
from mkframe.model.outcome import Rejected

NAME = "persisting L2"


class Carveout:
    """Remembers the limit when it is made. Needs a current CUDA context; `api` stands in for the driver in tests.

    Where the device has no persisting accesses (before compute capability 8.0, or in a MIG slice) there is nothing to do.
    """

    def __init__(self, device: int = 0, api: Any = None) -> None:
        self._api = driver() if api is None else api
        attribute = self._api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
        handle = check(self._api.cuDeviceGet(device))
        self._exists = int(check(self._api.cuDeviceGetAttribute(attribute, handle))) > 0
        self._found_bytes = self._read() if self._exists else 0

    def reset(self) -> None:
        """Before a cell: lines that persist become normal ones, and the limit is read back.

        Raises RuntimeError where the limit is not the one that was found: `check` after each cell has put it back.
        """
        if self._exists:
            check(self._api.cuCtxResetPersistingL2Cache())
            self._demand()

    def check(self) -> None:
        """After a cell. Raises Rejected where it left another limit, after the old one was set and read back."""
        if not self._exists:
            return
        left_bytes = self._read()
        if left_bytes != self._found_bytes:
            check(self._api.cuCtxSetLimit(self._limit, self._found_bytes))
            check(self._api.cuCtxResetPersistingL2Cache())
            self._demand()
            raise Rejected(
                f"{NAME}: the engine left {left_bytes} bytes of L2 set aside, and found {self._found_bytes}; "
                "a call must put cuCtxSetLimit back, because every engine of this context would run with it"
            )

    @property
    def _limit(self) -> Any:
        return self._api.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE

    def _read(self) -> int:
        return int(check(self._api.cuCtxGetLimit(self._limit)))

    def _demand(self) -> None:
        now_bytes = self._read()
        if now_bytes != self._found_bytes:
            raise RuntimeError(f"{NAME}: {now_bytes} bytes of L2 are set aside, {self._found_bytes} were when the worker started")
