"""Declarations, architectures, PTX, and kernels loaded by a driver that remembers."""

import ctypes
import re
import sys
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.errors import ConfigError, DeviceError, KernelError
from mkframe.kernels import SHARED_BYTES, Compiled, Kernel, arch_of, current_target, facts, node, target, target_of
from mkframe.kernels import key as key_module
from mkframe.kernels.cubin import Parameter
from mkframe.kernels.load import function_of
from mkframe.kernels.ptx import count, instructions
from mkframe.kernels.targets import capability_of
from mkframe.model.device import Device
from mkframe.plugin import loader
from mkframe.plugin.answers import check_kernels
from mkframe.plugin.contract import ContractBreach


@dataclass(frozen=True)
class Config:
    width: int = 8


@dataclass
class Melting:
    width: int = 8


@dataclass(frozen=True)
class Nested:
    inner: Config = field(default_factory=Config)


@dataclass(frozen=True)
class Derived:
    width: int = 8
    pitch: int = field(init=False, default=16)


def kernel(**changes: Any) -> Kernel:
    plain: dict[str, Any] = {"module": "a.b", "config": Config(), "shared_bytes": 0, "block": 128, "name": "mine"}
    return Kernel(**(plain | changes))


CODE = Compiled(
    entry="kernel_0",
    arch="sm_90a",
    cubin=b"cubin",
    ptx="ret;\n",
    registers=32,
    frame_bytes=16,
    parameters=(Parameter(offset=0, size=8), Parameter(offset=8, size=4)),
    instructions={"ret": 1},
    compile_s=0.12345,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"module": "a-b"}, "module must be the import name of a module, not 'a-b'"),
        ({"module": ""}, "module must be"),
        ({"module": None}, "module must be"),
        ({"config": Config}, "config must be an instance of a frozen dataclass"),
        ({"config": Melting()}, "config must be an instance of a frozen dataclass, not Melting"),
        ({"config": {"width": 8}}, "config must be an instance of a frozen dataclass, not dict"),
        ({"config": Nested()}, "config.inner must be an int, a str or a bool, not Config"),
        ({"config": Config(width=1.5)}, "config.width must be an int, a str or a bool, not float"),  # type: ignore[arg-type]
        ({"config": Derived()}, "config.pitch must be a parameter of Derived"),
        ({"shared_bytes": -1}, "shared_bytes must be an integer from 0"),
        ({"shared_bytes": 1.0}, "shared_bytes must be an integer from 0"),
        ({"block": 0}, "block must be an integer from 1 to 1024, not 0"),
        ({"block": 1025}, "block must be an integer from 1 to 1024"),
        ({"cluster": 17}, "cluster must be an integer from 1 to 16"),
        ({"cluster": True}, "cluster must be an integer from 1 to 16, not True"),
        ({"name": ""}, "name must be a printable text"),
        ({"name": "a\nb"}, "name must be a printable text"),
        ({"expects": "mma.sync"}, "expects must be a tuple of PTX instructions, not 'mma.sync'"),
        ({"expects": ("",)}, "expects must be a tuple"),
    ],
)
def test_a_declaration_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kernel(**change)


def test_a_config_that_another_process_cannot_find() -> None:
    @dataclass(frozen=True)
    class Local:
        width: int = 8

    with pytest.raises(ValueError, match="must stand at the top of its module"):
        kernel(config=Local())


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ("8.0", "sm_80"),
        ("8.6", "sm_86"),
        ("8.7", "sm_86"),
        ("8.8", "sm_86"),
        ("8.9", "sm_89"),
        ("9.0", "sm_90a"),
        ("10.0", "sm_100a"),
        ("12.0", "sm_120a"),
    ],
)
def test_what_a_device_runs(capability: str, arch: str) -> None:
    assert arch_of(capability) == arch
    assert target(arch, 132).shared_bytes_per_block == SHARED_BYTES[arch]


@pytest.mark.parametrize("capability", ["7.5", "9.1", "10.3", "12.1", "13.0", "", "9", "x.y"])
def test_a_device_that_runs_none(capability: str) -> None:
    with pytest.raises(DeviceError, match=f"no kernel can be compiled for compute capability {capability}; there are architectures for"):
        arch_of(capability)


@pytest.mark.parametrize(("capability", "arch"), [("9.0", "sm_90a"), ("8.7", "sm_86"), ("7.5", None), (None, None)])
def test_the_target_of_a_device_in_a_plan(capability: str | None, arch: str | None) -> None:
    found = target_of(Device(kind="cuda", name="a GPU", memory_bytes=1, compute_capability=capability))
    assert (found.arch if found else None) == arch


def test_architectures_are_named_after_a_capability_that_runs_them() -> None:
    assert {arch: arch_of(capability_of(arch)) for arch in SHARED_BYTES} == {arch: arch for arch in SHARED_BYTES}
    with pytest.raises(ConfigError, match=r"device\.arch: 'sm_90' is not known; there are: sm_80, "):
        target("sm_90")


