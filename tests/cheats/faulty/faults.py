"""Engines that break, one for each way to break, at binding and at the clock, and a sound one beside them."""

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from mkframe.plugin import Engine, Launches


def sound(t: Mapping[str, Any]) -> None:
    import torch

    h = torch.relu(t["x"].float() @ t["W1"].float() + t["b1"]).half()
    torch.clamp(h.float() @ t["W2"].float() + t["b2"] + t["x"].float(), min=0, out=t["y"])


def crash() -> None:
    ctypes.string_at(0)


def raise_error() -> None:
    raise ValueError("no such\ntile")


def leave() -> None:
    sys.exit(3)


def leave_at_once() -> None:
    os._exit(7)


def hang() -> None:
    time.sleep(600)


def exhaust() -> None:
    import torch

    torch.empty(1 << 60, dtype=torch.uint8)


class Faulty(Engine):
    """Breaks when it is bound (`when` = "bind"), or in its 20th call, which is a timed one of round 0."""

    workload = "residual_mlp"
    devices = ("cpu",)
    precisions = ("fp16",)

    def __init__(self, name: str, fault: Callable[[], None] | None, when: str) -> None:
        self.id = name
        self._fault, self._when = fault, when

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        if self._fault is not None and self._when == "bind":
            self._fault()
        calls = [0]

        def call() -> None:
            calls[0] += 1
            if self._fault is not None and self._when == "clock" and calls[0] == 20:
                self._fault()
            sound(tensors)

        return Launches(call=call)


ENGINES = (
    Faulty("sound", None, ""),
    *(
        Faulty(f"{fault.__name__.replace('_', '-')}-at-{when}", fault, when)
        for fault in (crash, raise_error, leave, leave_at_once, hang, exhaust)
        for when in ("bind", "clock")
    ),
)
