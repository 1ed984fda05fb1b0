"""What a worker watches: every function that checks and timings use, of torch and of the framework."""

import gc
import time

import numpy as np
import torch

from mkframe import stats
from mkframe.check import buffers, case_data, cell, content, joined, mutants, places, producer, rotation, threads
from mkframe.graph import capture, carveout, edges, launch, nodes, twin
from mkframe.originals import Originals
from mkframe.run import defences, opened_case, worker_device
from mkframe.timing import bounds, clocks, collector, cpu, cuda, events, protocols, sampler

_MODULES = (
    stats,
    *(bounds, clocks, collector, cpu, cuda, events, protocols, sampler),
    *(buffers, case_data, cell, content, joined, mutants, places, producer, rotation, threads),
    *(capture, carveout, edges, launch, nodes, twin),
    *(defences, opened_case, worker_device),
)


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
        modules=_MODULES,
    )