PTX = """
.visible .entry k( .param .u64 a ) // mma.sync in a comment
{
	.reg .pred %p<2>; /* bar.sync 0; */
	.shared .align 16 .b8 s[64];
	@%p1 bra $L__BB0_2;
	@!%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2}, {%r3}, {%r4}, {%r5};
$L__BB0_2: ret;
	{ .reg .pred P1; LAB: mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], %r2; @P1 bra DONE; }
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];
	mov.b32 {%r1, %r2}, %rd1;
	call.uni (retval), f, (p);
}
"""


def test_instructions_of_a_text() -> None:
    assert instructions(PTX) == {
        "bra": 2,
        "call.uni": 1,
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes": 1,
        "mbarrier.try_wait.parity.shared::cta.b64": 1,
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 1,
        "mov.b32": 1,
        "ret": 1,
    }


@pytest.mark.parametrize(
    ("prefix", "number"),
    [
        ("mma.sync", 1),
        ("mma", 1),
        ("mma.syn", 0),
        ("cp.async.bulk", 1),
        ("cp.async.bulk.shared", 1),
        ("cp.async.bulk.share", 0),
        ("bar.sync", 0),
        ("ret", 1),
    ],
)
def test_whole_parts_are_counted(prefix: str, number: int) -> None:
    assert count(instructions(PTX), prefix) == number


@given(text=st.text(max_size=200))
def test_any_text_has_instructions(text: str) -> None:
    assert all(number > 0 for number in instructions(text).values())


class FakeDriver:
    """Contexts by number; modules and functions are numbers too."""

    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED="cluster"
    )
    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=8,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=7,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=16,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=166_912,
    )

    def __init__(self, context: int) -> None:
        self.context = context
        self.calls: list[tuple[Any, ...]] = []

    def cuCtxGetCurrent(self) -> tuple[int, str]:
        return 0, f"context {self.context}"

    def cuCtxGetId(self, context: str) -> tuple[int, int]:
        assert context == f"context {self.context}"
        return 0, self.context

    def cuCtxGetDevice(self) -> tuple[int, str]:
        return 0, "device"

    def cuDeviceGetAttribute(self, attribute: int, device: str) -> tuple[int, int]:
        assert device == "device"
        return 0, attribute

    def cuModuleLoadData(self, cubin: bytes) -> tuple[int, bytes]:
        self.calls.append(("load", cubin))
        return 0, cubin

    def cuModuleGetFunction(self, module: bytes, name: bytes) -> tuple[int, int]:
        self.calls.append(("get", module, name))
        return 0, 4242 + self.context

    def cuFuncSetAttribute(self, function: int, attribute: str, value: int) -> tuple[int]:
        self.calls.append((attribute, function, value))
        return (0,)


@pytest.fixture
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("mkframe.kernels.nodes"), "compiled", lambda kernel, target: CODE)


def test_a_kernel_is_loaded_once_in_each_context() -> None:
    first, second = FakeDriver(71), FakeDriver(72)
    assert [function_of(kernel(), CODE, api) for api in (first, first, second)] == [4313, 4313, 4314]
    assert first.calls == second.calls == [("load", b"cubin"), ("get", b"cubin", b"kernel_0")]


@pytest.mark.parametrize(
    ("change", "attributes"),
    [
        ({"shared_bytes": 49152, "cluster": 8}, []),
        ({"shared_bytes": 49153}, [("shared", 49153)]),
        ({"shared_bytes": 232_448, "cluster": 16}, [("shared", 232_448), ("cluster", 1)]),
    ],
)
def test_attributes_are_set_where_the_launch_needs_them(change: dict[str, Any], attributes: list[tuple[str, int]]) -> None:
    api = FakeDriver(80)
    function_of(kernel(**change), CODE, api)
    assert [(call[0], call[2]) for call in api.calls[2:]] == attributes


def test_the_target_of_the_current_context() -> None:
    found = current_target(FakeDriver(1))
    assert (found.arch, found.multiprocessors, found.shared_bytes_per_block) == ("sm_86", 16, 166_912)


@pytest.mark.usefixtures("_compiled")
def test_a_node_is_the_whole_launch() -> None:
    tensor = object()
    made = node(
        kernel(cluster=2, shared_bytes=64), target("sm_90a"), 6, [tensor, (5, ctypes.c_int32)], programmatic=True, api=FakeDriver(90)
    )
    assert (made.function, made.grid, made.block, made.cluster) == (4332, (6, 1, 1), (128, 1, 1), (2, 1, 1))
    assert (made.arguments, made.shared_bytes, made.name) == ((tensor, (5, ctypes.c_int32)), 64, "mine")
    assert (made.cooperative, made.programmatic) == (False, True)


