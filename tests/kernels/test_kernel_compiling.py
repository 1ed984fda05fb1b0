"""Kernels through the CuTe DSL, compiled for every architecture without a GPU. subjects/scale.py is the kernel."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scale_config import Scale, kernel

from mkframe.errors import KernelError
from mkframe.kernels import SHARED_BYTES, Compiled, Kernel, build, compile_kernels, compiled, key, process, target
from mkframe.kernels.cache import KernelCache
from mkframe.kernels.cubin import Parameter, kernels_of

pytest.importorskip("nvidia_cutlass_dsl", reason="the CuTe DSL has wheels for Linux only")

ROOT = Path(__file__).resolve().parents[2]
PLAIN, SHARED, STACK = kernel(), kernel(Scale(words=256, shared_bytes=1024)), kernel(Scale(stack=True))
CLUSTER = kernel(Scale(cluster=2))
CHILD = """
import sys
from pathlib import Path
from scale_config import Scale, kernel
from mkframe.kernels import compiled, target
from mkframe.kernels.cache import KernelCache
found = compiled(kernel(Scale(factor=int(sys.argv[2]))), target("sm_90a"), KernelCache(Path(sys.argv[1])))
print(found.cached, found.cubin_sha256, "cutlass" in sys.modules)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> KernelCache:
    return KernelCache(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def built(cache: KernelCache) -> Mapping[tuple[Kernel, str], Compiled]:
    """Everything that compiles, for every architecture."""
    found = {}
    for arch in SHARED_BYTES:
        for one, outcome in compile_kernels((PLAIN, SHARED, STACK, CLUSTER), target(arch), cache).items():
            assert isinstance(outcome, Compiled), outcome
            found[one, arch] = outcome
    return found


def other_process(cache: Path, factor: int) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", CHILD, str(cache), str(factor)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def processes_in(folder: Path) -> Iterator[int]:
    """Processes whose current folder lies below `folder`, as that of the compiler does."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder in (entry / "cwd").readlink().parents:
                yield int(entry.name)


@pytest.mark.parametrize("arch", SHARED_BYTES)
def test_what_is_known_of_a_kernel(built: Mapping[tuple[Kernel, str], Compiled], arch: str) -> None:
    plain, shared = built[PLAIN, arch], built[SHARED, arch]
    assert plain.parameters == (Parameter(offset=0, size=8), Parameter(offset=8, size=8), Parameter(offset=16, size=4))
    assert re.search(r"\.target (\w+)", plain.ptx)[1] == arch  # type: ignore[index]
    assert f".entry {plain.entry}(" in plain.ptx
    assert 8 <= plain.registers <= 32
    assert plain.frame_bytes == shared.frame_bytes == 0
    assert (plain.count("ld.global"), plain.count("st.global"), plain.count("st.shared"), plain.count("bar.sync")) == (1, 1, 0, 0)
    assert (shared.count("st.shared"), shared.count("ld.shared"), shared.count("bar.sync")) == (1, 1, 1)
    assert plain.lacks(("ld.global", "mma.sync", "ld.glob")) == ("mma.sync", "ld.glob")
    assert built[STACK, arch].frame_bytes >= 128 * 4  # its local array


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("subject", [PLAIN, SHARED, STACK])
def test_registers_and_stack_are_those_that_ptxas_names(
    built: Mapping[tuple[Kernel, str], Compiled], subject: Kernel, tmp_path: Path
) -> None:
    found = built[subject, "sm_90a"]
    Path("kernel.ptx").write_text(found.ptx, encoding="utf-8")
    said = subprocess.run(["ptxas", "-v", "-arch=sm_90a", "kernel.ptx", "-o", "kernel.cubin"], capture_output=True, text=True, check=False)
    if "Unsupported .version" in said.stderr:
        pytest.skip("this ptxas is older than the PTX")
    frame, registers = re.search(r"(\d+) bytes stack frame", said.stderr), re.search(r"Used (\d+) registers", said.stderr)
    assert frame is not None
    assert registers is not None
    assert (found.frame_bytes, found.registers) == (int(frame[1]), int(registers[1]))
    (one,) = kernels_of(Path("kernel.cubin").read_bytes())
    assert (one.frame_bytes, one.registers, one.parameters) == (found.frame_bytes, found.registers, found.parameters)


@pytest.mark.parametrize(
    ("subject", "clause"),
    [
        (kernel(block=64), "it declares a block of 64 threads, and is compiled for (128, 1, 1)"),
        (kernel(shared_bytes=16), "it declares 16 bytes of shared memory, and its launch asks for 0"),
        (kernel(Scale(cluster=2), cluster=1), "it declares a cluster of 1 blocks, and its launch asks for (2, 1, 1)"),
        (kernel(cluster=2), "it declares a cluster of 2 blocks, and its launch asks for (1, 1, 1)"),
        (kernel(Scale(words=257, shared_bytes=1024)), "it allocates more than the 1024 bytes of shared memory that its launch asks for"),
        (kernel(Scale(words=8, shared_bytes=-1)), "its launch leaves shared memory to the compiler; give smem=0 as declared"),
        (kernel(Scale(launches=2)), "its host function launches 2 kernels; declare one Kernel for each"),
        (kernel(Scale(shared_bytes=300_000)), "takes 300000 bytes of shared memory a block, and sm_90a has 232448"),
        (kernel(Scale(fault="raise")), "does not compile: ValueError: no such schedule for this width"),
        (kernel(Scale(fault="exit")), "does not compile: SystemExit: 3"),
        (Kernel(module="no_such_kernel", config=Scale(), shared_bytes=0, block=128, name="n"), "kernel module no_such_kernel is not there"),
    ],
)
def test_a_kernel_that_is_not_what_it_says(cache: KernelCache, subject: Kernel, clause: str) -> None:
    with pytest.raises(KernelError, match=re.escape(clause)) as caught:
        compiled(subject, target("sm_90a"), cache)
    assert "\n" not in str(caught.value)


def test_a_kernel_without_end_is_given_up() -> None:
    (hung,) = process.compile_in_child([kernel(Scale(fault="hang"))], "sm_90a", limit_s=1.0)
    assert str(hung).endswith("the compiler came to no end within 1 s")


def test_a_kernel_that_ends_the_compiler_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_75")  # of the user's own; the compiler does not see it
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", "/nowhere")
    before = dict(os.environ)
    subjects = [kernel(Scale(fault=fault)) for fault in ("print", "abort")] + [PLAIN]
    first, aborted, last = process.compile_in_child(subjects, "sm_90a")
    assert isinstance(first, process.Raw)
    assert str(aborted).endswith("the compiler was killed with SIGABRT: assertion failed in the compiler")
    assert isinstance(last, process.Raw)
    assert last.cubin != first.cubin  # the kernel's name holds its configuration
    assert dict(os.environ) == before
    assert list(Path().iterdir()) == []  # nothing is dumped into the current folder
    assert "cutlass" not in sys.modules


def test_the_cache_is_asked_first(
    built: Mapping[tuple[Kernel, str], Compiled], cache: KernelCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nothing is to be compiled")

    monkeypatch.setattr(build, "compile_in_child", refuse)
    again = compiled(PLAIN, target("sm_90a"), KernelCache(cache.folder))
    assert again.cached
    assert not built[PLAIN, "sm_90a"].cached
    for name in ("cubin", "ptx", "registers", "frame_bytes", "parameters", "instructions", "entry", "arch"):
        assert getattr(again, name) == getattr(built[PLAIN, "sm_90a"], name)


def test_a_damaged_entry_is_compiled_again_and_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    first = compiled(PLAIN, target("sm_80"), KernelCache(tmp_path, told.append))
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    cache = KernelCache(tmp_path, told.append)
    again = compiled(PLAIN, target("sm_80"), cache)
    assert (again.cached, again.cubin) == (False, first.cubin)
    (line,) = told
    assert line == f"kernel cache: {entry.name} is damaged (its content does not match its hash); the kernel is compiled again"
    assert compiled(PLAIN, target("sm_80"), KernelCache(tmp_path, told.append)).cached
    assert len(told) == 1


def test_a_folder_that_cannot_be_used_costs_a_warning(tmp_path: Path) -> None:
    told: list[str] = []
    Path("file").touch()
    cache = KernelCache(tmp_path / "file" / "kernels", told.append)
    assert not compiled(PLAIN, target("sm_90a"), cache).cached
    assert len(told) == 1
    assert told[0].endswith("cannot be used (Not a directory); every process compiles its kernels again")


def test_a_source_that_changes_meanwhile_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = iter(["1" * 64, "2" * 64])
    monkeypatch.setattr(build, "key_of", lambda *_: next(keys))
    with pytest.raises(KernelError, match="a source of scale changed while it was compiled; start again"):
        compiled(PLAIN, target("sm_90a"), KernelCache(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_two_processes_at_once_compile_once(tmp_path: Path) -> None:
    processes = [other_process(tmp_path, 5) for _ in range(2)]
    answers = [one.communicate(timeout=60) for one in processes]
    lines = sorted(output.split() for output, _ in answers)
    assert [line[0] for line in lines] == ["False", "True"], answers
    assert lines[0][1] == lines[1][1]
    assert {line[2] for line in lines} == {"False"}
    assert [path.suffix for path in tmp_path.iterdir()] == [".kernel"]


def test_a_process_that_is_killed_leaves_no_trap(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path = tmp_path_factory.mktemp("cache")
    temporary = Path("temporary").absolute()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    one = other_process(tmp_path, 6)
    wait_until(lambda: any(processes_in(temporary)))  # it compiles
    one.kill()
    one.communicate()
    wait_until(lambda: not any(processes_in(temporary)))  # and the compiler ends with it
    another, _ = other_process(tmp_path, 6).communicate(timeout=60)
    assert another.startswith("False")
    assert [path.suffix for path in tmp_path.iterdir()] == [".kernel"]


def test_waiting_for_another_process_ends_with_ctrl_c(tmp_path: Path) -> None:
    told_key = key.key_of(kernel(Scale(factor=7)), "sm_90a")
    with KernelCache(tmp_path).writing([told_key]):
        one = other_process(tmp_path, 7)
        assert one.stderr is not None
        assert one.stderr.readline() == "mkframe: kernel cache: waiting for another process that compiles the same kernel\n"
        one.send_signal(signal.SIGINT)
        _, complaint = one.communicate(timeout=30)
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert list(tmp_path.iterdir()) == []


ANYWHERE = st.integers(0, 2**24)  # taken modulo the size


@settings(max_examples=300)
@given(
    arch=st.sampled_from(["sm_90a", "sm_100a"]),
    changes=st.lists(st.tuples(ANYWHERE, st.integers(0, 255)), max_size=8),
    end=ANYWHERE,
)
def test_a_cubin_that_is_damaged_anywhere_is_one_error(
    built: Mapping[tuple[Kernel, str], Compiled], arch: str, changes: list[tuple[int, int]], end: int
) -> None:
    whole = bytearray(built[PLAIN, arch].cubin)
    for place, value in changes:
        whole[place % len(whole)] = value
    cut = bytes(whole[: end % (len(whole) + 1)])
    for damaged in (bytes(whole), cut):
        with suppress(KernelError):  # nothing else may come out
            assert all(one.registers >= 0 and one.frame_bytes >= 0 for one in kernels_of(damaged))


def test_a_cubin_that_is_cut_is_refused(built: Mapping[tuple[Kernel, str], Compiled]) -> None:
    cubin = built[PLAIN, "sm_90a"].cubin
    for length in (0, 3, 63, len(cubin) // 2):
        with pytest.raises(KernelError, match="this is no whole cubin"):
            kernels_of(cubin[:length])


def test_a_table_beyond_every_file_is_refused(built: Mapping[tuple[Kernel, str], Compiled]) -> None:
    cubin = built[PLAIN, "sm_90a"].cubin
    with pytest.raises(KernelError, match="this is no whole cubin"):
        kernels_of(cubin[:40] + b"\xff" * 8 + cubin[48:])
