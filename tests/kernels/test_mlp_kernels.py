"""The CuTe DSL kernels of residual_mlp compiled for every architecture: no spills, the instructions that they promise, and a policy
that never asks for more than a block has."""

from random import Random

import pytest

from mkframe.errors import KernelError
from mkframe.kernels import SHARED_BYTES, compile_kernels, target
from mkframe.plugin import Kernel
from mkframe_plugins.residual_mlp.kernels.configs import Aligned, InRegisters, Ragged, WarpGroup
from mkframe_plugins.residual_mlp.kernels.dealing import dealt, meeting
from mkframe_plugins.residual_mlp.kernels.policy import Shape, schedules

SHAPES = ((1, 7, 13), (33, 32, 64), (129, 31, 47), (257, 64, 128), (1024, 128, 256), (50, 80, 112), (77, 256, 256))


def shape(rows: int, channels: int, hidden: int, *, bf16: bool = False, h_global: bool = False) -> Shape:
    return Shape(rows=rows, channels=channels, hidden=hidden, bf16=bf16, h_global=h_global)


@pytest.mark.parametrize("arch", SHARED_BYTES)
def test_every_kernel_compiles_without_spills(arch: str) -> None:
    wanted: dict[Kernel, None] = {}
    for size in SHAPES:
        for h_global in (False, True):
            found = schedules(shape(*size, bf16=h_global, h_global=h_global), target(arch))
            wanted.update(dict.fromkeys(schedule.kernel for schedule in found))
    assert {type(kernel.config) for kernel in wanted} == {InRegisters, Aligned, Ragged, *([WarpGroup] if arch == "sm_90a" else [])}
    for kernel, compiled in compile_kernels(tuple(wanted), target(arch)).items():
        assert not isinstance(compiled, KernelError), (kernel, compiled)
        assert compiled.frame_bytes == 0, kernel
        assert not compiled.lacks(kernel.expects), kernel
        assert [parameter.size for parameter in compiled.parameters] == [8] * 7 + [4]
        if isinstance(kernel.config, Aligned | WarpGroup) and not kernel.config.h_global:
            # h goes from the first product to the second through shared memory alone
            after = compiled.ptx[compiled.ptx.rindex("ldmatrix" if isinstance(kernel.config, Aligned) else "wgmma.fence") :]
            assert "ld.global" not in after


def test_what_a_schedule_asks_for_is_there() -> None:
    random = Random(5)
    for _ in range(2000):
        size = (random.randint(1, 5000), random.randint(1, 512), random.randint(1, 512))
        for arch, shared_bytes in SHARED_BYTES.items():
            for multiprocessors in (None, 1, 132):
                for schedule in schedules(shape(*size), target(arch, multiprocessors)):
                    config = schedule.kernel.config
                    assert schedule.kernel.shared_bytes <= shared_bytes
                    assert schedule.kernel.block <= 512
                    assert config.blocks_per_tile % schedule.kernel.cluster == 0
                    assert schedule.blocks % config.blocks_per_tile == 0
                    workers = schedule.blocks // config.blocks_per_tile
                    tiles = -(-size[0] // config.rows)
                    assert workers <= tiles
                    assert not config.single or workers == tiles


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_widths_of_up_to_128_always_fit(arch: str) -> None:
    for channels in range(1, 129):
        for hidden in (1, 7, 64, 127, 128):
            assert schedules(shape(100, channels, hidden), target(arch, 100)), (channels, hidden)


def test_too_large_is_none() -> None:
    assert schedules(shape(1, 4096, 14336), target("sm_90a", 132)) == ()
    assert schedules(shape(1024, 128, 256), target("sm_86", 82)) == ()


def test_rows_are_dealt_once_and_meet_in_fewer_banks() -> None:
    random = Random(7)
    for _ in range(500):
        depth, pitch = 16 * random.randint(1, 20), random.randint(1, 300)
        size = dealt(depth, pitch)
        rest = depth % size
        dealt_rows = sorted(
            begin + part // 4 * lane + row
            for begin, part in [*((n * size, size) for n in range(depth // size)), (depth - rest, rest)]
            for lane in range(4)
            for row in range(part // 4)
        )
        assert dealt_rows == list(range(depth))
        assert meeting(size, pitch) <= meeting(16, pitch) or rest
        # a bank holds the two halves of a word, and one word is one access
        wanted = [{(row * pitch + column) // 2 for column in range(8)} for row in (0, size // 4, size // 2, size // 4 * 3)]
        words = set().union(*wanted)
        assert meeting(size, pitch) >= max(sum(word % 32 == bank for word in words) for bank in range(32))
