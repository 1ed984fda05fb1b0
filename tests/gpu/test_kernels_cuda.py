"""Kernels of the CuTe DSL on a device: compiled for it, loaded, launched as nodes, eagerly and captured."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scale_config import Scale, kernel

from mkframe.errors import KernelError
from mkframe.kernels import current_target, facts, node
from mkframe.plugin import Launches

pytestmark = pytest.mark.gpu

N = 1000


@pytest.fixture
def device() -> Any:
    torch = pytest.importorskip("torch")
    torch.zeros(1, device="cuda")  # makes the context current
    return torch


def launched(torch: Any, config: Scale, cooperative: bool = False, captured: bool = False) -> tuple[Any, Any]:
    """(x, y) after one launch; on a second stream and out of a graph where it is captured."""
    from mkframe.graph.capture import capture
    from mkframe.graph.launch import callable_of

    x, y = torch.randn(N, device="cuda"), torch.full((N,), float("nan"), device="cuda")
    blocks = -(-N // config.block)
    blocks += -blocks % config.cluster
    made = node(kernel(config), current_target(), blocks, (x, y, (N, ctypes.c_int32)), cooperative)
    call = callable_of(Launches(nodes=(made,)))
    if captured:
        graph = capture(call, torch.cuda.Stream())
        (launch,) = graph.launches
        assert (launch.name, launch.block, launch.cluster) == (graph.nodes[0], (config.block, 1, 1), (config.cluster, 1, 1))
        assert (launch.shared_bytes >= config.shared_bytes, launch.local_bytes, launch.cooperative) == (True, 0, cooperative)
        y.fill_(float("nan"))
        torch.cuda.synchronize()
        graph.replay()
    else:
        call()
    torch.cuda.synchronize()
    return x, y


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("cooperative", [False, True])
def test_a_kernel_computes_what_it_says(device: Any, captured: bool, cooperative: bool) -> None:
    x, y = launched(device, Scale(factor=5), cooperative, captured)
    assert device.equal(y, 5 * x)


def test_all_the_shared_memory_of_the_device(device: Any) -> None:
    most = current_target().shared_bytes_per_block
    config = Scale(words=most // 4, shared_bytes=most)
    x, y = launched(device, config)
    thread = device.arange(N, device="cuda") % config.block
    neighbour = device.where(thread + 1 < config.block, thread + 1, 0)
    held = thread + 1 < config.block  # the word behind the last thread of a block was never written
    assert device.allclose(y[held], (3 * x + neighbour)[held])
    with pytest.raises(KernelError, match="bytes of shared memory a block"):
        launched(device, Scale(words=1, shared_bytes=most + 4))


@pytest.mark.parametrize("cluster", [2, 8, 16])
@pytest.mark.parametrize("captured", [False, True])
def test_clusters(device: Any, cluster: int, captured: bool) -> None:
    if device.cuda.get_device_capability()[0] < 9:
        pytest.skip("clusters begin with compute capability 9.0")
    x, y = launched(device, Scale(block=32, cluster=cluster), captured=captured)
    assert device.equal(y, 3 * x)


def test_registers_are_those_that_the_driver_names(device: Any) -> None:
    from mkframe.cuda_driver import check, driver

    cu = driver()
    for config in (Scale(), Scale(stack=True)):
        x = device.zeros(N, device="cuda")
        made = node(kernel(config), current_target(), 8, (x, x, (0, ctypes.c_int32)))
        (fact,) = facts((kernel(config),), current_target())["compiled"]
        names = cu.CUfunction_attribute
        function = cu.CUfunction(made.function)
        assert check(cu.cuFuncGetAttribute(names.CU_FUNC_ATTRIBUTE_NUM_REGS, function)) == fact["registers"]
        local = check(cu.cuFuncGetAttribute(names.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function))
        assert (local > 0) == (fact["spill_bytes"] > 0)


def test_another_process_compiles_nothing(device: Any) -> None:
    kernel_of = "from scale_config import kernel; from mkframe.kernels import compiled, current_target"
    script = (
        f"import sys; sys.path[:] = {sys.path!r}; import torch; torch.zeros(1, device='cuda'); {kernel_of}; "
        "print(compiled(kernel(), current_target()).cached, 'cutlass' in sys.modules)"
    )
    facts((kernel(),), current_target())
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    assert result.stdout.split() == ["True", "False"], result.stderr
