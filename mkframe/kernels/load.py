"""A compiled kernel in a CUDA context: its function handle, with the attributes that its launch needs."""

from typing import Any

from mkframe.cuda_driver import check, driver
from mkframe.kernels.result import Compiled
from mkframe.model.kernel import Kernel

_PLAIN_SHARED_BYTES = 48 * 1024
_PORTABLE_CLUSTER = 8

_functions: dict[tuple[int, str, int, int], int] = {}


def function_of(kernel: Kernel, compiled: Compiled, api: Any = None) -> int:
    """The handle (CUfunction) of a kernel in the current context, loaded once in each. It may have the dynamic shared memory and the
    cluster that the kernel declares. `api` stands in for the driver in tests.

    Raises RuntimeError where the driver refuses it, or where there is no context.
    """
    cu = driver() if api is None else api
    context = int(check(cu.cuCtxGetId(check(cu.cuCtxGetCurrent()))))
    key = context, compiled.cubin_sha256, kernel.shared_bytes, kernel.cluster
    if key not in _functions:
        _functions[key] = _loaded(cu, kernel, compiled)
    return _functions[key]


def _loaded(cu: Any, kernel: Kernel, compiled: Compiled) -> int:
    module = check(cu.cuModuleLoadData(compiled.cubin))
    function = check(cu.cuModuleGetFunction(module, compiled.entry.encode()))
    names = cu.CUfunction_attribute
    if kernel.shared_bytes > _PLAIN_SHARED_BYTES:
        check(cu.cuFuncSetAttribute(function, names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.shared_bytes))
    if kernel.cluster > _PORTABLE_CLUSTER:
        check(cu.cuFuncSetAttribute(function, names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    return int(function)
