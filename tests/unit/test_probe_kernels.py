"""The probe's CUDA sources compile for every architecture that they claim, wherever a compiler is at hand."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from probe_fakes import HOPPER, FakeGpu

from mkframe.errors import RunError
from mkframe.graph import nvrtc
from mkframe.probe import barrier_cases, compile, l2_cases, launch_cases, memory_cases
from mkframe.probe.gpu import Launch

ARCHITECTURES = ("sm_80", "sm_86", "sm_90", "sm_120")
CLUSTERS = {"empty_programmatic", "touch_programmatic", "exchange_cluster", "barrier_cluster", "ring"}


def entries(text: str) -> set[str]:
    return set(re.findall(r"\.entry (\w+)", text))


def launched() -> set[str]:
    """Every kernel that the cases of a probe launch, on a device with clusters."""
    gpu = FakeGpu()
    slopes = [case.slope() for case in launch_cases.launch_cases(gpu)]
    slopes += [slope for case in barrier_cases.barrier_cases(gpu) for slope in case.slopes()]
    slopes += [case.slope(HOPPER) for case in (*memory_cases.memory_cases(gpu), *l2_cases.l2_cases(gpu))]
    return {one.kernel for slope in slopes for one in (*slope.short, *slope.long) if isinstance(one, Launch)}


@pytest.mark.parametrize("name", compile.SOURCES)
def test_sources_include_nothing(name: str) -> None:
    """NVRTC has no headers."""
    assert "#include" not in compile.source(name)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvcc_compiles_every_kernel_that_is_launched(architecture: str, tmp_path: Path) -> None:
    found: set[str] = set()
    for name in compile.SOURCES:
        source = tmp_path / name
        source.write_text(compile.source(name))
        for kind in ("-ptx", "-cubin"):
            output = tmp_path / f"{name}.{kind}"
            command = ["nvcc", f"-arch={architecture}", "-std=c++17", "--Werror", "all-warnings", kind, "-o", str(output), str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        found |= entries((tmp_path / f"{name}.-ptx").read_text())
    missing = (launched() | {"delay", "clock_rate"}) - found
    assert missing == (set() if architecture in ("sm_90", "sm_120") else CLUSTERS)


def nvrtc_problem() -> str | None:
    try:
        nvrtc.version()
    except RunError as error:
        return str(error)
    return None


def test_nvrtc_compiles_or_is_said_to_be_missing() -> None:
    problem = nvrtc_problem()
    if problem is not None:
        assert "install nvidia-cuda-nvrtc" in problem
        assert "\n" not in problem
        pytest.skip("NVRTC is not installed")
    for name in compile.SOURCES:
        for architecture in ("sm_90", "sm_80"):
            assert compile.compiled(name, architecture).startswith(b"\x7fELF")
    with pytest.raises(RunError, match=r"does not compile for sm_3"):
        compile.compiled("launch.cu", "sm_3")
