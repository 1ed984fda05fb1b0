"""What an engine must leave as it was in its process: settings of torch, numpy and Python, folder, environment, signals, limits."""

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

NAME = "process state"
TORCH_STATE, PROCESS_STATE = "torch state", "process state"
_OF_COMPILERS = ("TORCHINDUCTOR_", "_TORCHINDUCTOR_", "TRITON_")  # inductor sets some of these itself when it compiles
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Setting:
    """`kind`: TORCH_STATE or PROCESS_STATE. `write` is None for what cannot be set from outside."""

    name: str
    kind: str
    read: Callable[[], Any]
    write: Callable[[Any], object] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that is not what it was."""

    setting: Setting
    was: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.setting.name} was {_shown(self.was)} and is {_shown(self.found)}"[:_LONGEST]


class ProcessState:
    """The state at the moment at which it is made."""

    def __init__(self) -> None:
        self._values = [(setting, setting.read()) for setting in _settings()]
        self._variables = _variables()

    def changes(self) -> tuple[Change, ...]:
        """What is different now, in a fixed order."""
        found = ((setting, was, setting.read()) for setting, was in self._values)
        return tuple(Change(setting, was, now) for setting, was, now in found if now != was) + tuple(self._changed_variables())

    def restore(self) -> tuple[Change, ...]:
        """As `changes`, which are then undone. Raises RuntimeError where one cannot be undone."""
        changes = self.changes()
        for change in changes:
            if change.setting.write is None:
                continue
            try:
                change.setting.write(change.was)
            except (OSError, ValueError, TypeError) as error:
                raise RuntimeError(f"{change.setting.name} cannot be put back") from error
        left = self.changes() if changes else ()
        if left:
            raise RuntimeError(f"{left[0]} and cannot be put back")
        return changes

    def _changed_variables(self) -> Iterator[Change]:
        now = _variables()
        for name in sorted(self._variables.keys() | now.keys()):
            was, found = self._variables.get(name), now.get(name)
            if was != found:
                variable = Setting(f"the variable {name}", PROCESS_STATE, partial(os.environ.get, name), partial(_set_variable, name))
                yield Change(variable, was, found)


def _settings() -> tuple[Setting, ...]:
    return (*(Setting(name, TORCH_STATE, *pair) for name, *pair in _torch_settings()), *_process_settings())


def _torch_settings() -> Iterator[tuple[Any, ...]]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    autocast = ("cpu", "cuda")
    yield "the default dtype", torch.get_default_dtype, torch.set_default_dtype
    yield (
        "the default device",
        lambda: str(torch.get_default_device()),
        lambda name: torch.set_default_device(None if name == "cpu" else name),
    )
    yield "grad mode", torch.is_grad_enabled, torch.set_grad_enabled
    yield "inference mode", torch.is_inference_mode_enabled
    yield (
        "autocast",
        lambda: tuple(torch.is_autocast_enabled(kind) for kind in autocast),
        lambda values: [torch.set_autocast_enabled(kind, value) for kind, value in zip(autocast, values, strict=True)],
    )
    yield (
        "deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda values: torch.use_deterministic_algorithms(values[0], warn_only=values[1]),
    )
    yield "anomaly mode", torch.is_anomaly_enabled, torch.set_anomaly_enabled
    yield "the number of threads", torch.get_num_threads, torch.set_num_threads
    yield "the number of interop threads", torch.get_num_interop_threads
    yield "the precision of float32 products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision
    for name, owner, switch in (
        ("TF32 in cuDNN", cudnn, "allow_tf32"),
        ("reduced fp16 reductions", matmul, "allow_fp16_reduced_precision_reduction"),
        ("reduced bf16 reductions", matmul, "allow_bf16_reduced_precision_reduction"),
        ("cuDNN", cudnn, "enabled"),
        ("cuDNN's benchmark", cudnn, "benchmark"),
        ("cuDNN's determinism", cudnn, "deterministic"),
    ):
        yield name, partial(getattr, owner, switch), partial(setattr, owner, switch)
    yield "flushing of denormals", _flushes, torch.set_flush_denormal
    yield "the stack of function modes", torch._C._len_torch_function_stack
    yield "the stack of dispatch modes", torch._C._len_torch_dispatch_stack


def _process_settings() -> Iterator[Setting]:
    for name, read, write in (
        ("the current folder", os.getcwd, os.chdir),
        ("the umask", _umask, os.umask),
        ("the blocked signals", _blocked, lambda blocked: signal.pthread_sigmask(signal.SIG_SETMASK, blocked)),
        ("numpy's treatment of errors", np.geterr, lambda values: np.seterr(**values)),
        ("Python's garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        ("the thresholds of Python's garbage collector", gc.get_threshold, lambda values: gc.set_threshold(*values)),
        ("Python's trace function", sys.gettrace, sys.settrace),
        ("Python's profile function", sys.getprofile, sys.setprofile),
        ("Python's switch interval", sys.getswitchinterval, sys.setswitchinterval),
    ):
        yield Setting(name, PROCESS_STATE, read, write)
    for number in sorted(signal.valid_signals()):
        if number not in (signal.SIGKILL, signal.SIGSTOP) and isinstance(number, signal.Signals):
            yield Setting(f"the handler of {number.name}", PROCESS_STATE, partial(signal.getsignal, number), partial(signal.signal, number))
    for limit in sorted(name for name in vars(resource) if name.startswith("RLIMIT_")):
        code = getattr(resource, limit)
        yield Setting(f"the limit {limit}", PROCESS_STATE, partial(resource.getrlimit, code), partial(resource.setrlimit, code))


def _flushes() -> bool:
    return float(torch.tensor([1e-310], dtype=torch.float64, device="cpu").mul(1.0)) == 0.0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _blocked() -> frozenset[int]:
    return frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ()))


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_COMPILERS)}


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _shown(value: Any) -> str:
    if isinstance(value, signal.Handlers):
        return value.name
    if isinstance(value, frozenset):
        return str(sorted(int(number) for number in value))
    return repr(value)
