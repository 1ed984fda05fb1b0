"""CUDA engines that break, one for each way to break, at binding and at the clock, and a sound one beside them."""

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from mkframe.plugin import Engine, Launches

SOURCE = r"""
extern "C" __global__ void write_to_nowhere() { *reinterpret_cast<volatile float*>(8) = 1.0f; }

extern "C" __global__ void spin(unsigned long long ns) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do { asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); } while (now - start < ns);
}
"""
FAULTY_CALL = 60
"""Later than the checks and the warm-up, earlier than the end of a first round of 100 samples."""
_LONG_S = 120


def sound(t: Mapping[str, Any]) -> None:
    import torch

    x = t["x"].float()
    h = torch.relu(x @ t["W1"].float() + t["b1"]).half()
    torch.clamp(h.float() @ t["W2"].float() + t["b2"] + x, min=0, out=t["y"])


def launch(name: str, *arguments: Any) -> None:
    import torch
    from cuda.bindings import driver

    from mkframe.graph.nvrtc import cubin, function_of

    major, minor = torch.cuda.get_device_capability()
    function = driver.CUfunction(function_of(cubin(SOURCE, "faults.cu", f"sm_{major}{minor}"), name))
    pointers = (ctypes.c_void_p * max(len(arguments), 1))(*[ctypes.addressof(argument) for argument in arguments])
    stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
    (status,) = driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, ctypes.addressof(pointers), 0)
    assert int(status) == 0, status
    torch.cuda.synchronize()


def crash() -> None:
    ctypes.string_at(0)


def raise_error() -> None:
    raise ValueError("no such\ntile")


def leave() -> None:
    sys.exit(3)


def leave_at_once() -> None:
    os._exit(7)


def hang() -> None:
    time.sleep(_LONG_S)


def hang_on_the_device() -> None:
    """A kernel that ends by itself after two minutes, in case nobody ends it before."""
    launch("spin", ctypes.c_uint64(_LONG_S * 10**9))


def exhaust() -> None:
    import torch

    torch.empty(1 << 60, dtype=torch.uint8)


def exhaust_the_device() -> None:
    import torch

    kept = []
    while True:
        kept.append(torch.empty(1 << 33, dtype=torch.uint8, device="cuda"))


def corrupt_the_context() -> None:
    launch("write_to_nowhere")


class Faulty(Engine):
    """Breaks when it is bound (`when` = "bind"), or in a timed call of round 0."""

    workload = "residual_mlp"
    devices = ("cuda",)
    precisions = ("fp16",)

    def __init__(self, name: str, fault: Callable[[], None] | None, when: str) -> None:
        self.id = name
        self._fault, self._when = fault, when

    def unsupported(self, case: Any, precision: Any, device: Any) -> str | None:
        return "one block only" if case.depth > 1 else None

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        if self._fault is not None and self._when == "bind":
            self._fault()
        calls = [0]

        def call() -> None:
            calls[0] += 1
            if self._fault is not None and self._when == "clock" and calls[0] == FAULTY_CALL:
                self._fault()
            sound(tensors)

        return Launches(call=call)


FAULTS = (crash, raise_error, leave, leave_at_once, hang, hang_on_the_device, exhaust, exhaust_the_device, corrupt_the_context)
ENGINES = (
    Faulty("sound", None, ""),
    *(Faulty(f"{fault.__name__.replace('_', '-')}-at-{when}", fault, when) for fault in FAULTS for when in ("bind", "clock")),
)
