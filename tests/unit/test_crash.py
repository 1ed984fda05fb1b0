"""Where a process crashed, from what its faulthandler wrote."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.run.crash import FRAMES, where

PROGRAM = """
import ctypes, faulthandler, sys
faulthandler.enable(all_threads=False)
def innermost(depth):
    if depth == 0:
        ctypes.string_at(0)
    innermost(depth - 1)
innermost(int(sys.argv[1]))
"""


@pytest.mark.parametrize("depth", [0, 1, 50])
def test_the_innermost_frames_are_named_without_their_folders(tmp_path: Path, depth: int) -> None:
    (tmp_path / "engine.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(tmp_path / "engine.py"), str(depth)], capture_output=True, check=False)
    assert done.returncode < 0
    names = where(done.stderr).split(", ")
    assert names[:2] == [names[0], "innermost (engine.py:6)"]
    assert names[0].startswith("string_at (__init__.py:")
    assert len(names) == min(FRAMES, depth + 3)
    assert names[2] == ("<module> (engine.py:8)" if depth == 0 else "innermost (engine.py:7)")


def test_without_a_frame_there_is_no_word() -> None:
    assert (
        where(b"")
        == where(b"Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n  <no Python frame>\n")
        == ""
    )


@given(st.binary() | st.builds(lambda a, b: b'  File "' + a + b'", line 7 in ' + b + b"\n", st.binary(), st.binary()))
def test_any_bytes_give_a_short_line(dump: bytes) -> None:
    found = where(dump)
    assert found.isprintable()
    assert len(found) < 150 * FRAMES
    found.encode()
