"""What belongs to the process is compared, named and put back."""

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from mkframe.check.process_state import PROCESS_STATE, TORCH_STATE, ProcessState

CHANGES: dict[str, tuple[str, Callable[[], object]]] = {
    "the default dtype": (TORCH_STATE, lambda: torch.set_default_dtype(torch.float64)),
    "the default device": (TORCH_STATE, lambda: torch.set_default_device("meta")),
    "grad mode": (TORCH_STATE, lambda: torch.set_grad_enabled(not torch.is_grad_enabled())),
    "autocast": (TORCH_STATE, lambda: torch.set_autocast_enabled("cpu", True)),
    "deterministic algorithms": (TORCH_STATE, lambda: torch.use_deterministic_algorithms(True, warn_only=True)),
    "anomaly mode": (TORCH_STATE, lambda: torch.set_anomaly_enabled(True)),
    "the number of threads": (TORCH_STATE, lambda: torch.set_num_threads(torch.get_num_threads() + 1)),
    "the precision of float32 products": (TORCH_STATE, lambda: torch.set_float32_matmul_precision("high")),
    "TF32 in cuDNN": (TORCH_STATE, lambda: setattr(torch.backends.cudnn, "allow_tf32", not torch.backends.cudnn.allow_tf32)),
    "cuDNN's benchmark": (TORCH_STATE, lambda: setattr(torch.backends.cudnn, "benchmark", True)),
    "flushing of denormals": (TORCH_STATE, lambda: torch.set_flush_denormal(True)),
    "the current folder": (PROCESS_STATE, lambda: os.chdir("/")),
    "the umask": (PROCESS_STATE, lambda: os.umask(0o123)),
    "the blocked signals": (PROCESS_STATE, lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})),
    "numpy's treatment of errors": (PROCESS_STATE, lambda: np.seterr(over="ignore")),
    "Python's garbage collector": (PROCESS_STATE, gc.disable),
    "the thresholds of Python's garbage collector": (PROCESS_STATE, lambda: gc.set_threshold(7)),
    "Python's switch interval": (PROCESS_STATE, lambda: sys.setswitchinterval(0.25)),
    "the handler of SIGUSR1": (PROCESS_STATE, lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)),
    "the limit RLIMIT_NOFILE": (PROCESS_STATE, lambda: one_file_less()),
    "the variable ADDED": (PROCESS_STATE, lambda: os.environ.update(ADDED="1")),
    "the variable THERE": (PROCESS_STATE, lambda: os.environ.pop("THERE")),
}


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERE", "before")
    monkeypatch.delenv("ADDED", raising=False)


def one_file_less() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_named_and_put_back(name: str) -> None:
    kind, change = CHANGES[name]
    state = ProcessState()
    assert state.changes() == ()
    change()
    found = [(one.setting.name, one.setting.kind) for one in state.restore()]
    assert (name, kind) in found
    assert state.changes() == ()


def test_a_change_says_what_was_and_what_is() -> None:
    state = ProcessState()
    os.environ["THERE"] = "after"
    (found,) = state.restore()
    assert str(found) == "the variable THERE was 'before' and is 'after'"
    assert os.environ["THERE"] == "before"


def test_variables_of_compilers_are_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ProcessState()
    monkeypatch.setenv("TORCHINDUCTOR_ANYTHING", "1")
    assert state.changes() == ()


def test_what_cannot_be_put_back_is_an_error() -> None:
    state = ProcessState()
    with torch.inference_mode(), pytest.raises(RuntimeError, match="inference mode was False and is True and cannot be put back"):
        state.restore()
    assert state.changes() == ()
