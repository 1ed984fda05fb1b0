"""Engines whose outputs are right and whose times are not theirs: by a cache, a thread, tensors or clocks of their own."""

import copyreg
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from mkframe.plugin import Engine, Launches

_HONEST_CALLS = 25  # more than the checks before the clock make
_STREAK = 30  # more than fresh inputs are compared with, fewer than two blocks hold


def honest(t: Mapping[str, Any], out: Any) -> None:
    import torch

    h = torch.relu(t["x"].float() @ t["W1"].float() + t["b1"]).half()
    torch.clamp(h.float() @ t["W2"].float() + t["b2"] + t["x"].float(), min=0, out=out)


class Hiding(Engine):
    workload = "residual_mlp"
    devices = ("cpu",)
    precisions = ("fp16",)

    def __init__(self, name: str, make: Callable[[Mapping[str, Any]], Callable[[], None]]) -> None:
        self.id = name
        self._make = make

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        return Launches(call=self._make(tensors))


def working_hard(t: Mapping[str, Any]) -> Callable[[], None]:
    """Honest, and slow enough that what a lie saves shows on any machine."""

    def call() -> None:
        for _ in range(20):
            honest(t, t["y"])

    return call


def cached_by_content(t: Mapping[str, Any]) -> Callable[[], None]:
    """Computes only where its input is another one than the last."""
    import torch

    compute, kept = working_hard(t), {}

    def call() -> None:
        if kept and torch.equal(kept["x"], t["x"]):
            t["y"].copy_(kept["y"])
            return
        compute()
        kept.update(x=t["x"].clone(), y=t["y"].clone())

    return call


def skipping_what_is_there(t: Mapping[str, Any]) -> Callable[[], None]:
    """Does nothing where its output still lies in place and the input is the one that it came from. Looks at a few numbers only."""
    compute, seen = working_hard(t), []

    def few() -> list[float]:
        return [t["x"][0, 0].item(), t["x"][-1, -1].item(), t["y"][0, 0].item(), t["y"][-1, -1].item()]

    def call() -> None:
        if seen != few():
            compute()
            seen[:] = few()

    return call


def skipping_whatever_the_input(t: Mapping[str, Any]) -> Callable[[], None]:
    """Does nothing where it finds numbers in its output. Says so only after the checks before the clock."""
    compute, calls = working_hard(t), [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] < _HONEST_CALLS or t["y"][0, 0].isnan():
            compute()

    return call


def after_a_streak(t: Mapping[str, Any]) -> Callable[[], None]:
    """Keeps its result only where many calls in a row found the same input and output."""
    compute, last, equal = working_hard(t), [], [0]

    def call() -> None:
        found = [t["x"][0, 0].item(), t["y"][0, 0].item()]
        equal[0] = equal[0] + 1 if found == last else 0
        if equal[0] > _STREAK:
            return
        compute()
        last[:] = [t["x"][0, 0].item(), t["y"][0, 0].item()]

    return call


def cached_by_version(t: Mapping[str, Any]) -> Callable[[], None]:
    """Goes by torch's count of the changes that it has seen of a tensor."""
    kept: dict[int, Any] = {}

    def call() -> None:
        version = t["x"]._version
        if version not in kept:
            honest(t, t["y"])
            kept[version] = t["y"].clone()
        t["y"].copy_(kept[version])

    return call


def answering_late(t: Mapping[str, Any]) -> Callable[[], None]:
    """Leaves its work to a thread that was there from the start, and returns; at first it waits for it."""
    compute, orders, calls = working_hard(t), queue.SimpleQueue(), [0]

    def work() -> None:
        while True:
            done = orders.get()
            compute()
            done.set()

    threading.Thread(target=work, daemon=True).start()

    def call() -> None:
        calls[0] += 1
        done = threading.Event()
        orders.put(done)
        if calls[0] < _HONEST_CALLS:
            done.wait()

    return call


def a_thread_for_each_call(t: Mapping[str, Any]) -> Callable[[], None]:
    def call() -> None:
        honest(t, t["y"])
        threading.Thread(target=time.sleep, args=(0.2,), name="helper", daemon=True).start()

    return call


def another_class(t: Mapping[str, Any]) -> Callable[[], None]:
    """Its output is a tensor that could compute when somebody looks."""
    import torch

    class Lazy(torch.Tensor):
        pass

    t["y"].__class__ = Lazy
    return lambda: honest(t, t["y"])


def another_storage(t: Mapping[str, Any]) -> Callable[[], None]:
    t["y"].data = t["y"].clone()
    return lambda: honest(t, t["y"])


