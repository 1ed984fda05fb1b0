"""Engine triton-fused: one Triton kernel, one program a row tile, h in registers. The baseline that a user writes in an hour.

A program loads its rows of x once and takes the hidden units in chunks: first product, bias, relu and the one rounding make a tile
of h, and the second product adds what that tile contributes to y. Masks pad both widths, channels to one power of two for the whole
tile. The next block of a chain starts from the tile that is there, so a chain is one launch as well.

How rows and hidden units are cut is chosen by Triton's autotuner in `bind`, among the few schedules below.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from mkframe.plugin import Device, Engine, Launches, NoOptions, Precision
from mkframe_plugins.residual_mlp.workload import MlpCase

NARROWEST = 16  # the smallest side of a tile that Triton multiplies
MOST_CHANNELS = 1024
MOST_WEIGHTS = 2**30  # elements of one matrix: offsets inside it are 32-bit, with room for the padding
ACCUMULATORS = 64  # elements of the y tile in a thread; with twice as many the compiler spills
CHUNK_BYTES = 160 * 2**10  # of weights in shared memory at a time
TUNING_MS = 10.0  # of calls in one graph, as Triton estimates them; the graph is replayed ten times


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """How the work is cut: rows of a program, hidden units of a step, warps of a program, steps in the pipeline."""

    rows: int
    hidden: int
    warps: int
    stages: int = 1

    def fits(self, case: MlpCase) -> bool:
        """Whether it may be good for a case: no tile larger than the padded case, no pipeline around a single step, and tiles that
        registers and shared memory hold."""
        width, hidden = padded(case.channels), padded(case.hidden)
        return (
            self.rows <= padded(case.rows)
            and self.hidden <= hidden
            and (self.stages == 1 or self.hidden < hidden)
            and self.rows * width <= ACCUMULATORS * 32 * self.warps
            and max(1, self.stages - 1) * 2 * (2 * width * self.hidden) <= CHUNK_BYTES
        )


# Drawn up for the development shapes. Tiles of 16 rows give the most programs, and those shapes have fewer of them than a large device
# has multiprocessors; what is left to find is how many warps fetch how much of the weights at a time. Larger tiles read the weights
# fewer times, for thousands of rows.
SCHEDULES = (
    Schedule(rows=16, hidden=16, warps=1),
    Schedule(rows=16, hidden=16, warps=8),
    Schedule(rows=16, hidden=32, warps=2),
    Schedule(rows=16, hidden=32, warps=4),
    Schedule(rows=16, hidden=32, warps=8, stages=2),
    Schedule(rows=16, hidden=64, warps=4),
    Schedule(rows=16, hidden=64, warps=8),
    Schedule(rows=16, hidden=64, warps=4, stages=3),
    Schedule(rows=16, hidden=128, warps=4),
    Schedule(rows=16, hidden=128, warps=8),
    Schedule(rows=16, hidden=256, warps=8),
    Schedule(rows=32, hidden=64, warps=4, stages=3),
    Schedule(rows=32, hidden=128, warps=8),
    Schedule(rows=64, hidden=64, warps=4, stages=3),
    Schedule(rows=128, hidden=64, warps=8, stages=3),
)


def padded(size: int) -> int:
    """The next power of two, at least NARROWEST."""
    return max(NARROWEST, 1 << (size - 1).bit_length())


def candidates(case: MlpCase) -> tuple[Schedule, ...]:
    """The schedules that are tried for a case, in the order in which they stand; at least one for what `unsupported` lets through."""
    return tuple(schedule for schedule in SCHEDULES if schedule.fits(case))


@cache
def has_triton() -> bool:
    """Whether Triton is installed; it is not imported."""
    return importlib.util.find_spec("triton") is not None


@cache
def kernel() -> Any:
    """The kernel as Triton's JIT function, made once. Its sizes are constants, so each shape has code of its own.

    Arguments: x (rows, channels), W1 (depth, channels, hidden), b1 (depth, hidden), W2 (depth, hidden, channels), b2 (depth,
    channels), y (rows, channels); `width` is the padded number of channels, `tile` the rows of a program, `step` the hidden units that
    it takes at a time. Dtypes are those of the contract.
    """
    import triton
    import triton.language as tl

    def residual_mlp_fused(
        x_at: tl.tensor,
        w1_at: tl.tensor,
        b1_at: tl.tensor,
        w2_at: tl.tensor,
        b2_at: tl.tensor,
        y_at: tl.tensor,
        rows: tl.tensor,
        channels: tl.constexpr,
        hidden: tl.constexpr,
        depth: tl.constexpr,
        width: tl.constexpr,
        tile: tl.constexpr,
        step: tl.constexpr,
    ) -> None:
        first = tl.program_id(0).to(tl.int64) * tile
        row = tl.arange(0, tile)
        channel = tl.arange(0, width)
        a_channel = channel < channels
        inside = (row < rows - first)[:, None] & a_channel[None, :]
        place = first * channels + row[:, None] * channels + channel[None, :]
        x = tl.load(x_at + place, mask=inside, other=0.0)
        y = tl.zeros((tile, width), tl.float32)
        for _ in range(depth):
            z = tl.zeros((tile, width), tl.float32)
            for start in range(0, hidden, step):
                unit = start + tl.arange(0, step)
                a_unit = unit < hidden
                w1 = tl.load(w1_at + channel[:, None] * hidden + unit[None, :], mask=a_channel[:, None] & a_unit[None, :], other=0.0)
                b1 = tl.load(b1_at + unit, mask=a_unit, other=0.0)
                h = tl.maximum(tl.dot(x, w1) + b1[None, :], 0.0).to(x.dtype)
                w2 = tl.load(w2_at + unit[:, None] * channels + channel[None, :], mask=a_unit[:, None] & a_channel[None, :], other=0.0)
                z = tl.dot(h, w2, z)
            b2 = tl.load(b2_at + channel, mask=a_channel, other=0.0)
            y = tl.maximum(z + b2[None, :] + x.to(tl.float32), 0.0)
            x = y.to(x.dtype)
            w1_at += channels * hidden
            b1_at += hidden
            w2_at += hidden * channels
            b2_at += channels
        tl.store(y_at + place, y, mask=inside)

    return triton.jit(residual_mlp_fused)


@cache
def tuner(schedules: tuple[Schedule, ...]) -> Any:
    """Triton's autotuner of the kernel over `schedules`. What it finds for a shape holds for every binding of the process, and, kept in
    Triton's cache folder, for every process of a run: all of them time one kernel."""
    import triton
    from triton.testing import do_bench_cudagraph

    def time_ms(call: Callable[[], Any], quantiles: Any) -> Any:
        do_bench_cudagraph(call, rep=TUNING_MS)  # the clocks may have fallen while the candidate was compiled
        return do_bench_cudagraph(call, rep=TUNING_MS, quantiles=quantiles)

    configs = [
        triton.Config({"tile": schedule.rows, "step": schedule.hidden}, num_warps=schedule.warps, num_stages=schedule.stages)
        for schedule in schedules
    ]
    shape = ["rows", "channels", "hidden", "depth"]
    return triton.autotune(configs=configs, key=shape, do_bench=time_ms, cache_results=True)(kernel())


