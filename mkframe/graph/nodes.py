"""The nodes of a captured graph, read back from the driver: kernels with their launch configuration and resources."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from mkframe.graph.driver import check, driver
from mkframe.graph.edges import Edge
from mkframe.model.launch import LaunchRecord

Extent = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ReadKernel:
    """One kernel node: the driver's handle of the node, and what it launches."""

    node: Any
    launch: LaunchRecord


def node_names(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Nodes by name: a kernel's function, or the kind of the node ("memset", "memcpy" ...)."""
    return tuple(_kernel_name(node) if _is_kernel(node) else _kind(node) for node in nodes)


def read_kernels(nodes: Iterable[Any], edges: Iterable[Edge]) -> tuple[ReadKernel, ...]:
    """The kernel nodes among `nodes`, in their order; `edges` as edges.read_edges gives them. Shared memory is the kernel's own plus
    what the launch asks for."""
    early = {target for _, target, programmatic in edges if programmatic}
    return tuple(ReadKernel(node, _launch(node, place in early)) for place, node in enumerate(nodes) if _is_kernel(node))


def _launch(node: Any, programmatic: bool) -> LaunchRecord:
    cu = driver()
    params = check(cu.cuGraphKernelNodeGetParams(node))
    function = _function(params)

    def attribute(name: str) -> int:
        return int(check(cu.cuFuncGetAttribute(getattr(cu.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}"), function)))

    return LaunchRecord(
        name=_kernel_name(node),
        grid=(params.gridDimX, params.gridDimY, params.gridDimZ),
        block=(params.blockDimX, params.blockDimY, params.blockDimZ),
        cluster=_cluster(node, function),
        shared_bytes=params.sharedMemBytes + attribute("SHARED_SIZE_BYTES"),
        cooperative=_cooperative(node),
        programmatic=programmatic,
        registers=attribute("NUM_REGS"),
        local_bytes=attribute("LOCAL_SIZE_BYTES"),
    )


def _cluster(node: Any, function: Any) -> Extent:
    """The cluster that the launch asks for, else the one that the kernel was compiled for."""
    if not _has_clusters():
        return 1, 1, 1
    cu = driver()
    asked = check(cu.cuGraphKernelNodeGetAttribute(node, cu.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)).clusterDim
    if asked.x:
        return asked.x, asked.y, asked.z
    names = cu.CUfunction_attribute
    sides = [getattr(names, f"CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_{side}") for side in ("WIDTH", "HEIGHT", "DEPTH")]
    width, height, depth = (int(check(cu.cuFuncGetAttribute(side, function))) or 1 for side in sides)
    return width, height, depth


@cache
def _has_clusters() -> bool:
    cu = driver()
    attribute = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
    return bool(check(cu.cuDeviceGetAttribute(attribute, check(cu.cuCtxGetDevice()))))


def _cooperative(node: Any) -> bool:
    cu = driver()
    return bool(check(cu.cuGraphKernelNodeGetAttribute(node, cu.CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)).cooperative)


def _function(params: Any) -> Any:
    return params.func if int(params.func) else check(driver().cuKernelGetFunction(params.kern))


def _kernel_name(node: Any) -> str:
    cu = driver()
    params = check(cu.cuGraphKernelNodeGetParams(node))
    name = check(cu.cuFuncGetName(params.func)) if int(params.func) else check(cu.cuKernelGetName(params.kern))
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _is_kernel(node: Any) -> bool:
    cu = driver()
    return bool(check(cu.cuGraphNodeGetType(node)) == cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL)


def _kind(node: Any) -> str:
    return str(check(driver().cuGraphNodeGetType(node)).name).removeprefix("CU_GRAPH_NODE_TYPE_").lower()
