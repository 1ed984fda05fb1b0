"""Two engines for every workload, from its torch expression: as it stands (`torch-eager`, or the id that the workload gives
it) and compiled (`torch-compile`). Both are baselines that others are compared with."""

import os
import shutil
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import Any

from mkframe.plugin import Device, Engine, Launches, NoOptions, Precision, Workload

MODE = "max-autotune-no-cudagraphs"


class TorchExpression(Engine):
    """The workload's expression, operator by operator: on CUDA the products are cuBLAS calls, on a CPU those of its BLAS."""

    baseline = True

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.id = workload.eager_id
        self.workload = workload.id
        self.precisions = workload.precisions

    def unsupported(self, case: Any, precision: Precision, device: Device) -> str | None:
        return "a CPU has no TF32 product" if precision.products == "tf32" and device.kind == "cpu" else None

    def bind(self, case: Any, precision: Precision, tensors: Mapping[str, Any], options: NoOptions) -> Launches:
        import torch

        forbid_reduced_reductions()
        expression = self._workload.expression

        def call() -> None:
            expression(case, precision, tensors)

        facts = {"torch": str(torch.__version__), "cuda": torch.version.cuda}
        return Launches(call=_in_contract(call, precision, tensors), facts=MappingProxyType(facts))


class TorchCompile(TorchExpression):
    """torch.compile of the expression, whole and for one shape. Compilation and autotuning happen in `bind`."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.id = "torch-compile"
        self.limits = "a CPU needs a C++ compiler (CXX, g++ or clang++) and Python's headers"

    def unsupported(self, case: Any, precision: Precision, device: Device) -> str | None:
        reason = super().unsupported(case, precision, device)
        return reason or (missing_cpp_tools() if device.kind == "cpu" else None)

    def bind(self, case: Any, precision: Precision, tensors: Mapping[str, Any], options: NoOptions) -> Launches:
        import torch

        forbid_reduced_reductions()
        arguments = tuple(tensors.values())
        function = _own_code(self._function(case, precision, tuple(tensors)))
        on_cuda = arguments[0].is_cuda
        with _compiling(precision, None if on_cuda else cpp_compiler()) as counters:
            compiled = torch.compile(function, mode=MODE, fullgraph=True, dynamic=False)

            def call() -> None:
                compiled(*arguments)

            launch = _in_contract(call, precision, tensors)
            launch()
        facts = {
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "mode": MODE,
            "fullgraph": True,
            "dynamic": False,
            "exact_casts": _is_narrow(precision),
            "pattern_matcher": not (_is_narrow(precision) and _drops_roundings()),
            "operators": counters.operators(),
            "cache_hits": counters.cache_hits(),
            "compiler": f"triton {_triton_version()}" if on_cuda else Path(cpp_compiler() or "").name,
        }
        return Launches(call=launch, facts=MappingProxyType(facts), on_ready=end_compile_workers)

    def _function(self, case: Any, precision: Precision, names: tuple[str, ...]) -> Callable[..., None]:
        expression = self._workload.expression

        def whole_call(*arguments: Any) -> None:
            expression(case, precision, dict(zip(names, arguments, strict=True)))

        return whole_call


def engines_of(workload: Workload) -> tuple[Engine, ...]:
    """What every workload gets for nothing."""
    return TorchExpression(workload), TorchCompile(workload)


ENGINE_FACTORIES = (engines_of,)


def forbid_reduced_reductions() -> None:
    """Every contract accumulates in float32, so cuBLAS must not reduce half products in half. Set once and left: no engine
    of this process may want otherwise."""
    import torch

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


@contextmanager
def tf32_products(allowed: bool) -> Iterator[None]:
    """Sets whether float32 products of CUDA may round their operands to TF32, and puts the switch back.

    `torch.backends.cuda.matmul.fp32_precision` is the newer name of the switch, but inductor asks for this one, which
    raises once the other has been used to allow TF32.
    """
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _in_contract(call: Callable[[], None], precision: Precision, tensors: Mapping[str, Any]) -> Callable[[], None]:
    """`call` under the TF32 switch that the contract asks for. Only float32 operands on CUDA have one; others run bare."""
    if precision.input != "float32" or not next(iter(tensors.values())).is_cuda:
        return call

    def switched() -> None:
        with tf32_products(precision.products == "tf32"):
            call()

    return switched


def _own_code(function: Callable[..., None]) -> Callable[..., None]:
    """The function on a code object of its own. Dynamo keeps what it compiled with the code object, eight entries at most, and
    tries their guards in turn at every call: cells that share one would slow each other and then fail."""
    assert isinstance(function, FunctionType)
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__, None, function.__closure__)


class _Counters:
    """What dynamo and inductor counted since this object was made."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[int, int]:
        from torch._dynamo.utils import counters

        return counters["stats"]["calls_captured"], counters["inductor"]["fxgraph_cache_hit"]

    def operators(self) -> int:
        return self._now()[0] - self._before[0]

    def cache_hits(self) -> int:
        return self._now()[1] - self._before[1]


