"""Engines that lie, one for each way to lie, and an honest one beside them. For residual_mlp in fp16 on a CPU."""

from collections.abc import Callable, Mapping
from typing import Any

from mkframe.plugin import Engine, Launches


def honest(t: Mapping[str, Any], out: Any) -> None:
    import torch

    h = torch.relu(t["x"].float() @ t["W1"].float() + t["b1"]).half()
    torch.clamp(h.float() @ t["W2"].float() + t["b2"] + t["x"].float(), min=0, out=out)


class Cheat(Engine):
    workload = "residual_mlp"
    devices = ("cpu",)
    precisions = ("fp16",)

    def __init__(self, name: str, make: Callable[[Mapping[str, Any]], Callable[[], None]]) -> None:
        self.id = name
        self._make = make

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        return Launches(call=self._make(tensors))


def telling_the_truth(t: Mapping[str, Any]) -> Callable[[], None]:
    return lambda: honest(t, t["y"])


def doing_nothing(t: Mapping[str, Any]) -> Callable[[], None]:
    """Right when it was bound, and never again."""
    honest(t, t["y"])
    return lambda: None


def stale(t: Mapping[str, Any]) -> Callable[[], None]:
    """Computes once, then copies: a result cached by content of the first call."""
    kept: list[Any] = []

    def call() -> None:
        if not kept:
            honest(t, t["y"])
            kept.append(t["y"].clone())
        t["y"].copy_(kept[0])

    return call


_by_pointer: dict[int, Any] = {}


def cached_by_pointer(t: Mapping[str, Any]) -> Callable[[], None]:
    """Follows its input only where it saw the address for the first time."""

    def call() -> None:
        key = t["x"].data_ptr()
        if key not in _by_pointer:
            honest(t, t["y"])
            _by_pointer[key] = t["y"].clone()
        t["y"].copy_(_by_pointer[key])

    return call


_first: dict[str, Any] = {}


def bound_to_the_first_buffers(t: Mapping[str, Any]) -> Callable[[], None]:
    """Keeps the buffers of its first binding and serves every later one from there."""
    case = str(tuple(t["x"].shape))
    _first.setdefault(case, t)
    mine = _first[case]
    return lambda: honest(mine, mine["y"])


def zeros(t: Mapping[str, Any]) -> Callable[[], None]:
    return lambda: t["y"].zero_()


def one_row_short(t: Mapping[str, Any]) -> Callable[[], None]:
    """Leaves the last row to whatever was there before."""
    return lambda: honest({**t, "x": t["x"][:-1]}, t["y"][:-1])


def half_products(t: Mapping[str, Any]) -> Callable[[], None]:
    """Rounds the product to half: lower precision than the contract's."""
    import torch

    def call() -> None:
        h = torch.relu((t["x"].float() @ t["W1"].float()).half().float() + t["b1"]).half()
        y = (h.float() @ t["W2"].float()).half().float() + t["b2"] + t["x"].float()
        torch.clamp(y, min=0, out=t["y"])

    return call


def nan_filtering(t: Mapping[str, Any]) -> Callable[[], None]:
    """Writes nothing, but turns NaN into what it saw when it was bound."""
    honest(t, t["y"])
    kept = t["y"].clone()
    return lambda: t["y"].copy_(kept.where(t["y"].isnan(), t["y"]))


def writing_its_input(t: Mapping[str, Any]) -> Callable[[], None]:
    """Right, from weights that it copied, but it spoils the ones that all engines share."""
    mine = t["W1"].clone()

    def call() -> None:
        honest({**t, "W1": mine}, t["y"])
        t["W1"][0, 0] = 0.5

    return call


def negating_only(t: Mapping[str, Any]) -> Callable[[], None]:
    """Knows its input and the negated one by heart, and recognises them."""
    import torch

    plus, minus = t["x"].clone(), -t["x"]
    honest(t, t["y"])
    right = t["y"].clone()
    other = torch.empty_like(right)
    honest({**t, "x": minus}, other)
    return lambda: t["y"].copy_(other if torch.equal(t["x"], minus) else right if plus is not None else other)


def wrong_after_a_while(t: Mapping[str, Any]) -> Callable[[], None]:
    """Passes every check before the clock, then saves itself the work."""
    calls = [0]

    def call() -> None:
        calls[0] += 1
        if calls[0] < 20:
            honest(t, t["y"])
        else:
            t["y"].fill_(1.0)

    return call


ENGINES = tuple(
    Cheat(make.__name__.replace("_", "-"), make)
    for make in (
        telling_the_truth,
        doing_nothing,
        stale,
        cached_by_pointer,
        bound_to_the_first_buffers,
        zeros,
        one_row_short,
        half_products,
        nan_filtering,
        writing_its_input,
        negating_only,
        wrong_after_a_while,
    )
)
