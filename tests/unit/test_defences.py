"""What stands around an engine's steps in a worker, with a device that is scripted."""

import gc
import os
import signal
import subprocess
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
from mkframe.timing.sampler import Block, Subject

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


def test_the_state_of_the_process_is_put_back_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERE", "before")
    found = around()
    os.environ["THERE"] = "after"
    with pytest.raises(Rejected, match=r"^process state: the variable THERE was 'before' and is 'after'; an engine must put back"):
        found.check_left("cell")
    assert os.environ["THERE"] == "before"
    found.check_left("cell")


def test_a_process_is_the_engine_s_that_was_there_when_it_appeared() -> None:
    with subprocess.Popen(["sleep", "600"]) as older:
        found = around()
        found.check_left("first")
        with subprocess.Popen(["sleep", "600"]) as child:
            found.check_left("second")
            found.check_children("first")
            assert (found.owns_children("first"), found.owns_children("second")) == (False, True)
            with pytest.raises(Rejected, match=r"^children: the engine left 1 process\(es\) running \(sleep\)"):
                found.check_children("second")
            assert child.wait() == -signal.SIGKILL
        assert not found.owns_children("second")
        assert older.poll() is None, "it was there before any engine"
        older.kill()


def test_a_call_must_not_turn_the_collector_on() -> None:
    with pytest.raises(Rejected, match="turned Python's garbage collector on"):
        around().sampled(lambda: CpuPerCall().open(Subject(run=gc.enable)).sample(2))
    assert gc.isenabled()
