"""The CUDA sources of the checks and of launch twins compile for every architecture, and hold what those rest on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mkframe.check.producer import source_text
from mkframe.graph import twin

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
ARCHITECTURES = ("sm_80", "sm_86", "sm_90", "sm_90a", "sm_120")


@pytest.mark.parametrize("source", [source_text(), twin.source_text()])
def test_the_source_includes_nothing(source: str) -> None:
    """NVRTC has no headers."""
    assert "#include" not in source


def ptx(source_text: str, architecture: str, folder: Path) -> str:
    source, target = folder / "source.cu", folder / "target.ptx"
    source.write_text(source_text)
    command = ["nvcc", f"-arch={architecture}", "-std=c++17", "--Werror", "all-warnings", "-ptx", "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target.read_text()


@needs_nvcc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_empty_kernels_are_empty(architecture: str, tmp_path: Path) -> None:
    text = ptx(twin.source_text(), architecture, tmp_path)
    assert ".entry empty()" in text
    assert (".entry empty_programmatic()" in text) == (architecture not in ("sm_80", "sm_86"))
    assert "st." not in text
    assert "ld." not in text


@needs_nvcc
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_compiles_and_releases_what_follows_where_the_device_can(architecture: str, tmp_path: Path) -> None:
    text = ptx(source_text(), architecture, tmp_path)
    assert ".entry late_copy" in text
    assert ("griddepcontrol.launch_dependents" in text) == (architecture not in ("sm_80", "sm_86"))
    assert text.index("globaltimer") < text.index("st.global"), "the data must come after the delay"
