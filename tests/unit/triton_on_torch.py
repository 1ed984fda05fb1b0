"""A stand-in for Triton that runs its kernels on CPU tensors, program by program: what residual_mlp's kernel needs, with Triton's rules.

Sizes of `arange` and `zeros` are powers of two, both sides of a product are at least 16 and its operands are of one half type; what a
mask lets through lies inside its tensor; no element is written twice. Products are float32, as those of tensor cores are.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch


@dataclass(frozen=True)
class Pointer:
    """Into a flat tensor: one offset or a tile of them. `written` counts the writes to each of its elements."""

    flat: Any
    written: Any
    offset: Any = 0

    def __add__(self, more: Any) -> "Pointer":
        return Pointer(self.flat, self.written, self.offset + more)

    def inside(self, mask: Any) -> Any:
        """The offsets where the mask is set."""
        chosen = self.offset[mask.broadcast_to(self.offset.shape)]
        if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < len(self.flat):
            raise IndexError(f"offsets {int(chosen.min())} to {int(chosen.max())} of a tensor of {len(self.flat)} elements")
        return chosen


def load(pointer: Pointer, mask: Any, other: float) -> Any:
    mask = mask.broadcast_to(pointer.offset.shape)
    tile = torch.full(pointer.offset.shape, other, dtype=pointer.flat.dtype)
    tile[mask] = pointer.flat[pointer.inside(mask)]
    return tile


def store(pointer: Pointer, value: Any, mask: Any) -> None:
    chosen = pointer.inside(mask)
    pointer.written.index_add_(0, chosen, torch.ones(len(chosen), dtype=torch.int64))
    pointer.flat[chosen] = value[mask.broadcast_to(value.shape)].to(pointer.flat.dtype)


def dot(a: Any, b: Any, acc: Any = None) -> Any:
    if a.dtype != b.dtype or a.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError(f"a product of {a.dtype} and {b.dtype}")
    if min(*a.shape, *b.shape) < 16:
        raise ValueError(f"a product of {tuple(a.shape)} and {tuple(b.shape)}")
    product = a.float() @ b.float()
    return product if acc is None else acc + product


def arange(start: int, end: int) -> Any:
    _power_of_two(end - start)
    return torch.arange(start, end)


def zeros(shape: Sequence[int], dtype: Any) -> Any:
    for size in shape:
        _power_of_two(size)
    return torch.zeros(*shape, dtype=dtype)


def _power_of_two(size: int) -> None:
    if size < 1 or size & (size - 1):
        raise ValueError(f"{size} is no power of two")


@dataclass(frozen=True)
class Config:
    kwargs: dict[str, Any]
    num_warps: int
    num_stages: int

    def all_kwargs(self) -> dict[str, Any]:
        return {**self.kwargs, "num_warps": self.num_warps, "num_ctas": 1, "num_stages": self.num_stages}


@dataclass
class StandIn:
    """Made by `install`. `program`: which one runs; `launched`: the grid and the constants of every launch; `fastest`: which of the
    candidates the autotuner finds to be fastest."""

    fastest: int = 0
    program: int = 0
    launched: list[tuple[tuple[int, ...], dict[str, Any]]] = field(default_factory=list)

    def jit(self, function: Callable[..., None]) -> Any:
        return _Launcher(lambda grid, *arguments, **constants: self._launch(function, grid, *arguments, **constants))

    def autotune(self, configs: Sequence[Config], key: Sequence[str], do_bench: Any, cache_results: bool) -> Callable[[Any], Any]:
        def tuned(kernel: Any) -> Any:
            def run(grid: Any, *arguments: Any, **constants: Any) -> None:
                times = []
                for index, config in enumerate(configs):

                    def call(config: Config = config) -> None:
                        kernel[grid(config.kwargs)](*arguments, **constants, **config.all_kwargs())

                    call.cost = float(index != self.fastest)  # type: ignore[attr-defined]
                    times.append(do_bench(call, quantiles=(0.5, 0.2, 0.8)))
                launcher.best_config = configs[times.index(min(times))]

            launcher = _Launcher(run)
            return launcher

        return tuned

    def _launch(self, function: Callable[..., None], grid: tuple[int, ...], *arguments: Any, **constants: Any) -> Any:
        self.launched.append((grid, constants))
        sizes = {name: value for name, value in constants.items() if not name.startswith("num_")}
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        pointers = {id(tensor): Pointer(tensor.view(-1), torch.zeros(tensor.numel(), dtype=torch.int64)) for tensor in tensors}
        for self.program in range(grid[0]):
            function(*(pointers.get(id(value), value) for value in arguments), **sizes)
        for pointer in pointers.values():
            if pointer.written.max() > 1:
                raise RuntimeError("an element was written twice")
        return SimpleNamespace(n_regs=40, n_spills=0, metadata=SimpleNamespace(shared=1024))


class _Launcher:
    best_config: Config

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *arguments, **constants: self._run(grid, *arguments, **constants)


def install(patch: pytest.MonkeyPatch) -> StandIn:
    """Puts the stand-in where `import triton` finds it, until `patch` is undone."""
    made = StandIn()

    def program_id(axis: int) -> Any:
        return torch.tensor(made.program)

    def do_bench_cudagraph(call: Any, rep: float, quantiles: Sequence[float] = (0.5,)) -> list[float]:
        call()
        return [call.cost] * len(quantiles)

    language = {
        "tensor": torch.Tensor,
        "constexpr": int,
        "float32": torch.float32,
        "int64": torch.int64,
        "maximum": lambda a, low: a.clamp(min=low),
        **{function.__name__: function for function in (program_id, load, store, dot, arange, zeros)},
    }
    package = {"__version__": "of a test", "jit": made.jit, "autotune": made.autotune, "Config": Config, "cdiv": lambda a, b: -(-a // b)}
    for name, content in (
        ("triton", package),
        ("triton.language", language),
        ("triton.testing", {"do_bench_cudagraph": do_bench_cudagraph}),
    ):
        module = ModuleType(name)
        vars(module).update(content)
        patch.setitem(sys.modules, name, module)
    sys.modules["triton"].language = sys.modules["triton.language"]  # type: ignore[attr-defined]
    return made
