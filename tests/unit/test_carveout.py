"""The carve-out of L2, with a driver that remembers."""

from types import SimpleNamespace
from typing import Any

import pytest

from mkframe.graph.carveout import Carveout
from mkframe.model.outcome import Rejected

LIMIT, ATTRIBUTE = "persisting limit", "largest carve-out"


class FakeDriver:
    """One context. `stuck`: the limit that it keeps, whatever is set."""

    CUlimit = SimpleNamespace(CU_LIMIT_PERSISTING_L2_CACHE_SIZE=LIMIT)
    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE=ATTRIBUTE)

    def __init__(self, limit: int = 0, largest: int = 1 << 25) -> None:
        self.limit, self.largest = limit, largest
        self.stuck = False
        self.calls: list[str] = []

    def cuDeviceGet(self, index: int) -> tuple[int, str]:
        return 0, f"device {index}"

    def cuDeviceGetAttribute(self, attribute: str, device: str) -> tuple[int, int]:
        assert (attribute, device) == (ATTRIBUTE, "device 0")
        return 0, self.largest

    def cuCtxGetLimit(self, limit: str) -> tuple[int, int]:
        assert limit == LIMIT
        self.calls.append("get")
        return 0, self.limit

    def cuCtxSetLimit(self, limit: str, value: int) -> tuple[int]:
        assert limit == LIMIT
        self.calls.append("set")
        if not self.stuck:
            self.limit = value
        return (0,)

    def cuCtxResetPersistingL2Cache(self) -> tuple[int]:
        self.calls.append("reset")
        return (0,)


def test_nothing_left_is_nothing_found() -> None:
    api = FakeDriver()
    carveout = Carveout(api=api)
    carveout.reset()
    carveout.check()
    assert api.calls == ["get", "reset", "get", "get"]


@pytest.mark.parametrize("found", [0, 4096])
def test_what_a_cell_leaves_is_put_back_and_told(found: int) -> None:
    api = FakeDriver(limit=found)
    carveout = Carveout(api=api)
    carveout.reset()
    api.limit = 1 << 20
    with pytest.raises(Rejected, match=rf"^persisting L2: the engine left 1048576 bytes of L2 set aside, and found {found};"):
        carveout.check()
    assert api.limit == found
    assert api.calls[-3:] == ["set", "reset", "get"]
    carveout.check()


def test_a_limit_that_does_not_come_back_is_a_fault_of_the_device() -> None:
    api = FakeDriver()
    carveout = Carveout(api=api)
    api.limit, api.stuck = 1 << 20, True
    with pytest.raises(RuntimeError, match="1048576 bytes of L2 are set aside, 0 were when the worker started"):
        carveout.check()
    with pytest.raises(RuntimeError, match="persisting L2"):
        carveout.reset()


def test_a_device_without_persisting_accesses_is_left_alone() -> None:
    api = FakeDriver(largest=0)
    carveout = Carveout(api=api)
    carveout.reset()
    carveout.check()
    assert api.calls == []


def test_the_names_are_the_drivers() -> None:
    driver: Any = pytest.importorskip("cuda.bindings.driver")
    assert driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE != driver.CUlimit.CU_LIMIT_STACK_SIZE
    assert driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE
    for name in ("cuDeviceGet", "cuDeviceGetAttribute", "cuCtxGetLimit", "cuCtxSetLimit", "cuCtxResetPersistingL2Cache"):
        assert callable(getattr(driver, name))