@contextmanager
def _compiling(precision: Precision, cxx: str | None) -> Iterator[_Counters]:
    """Inductor set up for the contract, for one compilation.

    Left alone, inductor drops a rounding to half whose result is widened again in the same kernel, which is another
    computation than the contract's: `emulate_precision_casts` keeps it; before torch 2.13 the pattern matcher must be off as well.
    """
    with warnings.catch_warnings():
        # torch's own: inductor uses what torch deprecates (`script_method` when it is imported, TypedStorage in 2.11), and
        # advises to allow TF32, which would change the contract.
        warnings.filterwarnings("ignore", message=r"`torch\.jit\.script_method` is deprecated", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message="TypedStorage is deprecated", category=UserWarning)
        warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores for float32 matrix", category=UserWarning)
        from torch._inductor import config

        # Without a pool of compile processes: the few kernels of a cell are compiled before a pool has started, and whoever ends one
        # that is just starting waits for it.
        changes: dict[str, Any] = {"emulate_precision_casts": _is_narrow(precision), "compile_threads": 1}
        if _is_narrow(precision) and _drops_roundings():
            changes["pattern_matcher"] = False
        if precision.products == "tf32":
            # cuBLAS rounds the operands of a TF32 product, inductor's Triton kernels cut them off: an error four times as large.
            changes["max_autotune_gemm_backends"] = "ATEN"
        if cxx is not None:
            changes["cpp.cxx"] = (cxx,)
        with config.patch(changes):
            yield _Counters()


def _is_narrow(precision: Precision) -> bool:
    return "float32" not in (precision.input, precision.hidden)


def _drops_roundings() -> bool:
    """Whether a graph pass of this torch removes a rounding that is widened again, whatever `emulate_precision_casts` says."""
    import torch

    return tuple(int(part) for part in str(torch.__version__).split(".")[:2]) < (2, 13)


def cpp_compiler() -> str | None:
    """Path of the C++ compiler that CXX names, else of g++ or clang++, else None."""
    return _find_compiler(os.environ.get("CXX"), os.environ.get("PATH"))


@lru_cache(maxsize=8)
def _find_compiler(cxx: str | None, path: str | None) -> str | None:
    names = (cxx,) if cxx else ("g++", "clang++")
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def missing_cpp_tools() -> str | None:
    """What a CPU compilation lacks, as a reason, or None."""
    if cpp_compiler() is None:
        cxx = os.environ.get("CXX")
        return f"CXX names {cxx!r}, which is not there" if cxx else "no C++ compiler: install g++ or clang++, or set CXX"
    return None if _has_python_headers() else "no Python.h: install Python's headers (python3-dev)"


@lru_cache(maxsize=1)
def _has_python_headers() -> bool:
    return Path(sysconfig.get_paths()["include"], "Python.h").is_file()


def end_compile_workers() -> None:
    """Ends inductor's compile processes, which somebody else of this process may have started: none may run beside a sample."""
    from torch._inductor.async_compile import shutdown_compile_workers

    shutdown_compile_workers()


def _triton_version() -> str:
    import triton

    return str(triton.__version__)
