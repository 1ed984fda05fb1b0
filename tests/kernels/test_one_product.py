"""The kernel of conventional compiled for every architecture, and the rule that deals the columns of a product to blocks and warps."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkframe.errors import KernelError
from mkframe.kernels import SHARED_BYTES, compile_kernels, target
from mkframe.model.device import Device
from mkframe.model.precision import PRECISIONS
from mkframe.plugin import Kernel
from mkframe_plugins.residual_mlp.conventional_cuda import ConventionalCuda
from mkframe_plugins.residual_mlp.cpu_schedules import TileOptions
from mkframe_plugins.residual_mlp.kernels.product_configs import OneProduct, candidates, chosen
from mkframe_plugins.residual_mlp.workload import MlpCase

SHAPES = ((1, 7, 13), (100, 1, 1), (33, 32, 64), (129, 31, 47), (1024, 128, 256), (40, 16, 256), (50, 80, 112))
WIDTHS = st.integers(1, 256)
ROOMY = ("sm_80", "sm_90a", "sm_100a")  # where all of those fit


@pytest.mark.parametrize("arch", SHARED_BYTES)
def test_both_products_compile_without_spills(arch: str) -> None:
    engine, wanted = ConventionalCuda(), dict[Kernel, None]()
    for index, (rows, channels, hidden) in enumerate(SHAPES):
        case, precision = MlpCase(rows=rows, channels=channels, hidden=hidden), PRECISIONS["bf16" if index % 2 else "fp16"]
        wanted.update(dict.fromkeys(engine.kernels(case, precision, target(arch, 132), TileOptions())))
    assert {(kernel.config.aligned, kernel.config.residual) for kernel in wanted} == {(a, b) for a in (False, True) for b in (False, True)}
    for kernel, compiled in compile_kernels(tuple(wanted), target(arch)).items():
        assert not isinstance(compiled, KernelError), (kernel, compiled)
        assert compiled.frame_bytes == 0, kernel
        assert not compiled.lacks(kernel.expects), kernel
        assert [parameter.size for parameter in compiled.parameters] == [8] * 5 + [4]


def both(rows: int, channels: int, hidden: int, arch: str, multiprocessors: int) -> tuple[OneProduct, OneProduct]:
    """What bind takes on a device with so many multiprocessors."""
    kernels = ConventionalCuda().kernels(
        MlpCase(rows=rows, channels=channels, hidden=hidden), PRECISIONS["fp16"], target(arch, multiprocessors), TileOptions()
    )
    first, second = (kernel.config for kernel in kernels)
    assert isinstance(first, OneProduct)
    assert isinstance(second, OneProduct)
    return first, second


def tiles_of_warps(config: OneProduct) -> list[int]:
    """Where each tile of eight columns begins that some warp computes, one entry a warp, as the kernel counts them."""
    return [
        part * config.part_columns + wid % config.column_warps * 8 * config.column_tiles + 8 * tile
        for part in range(config.parts)
        for wid in range(config.column_warps)
        for tile in range(config.column_tiles)
    ]


@settings(max_examples=300, deadline=None)
@given(rows=st.integers(1, 5000), channels=WIDTHS, hidden=WIDTHS, arch=st.sampled_from(ROOMY), count=st.integers(1, 200))
def test_every_column_and_every_step_once(rows: int, channels: int, hidden: int, arch: str, count: int) -> None:
    for config in both(rows, channels, hidden, arch, count):
        begins = tiles_of_warps(config)
        assert len(begins) == len(set(begins))
        assert set(range(0, config.out_columns, 8)) <= set(begins)
        assert config.part_columns * (config.parts - 1) < config.out_columns, "a block without columns"
        assert config.steps * config.shares * 16 == config.padded_depth
        assert config.threads == 32 * config.column_warps * config.shares <= 128
        assert not config.aligned or config.part_columns * config.parts == config.columns, "a copy of a part leaves the row"


@settings(max_examples=300, deadline=None)
@given(rows=st.integers(1, 5000), channels=WIDTHS, hidden=WIDTHS, count=st.integers(1, 200))
def test_reads_stay_in_what_is_filled(rows: int, channels: int, hidden: int, count: int) -> None:
    """The farthest half that a fragment takes of w, of a and of h lies in the room that is copied or zeroed."""
    first, second = both(rows, channels, hidden, "sm_90a", count)
    for config in (first, second):
        width = config.w_room_pitch if config.aligned else config.columns
        farthest = max(tiles_of_warps(config)) + 7 - (config.part_columns * (config.parts - 1) if config.aligned else 0)
        assert (config.padded_depth - 1) * width + farthest < config.w_room
        assert config.padded_depth <= config.a_room_pitch
        assert config.shared_bytes >= 2 * (config.w_room + 16 * config.a_room_pitch) + 4 * config.shared_sums
    # the second product reads whole steps of h: the first one writes all of them
    assert second.a_in_vectors
    assert second.a_pitch == first.out_pitch == first.out_columns >= second.padded_depth
    (spec,) = ConventionalCuda().scratch(MlpCase(rows=rows, channels=channels, hidden=hidden), PRECISIONS["fp16"], TileOptions()).values()
    assert spec.shape == (rows, first.out_pitch)


@given(rows=st.integers(1, 5000), channels=WIDTHS, hidden=WIDTHS, arch=st.sampled_from(sorted(SHARED_BYTES)), count=st.integers(1, 200))
def test_no_device_takes_a_kernel_that_is_not_compiled_without_it(rows: int, channels: int, hidden: int, arch: str, count: int) -> None:
    engine, case = ConventionalCuda(), MlpCase(rows=rows, channels=channels, hidden=hidden)
    known = engine.kernels(case, PRECISIONS["fp16"], target(arch, count), TileOptions())
    assert set(known) <= set(engine.kernels(case, PRECISIONS["fp16"], target(arch), TileOptions()))


@given(rows=st.integers(1, 100_000), depth=st.integers(1, 2000), columns=st.integers(1, 2000), count=st.integers(1, 200))
def test_parts_grow_only_where_blocks_are_too_many_and_a_wider_one_fits(rows: int, depth: int, columns: int, count: int) -> None:
    there = target("sm_86", count)
    found = candidates(depth, columns, depth, residual=True, bf16=False, arch=there.arch)
    assert [config.part_columns for config in found] == sorted({config.part_columns for config in found})
    fitting = [config for config in found if config.shared_bytes <= there.shared_bytes_per_block]
    taken = chosen(found, rows, there)
    assert len(taken) == min(len(fitting), 1)
    for config in taken:
        index, tiles = fitting.index(config), -(-rows // 16)
        assert all(tiles * narrower.parts > 2 * count for narrower in fitting[:index])
        assert config is fitting[-1] or tiles * config.parts <= 2 * count


def test_widths_whose_weights_do_not_fit_are_refused_with_the_limit() -> None:
    """317 is odd: all of a matrix lies in a block, 248 KiB."""
    engine, case = ConventionalCuda(), MlpCase(rows=40, channels=317, hidden=400)
    device = Device(kind="cuda", name="A GPU", memory_bytes=1, compute_capability="9.0")
    told = engine.unsupported(case, PRECISIONS["fp16"], device)
    assert told is not None
    assert told.endswith("do not fit on chip (227 KiB a block)")
    for arch in ("sm_86", "sm_90a"):
        assert engine.kernels(case, PRECISIONS["fp16"], target(arch, 132), TileOptions()) == ()


def test_a_narrower_part_is_taken_where_a_wider_one_does_not_fit() -> None:
    """5000 rows want parts of 128 columns on any device of today; 512 of them are 136 KiB, and a block of sm_86 has 99 KiB."""
    kernels = ConventionalCuda().kernels(
        MlpCase(rows=5000, channels=512, hidden=512), PRECISIONS["fp16"], target("sm_86", 84), TileOptions()
    )
    assert [kernel.config.part_columns for kernel in kernels if isinstance(kernel.config, OneProduct)] == [64, 64]
