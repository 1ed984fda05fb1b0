"""CUDA engines whose output is right, and which launch one more kernel: a sound one, or one that a tool of compute-sanitizer must catch."""

from collections.abc import Mapping
from typing import Any

from mkframe.plugin import Engine, KernelNode, Launches

THREADS, ELEMENTS = 64, 100
SOURCE = r"""
extern "C" __global__ void sound(const float* set, float* out) {
    __shared__ float held[64];
    held[threadIdx.x] = set[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = held[63 - threadIdx.x];
}

// memcheck: the last thread writes one element behind the end of `out`, which has 100.
extern "C" __global__ void beyond_the_end(const float* set, float* out) { out[threadIdx.x + 37] = set[threadIdx.x]; }

// racecheck: what another warp writes is read without a barrier.
extern "C" __global__ void without_a_barrier(const float* set, float* out) {
    __shared__ volatile float held[64];
    held[threadIdx.x] = set[threadIdx.x];
    out[threadIdx.x] = held[63 - threadIdx.x];
}

// synccheck: half of the threads of each warp come to a barrier that is for all. The others have work to do behind it: threads that
// could end at once would leave the barrier to those that come.
extern "C" __global__ void divergent_barrier(const float* set, float* out) {
    __shared__ volatile float held[64];
    held[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x % 2 == 0) {
        held[threadIdx.x] = set[threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = held[(threadIdx.x + 2) % 64];
}

// initcheck: `set` is an allocation that nobody has written.
extern "C" __global__ void never_written(const float* set, float* out) { out[threadIdx.x] = set[threadIdx.x]; }
"""
NAMES = ("sound", "beyond_the_end", "without_a_barrier", "divergent_barrier", "never_written")


class OneMoreKernel(Engine):
    """No product of a library, whose kernels are not ours to judge."""

    workload = "residual_mlp"
    devices = ("cuda",)
    precisions = ("fp16",)

    def __init__(self, name: str) -> None:
        self.id = name.replace("_", "-")
        self._name = name

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        import torch

        from mkframe.graph.launch import callable_of
        from mkframe.graph.nvrtc import cubin, function_of

        major, minor = torch.cuda.get_device_capability()
        function = function_of(cubin(SOURCE, "broken.cu", f"sm_{major}{minor}"), self._name)
        read = torch.empty(ELEMENTS, device="cuda")
        written = torch.zeros(ELEMENTS, device="cuda")
        if self._name != "never_written":
            read.fill_(1.0)
        node = KernelNode(function=function, grid=(1, 1, 1), block=(THREADS, 1, 1), arguments=(read, written), name=self._name)
        more = callable_of(Launches(nodes=(node,)))

        def call() -> None:
            more()
            x = tensors["x"].float()
            h = torch.relu((x[:, :, None] * tensors["W1"].float()[None]).sum(1) + tensors["b1"]).half().float()
            products = (h[:, :, None] * tensors["W2"].float()[None]).sum(1)
            torch.clamp(products + tensors["b2"] + x, min=0, out=tensors["y"])

        return Launches(call=call)


ENGINES = tuple(OneMoreKernel(name) for name in NAMES)
