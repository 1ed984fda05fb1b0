"""Texts for reports lose folders, keep words, and fit JSON and a terminal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.redact import storable, storable_value, without_paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot open /srv/me/x.cubin", "cannot open .../x.cubin"),
        ("'/tmp/torchinductor_root/ab/c.py'", "'.../c.py'"),
        ("in ~/kernels/mine.py: no", "in .../mine.py: no"),
        ("/opt/cuda/ is gone", "... is gone"),
        ("3 of 7 rows and/or 1/2", "3 of 7 rows and/or 1/2"),
        ("GB/s, x/y", "GB/s, x/y"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("relative/path/file.py", "relative/path/file.py"),
        ("(/a/b/c,/d/e)", "(.../c,.../e)"),
    ],
)
def test_absolute_paths_lose_their_folders(text: str, expected: str) -> None:
    assert without_paths(text) == expected


@given(st.text(st.characters()))
def test_any_text_becomes_one_line_that_json_holds(text: str) -> None:
    stored = storable(text)
    assert json.loads(json.dumps(stored).encode("utf-8")) == stored
    stored.encode("utf-8")
    assert "\n" not in stored
    assert storable(stored) == stored


def test_values_are_made_storable_all_the_way_down() -> None:
    assert storable_value({"/a/b": ["/c/d/e", 1, {"k": "two\nlines"}]}) == {".../b": [".../e", 1, {"k": "two lines"}]}
