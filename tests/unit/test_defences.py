"""What stands around an engine's steps in a worker, with a device that is scripted."""

import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mkframe.model.outcome import Rejected
from mkframe.originals import Originals
from mkframe.run import defences
from mkframe.run.defences import Defences
from mkframe.timing.cpu import CpuPerCall
from mkframe.timing.sampler import Block

LIMIT = 3


class Carveout:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def check(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


def around(carveout: Carveout | None = None) -> Defences:
    device: Any = SimpleNamespace(carveout=carveout, sampler=CpuPerCall())
    return Defences(device, Originals(named=((sys.modules[__name__], ("LIMIT",)),)))


@pytest.fixture
def replaced() -> Iterator[Callable[[], None]]:
    def replace() -> None:
        global LIMIT
        LIMIT = 4

    yield replace
    assert LIMIT == 3


def test_a_step_that_leaves_everything_passes() -> None:
    carveout = Carveout()
    found = around(carveout)
    found.before_cell()
    found.check_left()
    assert (found.put_back(), carveout.resets) == (True, 1)
    around().before_cell()
    around().check_left()


def test_what_was_replaced_is_named_and_back_even_where_the_carve_out_comes_first(replaced: Callable[[], None]) -> None:
    found = around()
    replaced()
    with pytest.raises(Rejected, match=r"^originals: .*test_defences\.LIMIT is not the function"):
        found.check_left()
    found = around(Carveout(Rejected("persisting L2: left")))
    replaced()
    with pytest.raises(Rejected, match="persisting L2"):
        found.check_left()


def test_after_a_failure_things_are_put_back_or_the_worker_ends(replaced: Callable[[], None]) -> None:
    found = around(Carveout(Rejected("persisting L2: left"), RuntimeError("the limit stays")))
    replaced()
    assert found.put_back()
    assert not found.put_back()
    assert found.put_back()


def block(total_ms: float) -> Block:
    return Block(stream_ms=np.array([total_ms]), host_ms=np.array([total_ms]), stream_total_ms=total_ms, host_total_ms=total_ms)


def test_a_block_is_bounded_and_leaves_no_thread() -> None:
    assert around().sampled(lambda: block(0.1)).host_total_ms == 0.1
    with pytest.raises(Rejected, match=r"^loop clock"):
        around().sampled(lambda: block(1e6))
    release = threading.Event()
    helper = threading.Thread(target=release.wait)

    def starting() -> Block:
        helper.start()
        return block(0.1)

    with pytest.raises(Rejected, match=r"^threads"):
        around().sampled(starting)
    release.set()
    helper.join()


def test_slow_calls_show_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    now, signs = [0.0], []
    monkeypatch.setattr(defences, "monotonic", lambda: now[0])
    both = defences._beating(lambda: signs.append("call"), lambda: signs.append("beat"))
    for second in (0.5, 1.5, 2.0, 60.0):
        now[0] = second
        both()
    assert signs == ["call", "beat", "call", "call", "beat", "call"]
