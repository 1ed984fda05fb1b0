"""CUDA engines for residual_mlp in fp16: an honest one that hands over kernel nodes, liars that only a graph shows, and faults."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from mkframe.plugin import Engine, KernelNode, Launches

SOURCE = r"""
typedef unsigned short half_bits;
__device__ float wide(half_bits b) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(b)); return f; }
__device__ float rounded(float v) { half_bits b; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(v)); return wide(b); }

__device__ void compute_row(const half_bits* x, const half_bits* w1, const float* b1, const half_bits* w2,
                            const float* b2, float* y, int channels, int hidden) {
    extern __shared__ float h[];
    const half_bits* row = x + (long long)blockIdx.x * channels;
    for (int j = threadIdx.x; j < hidden; j += blockDim.x) {
        float sum = 0;
        for (int k = 0; k < channels; k++) sum += wide(row[k]) * wide(w1[k * hidden + j]);
        h[j] = rounded(fmaxf(sum + b1[j], 0.0f));
    }
    __syncthreads();
    for (int c = threadIdx.x; c < channels; c += blockDim.x) {
        float sum = 0;
        for (int j = 0; j < hidden; j++) sum += h[j] * wide(w2[j * channels + c]);
        y[(long long)blockIdx.x * channels + c] = fmaxf(sum + b2[c] + wide(row[c]), 0.0f);
    }
}

extern "C" __global__ void one_row(const half_bits* x, const half_bits* w1, const float* b1, const half_bits* w2,
                                   const float* b2, float* y, int channels, int hidden) {
    compute_row(x, w1, b1, w2, b2, y, channels, hidden);
}

extern "C" __global__ void one_row_waiting(const half_bits* x, const half_bits* w1, const float* b1, const half_bits* w2,
                                           const float* b2, float* y, int channels, int hidden) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    compute_row(x, w1, b1, w2, b2, y, channels, hidden);
}

