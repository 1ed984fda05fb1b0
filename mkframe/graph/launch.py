"""Kernel nodes as one callable: every launch configuration is built once, so that a call costs only the launches."""

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from mkframe.graph.driver import driver
from mkframe.plugin.launches import KernelNode, Launches


def callable_of(launches: Launches) -> Callable[[], None]:
    """What one call of a bound engine is: its own callable, or its kernel nodes launched in order on torch's current stream."""
    if launches.call is not None:
        return launches.call
    launchers = [_launcher(node) for node in launches.nodes]

    def call() -> None:
        stream = torch.cuda.current_stream().cuda_stream  # never kept: a capture runs on another stream
        for launch in launchers:
            launch(stream)

    return call


def _launcher(node: KernelNode) -> Callable[[int], None]:
    cu = driver()
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = node.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = node.block
    config.sharedMemBytes = node.shared_bytes
    config.attrs = _attributes(node)
    config.numAttrs = len(config.attrs)
    values = [_argument(argument) for argument in node.arguments]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    address = ctypes.addressof(pointers)
    function = cu.CUfunction(node.function)
    success, launch_kernel = cu.CUresult.CUDA_SUCCESS, cu.cuLaunchKernelEx
    keep_alive = (values, pointers, node)

    def launch(stream: int, keep_alive: object = keep_alive) -> None:
        config.hStream = cu.CUstream(stream)
        (status,) = launch_kernel(config, function, address, 0)
        if status != success:
            raise RuntimeError(f"launch of kernel {node.name or node.function} failed: {status.name}")

    return launch


def _attributes(node: KernelNode) -> list[Any]:
    cu = driver()
    wanted: list[Any] = []
    if node.cluster != (1, 1, 1):
        cluster = cu.CUlaunchAttribute()
        cluster.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = node.cluster
        wanted.append(cluster)
    if node.cooperative:
        cooperative = cu.CUlaunchAttribute()
        cooperative.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        cooperative.value.cooperative = 1
        wanted.append(cooperative)
    if node.programmatic:
        programmatic = cu.CUlaunchAttribute()
        programmatic.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        programmatic.value.programmaticStreamSerializationAllowed = 1
        wanted.append(programmatic)
    return wanted


def _argument(argument: Any) -> Any:
    """A tensor becomes its device address, a (value, ctypes type) pair that scalar."""
    if isinstance(argument, tuple):
        value, kind = argument
        return kind(value)
    return ctypes.c_uint64(argument.data_ptr())