def another_storage_later(t: Mapping[str, Any]) -> Callable[[], None]:
    calls = [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] == _HONEST_CALLS:
            t["y"].set_(t["y"].clone())
        honest(t, t["y"])

    return call


def another_dictionary(t: Any) -> Callable[[], None]:
    """Hands a tensor of its own to whoever looks into the dictionary that it was given."""
    t["y"] = t["y"].clone()
    return lambda: honest(t, t["y"])


def _slow() -> int:
    return time.perf_counter_ns() // 10


def stopping_the_clock(t: Mapping[str, Any]) -> Callable[[], None]:
    def call() -> None:
        honest(t, t["y"])
        sys.modules["mkframe.timing.cpu"].perf_counter_ns = _slow  # type: ignore[attr-defined]

    return call


def another_median(t: Mapping[str, Any]) -> Callable[[], None]:
    import numpy as np

    np.median = lambda values: 0.0  # type: ignore[assignment]
    return lambda: honest(t, t["y"])


def another_body(t: Mapping[str, Any]) -> Callable[[], None]:
    """The function of the framework stays, and does something else."""

    def suspicious(known: Any, fresh: Any, step_ms: Any) -> bool:
        return False

    sys.modules["mkframe.check.content"].suspicious.__code__ = suspicious.__code__
    return lambda: honest(t, t["y"])


def shrinking_on_the_way(t: Mapping[str, Any]) -> Callable[[], None]:
    """Times are told as they are, and halved where they are packed for their way to the coordinator."""
    block_done = sys.modules["mkframe.run.messages"].BlockDone  # type: ignore[attr-defined]
    right = block_done.__init__

    def smaller(self: Any, **found: Any) -> None:
        right(self, **{**found, "stream_ms": found["stream_ms"] / 2})

    block_done.__init__ = smaller
    return lambda: honest(t, t["y"])


def packing_its_own_way(t: Mapping[str, Any]) -> Callable[[], None]:
    """Replaces nothing, and adds what pickle looks for."""
    block_done = sys.modules["mkframe.run.messages"].BlockDone  # type: ignore[attr-defined]
    block_done.__reduce_ex__ = lambda self, protocol: (block_done, ())
    return lambda: honest(t, t["y"])


def packing_arrays_its_own_way(t: Mapping[str, Any]) -> Callable[[], None]:
    """Tells pickle another way to pack an array."""
    import numpy as np

    copyreg.pickle(np.ndarray, lambda array: (np.array, ([value / 2 for value in array.tolist()],)))
    return lambda: honest(t, t["y"])


def slowing_the_others(t: Mapping[str, Any]) -> Callable[[], None]:
    """Its own times are true, and those of the baseline are longer than they need be."""
    import torch

    right = torch.mm

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(1e-3)
        return right(*given, **named)

    torch.mm = slow
    return lambda: honest(t, t["y"])


def slowing_the_baseline(t: Mapping[str, Any]) -> Callable[[], None]:
    engines = sys.modules["mkframe_plugins.torch_engines"]
    engines.TorchExpression.bind = lambda *given: Launches(call=lambda: time.sleep(1e-3))  # type: ignore[attr-defined]
    return lambda: honest(t, t["y"])


def a_clock_for_the_block(t: Mapping[str, Any]) -> Callable[[], None]:
    """Replaces the clock when it is warmed up, and puts it back once the sampler has taken it."""
    compute, timing, right = working_hard(t), sys.modules["mkframe.timing.cpu"], time.perf_counter_ns

    def call() -> None:
        compute()
        timing.perf_counter_ns = _slow if sys._getframe(1).f_code.co_name == "warm_up" else right  # type: ignore[attr-defined]

    return call


def rewriting_the_readings(t: Mapping[str, Any]) -> Callable[[], None]:
    """Leaves every function alone, and reaches for the list that the sampler keeps."""
    compute = working_hard(t)

    def call() -> None:
        compute()
        found = sys._getframe(1).f_locals
        if found.get("index"):
            found["stream"][found["index"] - 1] //= 10

    return call


ENGINES = tuple(
    Hiding(make.__name__.replace("_", "-"), make)
    for make in (
        working_hard,
        cached_by_content,
        skipping_what_is_there,
        skipping_whatever_the_input,
        after_a_streak,
        cached_by_version,
        answering_late,
        a_thread_for_each_call,
        another_class,
        another_storage,
        another_storage_later,
        another_dictionary,
        stopping_the_clock,
        another_median,
        another_body,
        shrinking_on_the_way,
        packing_its_own_way,
        packing_arrays_its_own_way,
        slowing_the_others,
        slowing_the_baseline,
        a_clock_for_the_block,
        rewriting_the_readings,
    )
)