@pytest.mark.usefixtures("_compiled")
@pytest.mark.parametrize(
    ("grid", "arguments", "message"),
    [
        (3, (object(), (5, ctypes.c_int32)), "3 blocks along x are no whole number of clusters of 2"),
        (0, (object(), (5, ctypes.c_int32)), "a grid is three integers from 1 on, not (0, 1, 1)"),
        ((2, 1), (object(), (5, ctypes.c_int32)), "a grid is three integers from 1 on, not (2, 1)"),
        (2, (object(),), "takes parameters of [8, 4] bytes, and is given arguments of [8]; a pointer has 8"),
        (2, (object(), (5, ctypes.c_int64)), "takes parameters of [8, 4] bytes, and is given arguments of [8, 8]"),
        (2, ((5, ctypes.c_int32), object()), "takes parameters of [8, 4] bytes, and is given arguments of [4, 8]"),
        (2, (), "takes parameters of [8, 4] bytes, and is given arguments of []"),
    ],
)
def test_launches_that_cannot_be(grid: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(KernelError, match=re.escape(message)):
        node(kernel(cluster=2), target("sm_90a"), grid, arguments, api=FakeDriver(91))


@pytest.mark.usefixtures("_compiled")
def test_facts_for_a_report() -> None:
    assert facts((kernel(), kernel(), kernel(name="b", shared_bytes=9)), target("sm_90a"))["compiled"] == [
        {
            "name": name,
            "arch": "sm_90a",
            "registers": 32,
            "spill_bytes": 16,
            "shared_bytes": shared,
            "ptx_sha256": CODE.ptx_sha256,
            "cubin_sha256": CODE.cubin_sha256,
            "compile_s": 0.123,
            "from_cache": False,
        }
        for name, shared in (("mine", 0), ("b", 9))
    ]


@pytest.mark.parametrize(
    ("driver", "installed", "taken"),
    [(None, ("cu12", "cu13"), "cu13"), (12, ("cu12", "cu13"), "cu12"), (13, ("cu12",), "cu12"), (13, ("cu12", "cu13"), "cu13")],
)
def test_the_flavour_is_the_newest_that_the_driver_loads(
    driver: int | None, installed: tuple[str, ...], taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, installed, driver, monkeypatch)
    assert key_module.flavour() == taken


@pytest.mark.parametrize(
    ("driver", "installed", "message"),
    [(12, ("cu13",), r"no CuTe DSL for this driver \(CUDA 12\) is installed"), (None, (), "the CuTe DSL, which compiles kernels, is not")],
)
def test_no_flavour_is_one_error(
    driver: int | None, installed: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, installed, driver, monkeypatch)
    with pytest.raises(KernelError, match=message):
        key_module.flavour()


def _install(folder: Path, flavours: tuple[str, ...], driver: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*flavours, "dsl_packages"):
        (folder / name).mkdir()
    monkeypatch.setattr(key_module, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(folder)]))
    monkeypatch.setattr(key_module, "_driver_major", lambda: driver)


def test_what_an_engine_may_answer() -> None:
    assert check_kernels([kernel()]) == (kernel(),)
    assert check_kernels(()) == ()
    for answer, clause in (
        (None, "must return a tuple of Kernels, not None"),
        (kernel(), "must return a tuple of Kernels, not Kernel"),
        ((kernel(), "x"), "gives 'x'; every item is a Kernel"),
    ):
        with pytest.raises(ContractBreach, match=re.escape(clause)):
            check_kernels(answer)


@pytest.mark.parametrize("kept", [True, False])
def test_a_folder_called_kernels_is_no_plugin(kept: bool, tmp_path: Path) -> None:
    name = "kernel_files" if kept else "kernels"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise ImportError('needs the compiler')", encoding="utf-8")
    failures = [failure.id for failure in loader.load_registry([str(tmp_path)]).failures]
    assert failures == (["kernel_files"] if kept else [])


def test_a_built_in_package_called_kernels_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("trial", "trial/mine", "trial/mine/kernels"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "trial" / "mine" / "kernels" / "fast.py").write_text("raise ImportError('needs the compiler')", encoding="utf-8")
    (tmp_path / "trial" / "mine" / "broken.py").write_text("raise ImportError('of its own')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(loader, "BUILT_IN", "trial")
    assert [(failure.id, failure.error) for failure in loader.load_registry().failures] == [("broken", "ImportError: of its own")]
    assert "trial.mine.kernels" not in sys.modules


def test_a_compiled_kernel_of_another_cubin_is_loaded_again() -> None:
    api = FakeDriver(95)
    function_of(kernel(), CODE, api)
    function_of(kernel(), replace(CODE, cubin=b"other"), api)
    assert [call for call in api.calls if call[0] == "load"] == [("load", b"cubin"), ("load", b"other")]