extern "C" __global__ void write_to(float* nowhere) { nowhere[threadIdx.x] = 1.0f; }
"""

_functions: dict[str, int] = {}


def function(name: str) -> int:
    """Handle of a kernel of SOURCE, compiled for the device at hand."""
    if not _functions:
        import torch
        from cuda.bindings import driver, nvrtc

        def ok(result: tuple[Any, ...]) -> Any:
            assert int(result[0]) == 0, result
            return result[1] if len(result) == 2 else result[1:]

        major, minor = torch.cuda.get_device_capability()
        program = ok(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"test.cu", 0, [], []))
        ok(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()]))
        cubin = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
        ok(nvrtc.nvrtcGetCUBIN(program, cubin))
        torch.zeros(1, device="cuda")
        module = ok(driver.cuModuleLoadData(cubin))
        for kernel in ("one_row", "one_row_waiting", "write_to"):
            _functions[kernel] = int(ok(driver.cuModuleGetFunction(module, kernel.encode())))
    return _functions[name]


class OneBlock(Engine):
    """What all of these have in common."""

    workload = "residual_mlp"
    devices = ("cuda",)

    def unsupported(self, case: Any, precision: Any, device: Any) -> str | None:
        return "one block only" if case.depth > 1 else None


class Nodes(OneBlock):
    """One kernel node; the framework launches it. `programmatic` lets it start before its predecessor ends; it then has to wait."""

    def __init__(self, name: str, kernel: str, programmatic: bool = False, overlaps: bool = False) -> None:
        self.id, self.overlaps = name, overlaps
        self._kernel, self._programmatic = kernel, programmatic

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        arguments = (*(tensors[name] for name in ("x", "W1", "b1", "W2", "b2", "y")),)
        node = KernelNode(
            name=self._kernel,
            function=function(self._kernel),
            programmatic=self._programmatic,
            grid=(case.rows, 1, 1),
            block=(128, 1, 1),
            shared_bytes=4 * case.hidden,
            arguments=(*arguments, (case.channels, ctypes.c_int32), (case.hidden, ctypes.c_int32)),
        )
        return Launches(nodes=(node,))


class Opaque(OneBlock):
    def __init__(self, name: str, make: Callable[[Mapping[str, Any]], Callable[[], None]]) -> None:
        self.id = name
        self._make = make

    def bind(self, case: Any, precision: Any, tensors: Mapping[str, Any], options: Any) -> Launches:
        return Launches(call=self._make(tensors))


def compute(t: Mapping[str, Any], out: Any) -> None:
    import torch

    x = t["x"].float()
    h = torch.relu(x @ t["W1"].float() + t["b1"]).half().float()
    torch.clamp(h @ t["W2"].float() + t["b2"] + x, min=0, out=out)


def captures_nothing(t: Mapping[str, Any]) -> Callable[[], None]:
    """Works when it is called outside of a capture, and does nothing inside."""
    import torch

    def call() -> None:
        if not torch.cuda.is_current_stream_capturing():
            compute(t, t["y"])

    return call


def captures_an_old_input(t: Mapping[str, Any]) -> Callable[[], None]:
    """Captures the product of a copy that it made when it was bound."""
    frozen = {**t, "x": t["x"].clone()}
    return lambda: compute(frozen, t["y"])


def illegal_address(t: Mapping[str, Any]) -> Callable[[], None]:
    """Poisons the CUDA context."""
    from cuda.bindings import driver

    kernel = driver.CUfunction(function("write_to"))
    address = ctypes.c_uint64(8)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(address))

    def call(keep: Any = address) -> None:
        import torch

        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, ctypes.addressof(pointers), 0)

    return call


def too_much_memory(t: Mapping[str, Any]) -> Callable[[], None]:
    def call() -> None:
        import torch

        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")

    return call


def capturing() -> bool:
    import torch

    return torch.cuda.is_current_stream_capturing()


def joined_side_stream(t: Mapping[str, Any]) -> Callable[[], None]:
    """Honest: what it forks it joins."""
    import torch

    side = torch.cuda.Stream()

    def call() -> None:
        current = torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            compute(t, t["y"])
        current.wait_stream(side)

    return call


def side_stream(t: Mapping[str, Any]) -> Callable[[], None]:
    """Joins what it forked only where a capture would fail otherwise."""
    import torch

    side, joined = torch.cuda.Stream(), joined_side_stream(t)

    def call() -> None:
        if capturing():
            joined()
            return
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            compute(t, t["y"])

    return call


def side_stream_of_its_own(t: Mapping[str, Any]) -> Callable[[], None]:
    """Does not even wait for its input, which is there already whenever somebody looks."""
    import torch

    side = torch.cuda.Stream()

    def call() -> None:
        if capturing():
            compute(t, t["y"])
            return
        with torch.cuda.stream(side):
            compute(t, t["y"])

    return call


def working_ahead(t: Mapping[str, Any]) -> Callable[[], None]:
    """Right in time, and busy on another stream when the stop event has been reached."""
    import torch

    side = torch.cuda.Stream()

    def call() -> None:
        compute(t, t["y"])
        if not capturing():
            with torch.cuda.stream(side):
                torch.cuda._sleep(1_000_000)

    return call


def cached_by_content(t: Mapping[str, Any]) -> Callable[[], None]:
    """Computes only where its input is another one than the last."""
    import torch

    kept: dict[str, Any] = {}

    def call() -> None:
        if not capturing() and kept and torch.equal(kept["x"], t["x"]):
            t["y"].copy_(kept["y"])
            return
        for _ in range(50):
            compute(t, t["y"])
        if not capturing():
            kept.update(x=t["x"].clone(), y=t["y"].clone())

    return call


def skipping_what_is_there(t: Mapping[str, Any]) -> Callable[[], None]:
    """Does nothing where its output still lies in place and the input is the one that it came from."""
    kept: list[float] = []

    def few() -> list[float]:
        return [t["x"][0, 0].item(), t["x"][-1, -1].item(), t["y"][0, 0].item(), t["y"][-1, -1].item()]

    def call() -> None:
        if not capturing() and kept and kept == few():
            return
        for _ in range(50):
            compute(t, t["y"])
        if not capturing():
            kept[:] = few()

    return call


def carve_out_left(t: Mapping[str, Any]) -> Callable[[], None]:
    from cuda.bindings import driver

    (status,) = driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 22)
    assert int(status) == 0, status
    return lambda: compute(t, t["y"])


def another_elapsed_time(t: Mapping[str, Any]) -> Callable[[], None]:
    def call() -> None:
        import torch

        compute(t, t["y"])
        torch.cuda.Event.elapsed_time = lambda start, stop: 1e-3  # type: ignore[method-assign]

    return call


ENGINES = (
    Nodes("nodes", "one_row"),
    Nodes("impatient", "one_row", programmatic=True, overlaps=True),
    Nodes("patient", "one_row_waiting", programmatic=True, overlaps=True),
    Nodes("overlapping", "one_row_waiting", programmatic=True),
    *(
        Opaque(make.__name__.replace("_", "-"), make)
        for make in (
            captures_nothing,
            captures_an_old_input,
            illegal_address,
            too_much_memory,
            joined_side_stream,
            side_stream,
            side_stream_of_its_own,
            working_ahead,
            cached_by_content,
            skipping_what_is_there,
            carve_out_left,
            another_elapsed_time,
        )
    ),
)
