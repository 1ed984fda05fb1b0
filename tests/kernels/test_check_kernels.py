"""The CUDA sources of the checks compile for every architecture, and hold what the producer test rests on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mkframe.check.producer import source_text

ARCHITECTURES = ("sm_80", "sm_86", "sm_90", "sm_90a", "sm_120")


def test_the_source_includes_nothing() -> None:
    """NVRTC has no headers."""
    assert "#include" not in source_text()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_compiles_and_releases_what_follows_where_the_device_can(architecture: str, tmp_path: Path) -> None:
    source, target = tmp_path / "late_copy.cu", tmp_path / "late_copy.ptx"
    source.write_text(source_text())
    command = ["nvcc", f"-arch={architecture}", "-std=c++17", "--Werror", "all-warnings", "-ptx", "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = target.read_text()
    assert ".entry late_copy" in text
    assert ("griddepcontrol.launch_dependents" in text) == (architecture not in ("sm_80", "sm_86"))
    assert text.index("globaltimer") < text.index("st.global"), "the data must come after the delay"
