"""The program that runs under compute-sanitizer: draws a case, binds an engine as a run does, calls it, compares what came out."""

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import torch

from mkframe.check.buffers import PATTERNS, Tensors, allocate, names_of, poison, read_back
from mkframe.check.case_data import BASE, FRESH, CaseData, draw_case
from mkframe.check.cell import BoundCell, CheckFailed, bind_cell, load
from mkframe.model.precision import PRECISIONS
from mkframe.model.tensors import Role
from mkframe.plan.engines import options_of
from mkframe.plugin.engine import engine_on
from mkframe.plugin.loader import load_registry
from mkframe.redact import storable
from mkframe.run.sources import file_sources, imported_sources
from mkframe.sanitize.job import Answer, Job, write_answer
from mkframe.text import told

_LONGEST_REASON = 500
FAILED = 3
"""Exit code where the answer has a reason."""


def main(job_file: str) -> int:
    """Does one job and writes its answer. The caller ends the process with what this returns: the tool sums up when it ends."""
    job = Job(**json.loads(Path(job_file).read_text(encoding="ascii")))
    os.dup2(2, 1)  # an engine's prints
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False  # as in a worker
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    work = _Work(job)
    reason = None
    try:
        work.run()
    except BaseException as error:  # SystemExit too: an engine that exits has not been checked
        reason = storable(f"while {work.doing}: {told(error, kind=not isinstance(error, CheckFailed))}")[:_LONGEST_REASON]
    answer = Answer(calls=work.calls, reason=reason, capture_failed=reason is not None and work.doing == _CAPTURING, sources=work.sources())
    write_answer(Path(job.answer), answer)
    return 0 if reason is None else FAILED


_CAPTURING = "binding and capturing"


class _Work:
    """The steps of a job; `doing` names the one at hand, `calls` counts outputs that were right."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._files: Mapping[str, str] = {}
        self._modules: tuple[str, ...] = ()
        self.doing = "loading plugins"
        self.calls = 0

    def run(self) -> None:
        job = self._job
        registry = load_registry(job.plugin_paths, unsafe=job.unsafe_plugins)
        workload = registry.workload(job.workload)
        engine = engine_on(registry.engine(job.workload, job.engine), job.device_kind)
        self._modules = (registry.workloads[job.workload].module, registry.engines[job.workload, job.engine].module)
        self._files = file_sources(engine.sources())
        on_gpu = job.device_kind == "cuda"
        device = torch.device("cuda", 0) if on_gpu else torch.device("cpu")
        self.doing = "drawing the case"
        data = draw_case(workload, workload.Case(**job.case), PRECISIONS[job.precision], job.seed)
        stream = torch.cuda.Stream() if on_gpu else None
        with nullcontext() if stream is None else torch.cuda.stream(stream):
            shared = _given(data, device)
            self.doing = _CAPTURING if job.graph else "binding"
            bound = bind_cell(engine, options_of(engine, job.options), data, shared, stream, job.graph)
            self._called(bound, data, BASE, PATTERNS[0])
            self.doing = "getting ready"
            if bound.launches.on_ready is not None:
                bound.launches.on_ready()
            load(bound.tensors, data, FRESH)
            self._called(bound, data, FRESH, PATTERNS[1])

    def _called(self, bound: BoundCell, data: CaseData, variant: str, pattern: str) -> None:
        self.doing = f"calling it on input {variant}"
        poison(bound.tensors, bound.specs, pattern)
        _settle()
        bound.run()
        _settle()
        self.doing = f"comparing output {variant}"
        found = data.judge(read_back(bound.tensors, data.outputs), variant)
        if not found.passed:
            raise CheckFailed(
                f"{found.violations} of {found.elements} elements are beyond tolerance (largest error {found.max_abs_error:.3g})"
            )
        self.calls += 1

    def sources(self) -> dict[str, str]:
        """Files that the process imported by now, and those that the engine names, as far as it came."""
        return {**imported_sources(self._modules), **self._files}


def _given(data: CaseData, device: torch.device) -> Tensors:
    names = names_of(data.specs, Role.INPUT, Role.WEIGHT)
    shared = allocate({name: data.specs[name] for name in names}, device)
    for name in names:
        shared[name].copy_(data.variants[BASE].stored[name])
    return shared


def _settle() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
