"""The launch twin of a captured graph: the same nodes and edges, with an empty kernel in the place of every kernel.

Its time is what launching costs; the rest of a call's time is the kernels' own.
"""

from functools import cache
from importlib import resources
from typing import Any

import torch

from mkframe.graph.driver import check, driver
from mkframe.graph.edges import read_edges
from mkframe.graph.nodes import ReadKernel, read_kernels
from mkframe.graph.nvrtc import cubin, function_of


class LaunchTwin:
    """The twin of a cudaGraph_t. Every kernel node keeps its grid, block, cluster, shared memory and attributes, every other node
    and every edge stays as it is.

    Raises RuntimeError where the driver refuses the copy, RunError where NVRTC is missing.
    """

    def __init__(self, raw_graph: int) -> None:
        cu = driver()
        self._exec: Any = None
        self._graph = check(cu.cuGraphClone(cu.CUgraph(raw_graph)))
        nodes, edges = read_edges(int(self._graph))
        overlapping = {int(nodes[place]) for edge in edges if edge[2] for place in edge[:2]}
        for kernel in read_kernels(nodes, edges):
            _empty(kernel, "empty_programmatic" if int(kernel.node) in overlapping else "empty")
        self._exec = check(cu.cuGraphInstantiate(self._graph, 0))

    def replay(self) -> None:
        """Launches the twin on torch's current stream."""
        cu = driver()
        check(cu.cuGraphLaunch(self._exec, cu.CUstream(torch.cuda.current_stream().cuda_stream)))

    def __del__(self) -> None:
        cu = driver()
        if self._exec is not None:
            cu.cuGraphExecDestroy(self._exec)
        if hasattr(self, "_graph"):
            cu.cuGraphDestroy(self._graph)


def source_text() -> str:
    """The CUDA C++ of the empty kernels."""
    return resources.files("mkframe.graph").joinpath("kernels", "empty.cu").read_text(encoding="utf-8")


def _empty(kernel: ReadKernel, name: str) -> None:
    cu, launch = driver(), kernel.launch
    params = cu.CUDA_KERNEL_NODE_PARAMS()
    params.func = cu.CUfunction(_function(name))
    params.gridDimX, params.gridDimY, params.gridDimZ = launch.grid
    params.blockDimX, params.blockDimY, params.blockDimZ = launch.block
    params.sharedMemBytes = launch.shared_bytes
    check(cu.cuGraphKernelNodeSetParams(kernel.node, params))
    if launch.cluster != (1, 1, 1):  # a cluster that the old kernel was compiled for is no attribute of the node
        value = cu.CUkernelNodeAttrValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = launch.cluster
        check(cu.cuGraphKernelNodeSetAttribute(kernel.node, cu.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value))


@cache
def _function(name: str) -> int:
    """The handle of an empty kernel that may have all the shared memory and every cluster size that the device offers."""
    cu = driver()
    major, minor = torch.cuda.get_device_capability()
    handle = function_of(cubin(source_text(), "empty.cu", f"sm_{major}{minor}"), name)
    most = int(check(cu.cuDeviceGetAttribute(cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, _device())))
    function, names = cu.CUfunction(handle), cu.CUfunction_attribute
    check(cu.cuFuncSetAttribute(function, names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most))
    if major >= 9:
        check(cu.cuFuncSetAttribute(function, names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    return handle


def _device() -> Any:
    return check(driver().cuCtxGetDevice())
