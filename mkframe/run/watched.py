"""What a worker watches: every function that checks and timings use, of torch and of the framework."""

import gc
import time

import numpy as np
import torch

from mkframe import check, graph, stats, timing
from mkframe.originals import Originals, modules_of
from mkframe.run import defences, opened_case, worker_device


def of_worker() -> Originals:
    """To be made before any plugin is imported."""
    return Originals(
        named=(
            (time, ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "thread_time_ns", "sleep")),
            (gc, ("enable", "disable", "isenabled")),
            (np, ("median", "quantile", "percentile", "sort", "array", "asarray", "concatenate", "stack")),
            (torch, ("equal", "empty", "empty_like", "from_numpy")),
            (torch.Tensor, ("copy_", "fill_", "cpu", "to", "numpy", "data_ptr", "untyped_storage")),
            (torch.cuda, ("Event", "Stream", "CUDAGraph", "graph", "stream", "current_stream", "synchronize", "_sleep")),
            (torch.cuda.Event, ("record", "elapsed_time", "synchronize", "query")),
            (torch.cuda.Stream, ("synchronize", "wait_stream", "wait_event", "record_event")),
            (torch.cuda.CUDAGraph, ("replay", "capture_begin", "capture_end")),
        ),
        modules=(*modules_of(stats, timing, check, graph), defences, opened_case, worker_device),
    )
