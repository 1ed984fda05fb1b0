"""What a worker watches: every function that checks, timings and their way to the coordinator use, of torch and of the framework, and
the operators of torch that engines and baselines compute with."""

import builtins
import copyreg
import gc
import multiprocessing.connection
import multiprocessing.reduction
import sys
import time
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import numpy as np
import torch

import mkframe
from mkframe import check, graph, stats, timing
from mkframe.originals import Originals, callables_of, modules_of
from mkframe.run import defences, opened_case, worker_device  # noqa: F401  - so that they are loaded

_REPLACED_BY_TORCH = frozenset({"manual_seed", "Storage"})
"""What torch replaces itself: when its compiler is imported, and with the default dtype, which is watched elsewhere."""
_IN_CHECKS = (check, graph, stats, timing)


def of_worker() -> Originals:
    """To be made before any plugin is imported."""
    return Originals(
        named=(
            *((owner, _operators(owner)) for owner in (torch, torch.Tensor, torch.nn.functional)),
            *((module, callables_of(module)) for module in (time, builtins)),
            (gc, ("enable", "disable", "isenabled")),
            (np, ("median", "quantile", "percentile", "sort", "array", "asarray", "concatenate", "stack")),
            (torch.cuda, ("Event", "Stream", "CUDAGraph", "graph", "stream", "current_stream", "synchronize", "_sleep")),
            (torch.cuda.Event, ("record", "elapsed_time", "synchronize", "query")),
            (torch.cuda.Stream, ("synchronize", "wait_stream", "wait_event", "record_event")),
            (torch.cuda.CUDAGraph, ("replay", "capture_begin", "capture_end")),
        ),
        modules=(*_of_the_framework(), multiprocessing.connection, multiprocessing.reduction),
        reducers={
            "copyreg.dispatch_table": copyreg.dispatch_table,
            "multiprocessing.reduction.ForkingPickler": ForkingPickler._extra_reducers,  # type: ignore[attr-defined]
        },
    )


def _operators(owner: Any) -> tuple[str, ...]:
    return tuple(name for name in callables_of(owner) if name not in _REPLACED_BY_TORCH)


def _of_the_framework() -> tuple[ModuleType, ...]:
    """Every module of mkframe that is loaded, and those that a worker loads before it serves."""
    for package in _IN_CHECKS:
        tuple(modules_of(package))
    return tuple(module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == mkframe.__name__)