class TritonFused(Engine):
    """The whole call in one kernel that Triton compiles."""

    id = "triton-fused"
    workload = "residual_mlp"
    devices = ("cuda",)
    precisions = ("fp16", "bf16")
    baseline = True
    limits = f"CUDA from sm_80 on, with Triton installed; at most {MOST_CHANNELS} channels"

    def unsupported(self, case: MlpCase, precision: Precision, device: Device) -> str | None:
        if case.channels > MOST_CHANNELS:
            return f"a tile of more than {MOST_CHANNELS} channels does not fit in registers"
        if case.channels * case.hidden > MOST_WEIGHTS:
            return f"a weight matrix of more than {MOST_WEIGHTS} elements needs 64-bit offsets"
        if device.compute_capability is not None and int(device.compute_capability.partition(".")[0]) < 8:
            return "needs sm_80 or newer"
        return None if has_triton() else "triton is not installed"

    def bind(self, case: MlpCase, precision: Precision, tensors: Mapping[str, Any], options: NoOptions) -> Launches:
        import triton

        tried = candidates(case)
        arguments = (*(tensors[name] for name in ("x", "W1", "b1", "W2", "b2", "y")), case.rows)
        sizes = {"channels": case.channels, "hidden": case.hidden, "depth": case.depth, "width": padded(case.channels)}
        tuned = tuner(tried)
        tuned[lambda chosen: (triton.cdiv(case.rows, chosen["tile"]),)](*arguments, **sizes)
        best = tuned.best_config
        programs = triton.cdiv(case.rows, best.kwargs["tile"])
        launch = kernel()[(programs,)]  # past the autotuner, which would look the choice up at every call
        constants = {**sizes, **best.all_kwargs()}
        compiled = launch(*arguments, **constants)

        def call() -> None:
            launch(*arguments, **constants)

        facts = {
            "triton": str(triton.__version__),
            "tile_rows": best.kwargs["tile"],
            "hidden_step": best.kwargs["step"],
            "num_warps": best.num_warps,
            "num_stages": best.num_stages,
            "candidates": len(tried),
            "programs": programs,
            "registers": compiled.n_regs,
            "spills": compiled.n_spills,
            "shared_bytes": compiled.metadata.shared,
        }
        return Launches(call=call, facts=MappingProxyType(facts))


ENGINES = (TritonFused(),)
