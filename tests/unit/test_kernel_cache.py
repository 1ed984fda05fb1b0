"""The disk cache of compiled kernels, without a compiler."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkframe.canonical import sha256
from mkframe.errors import UnreadableError
from mkframe.kernels.cache import KernelCache, kernels_folder
from mkframe.kernels.cubin import Parameter
from mkframe.kernels.result import Compiled, Damaged, Entry, decode, encode

KEY, OTHER = "a" * 64, "b" * 64
COMPILED = Compiled(
    entry="kernel_0",
    arch="sm_90a",
    cubin=bytes(range(256)) * 4,
    ptx="// µ\n.entry kernel_0\n\tret;\n",
    registers=32,
    frame_bytes=0,
    parameters=(Parameter(offset=0, size=8), Parameter(offset=8, size=4)),
    instructions={"ret": 1},
    compile_s=0.25,
)
ENTRY = Entry(key=KEY, module="m", name="scale", compiled=COMPILED)
DATA = encode(ENTRY)


def counts() -> st.SearchStrategy[int]:
    return st.integers(0, 2**31)


@given(
    cubin=st.binary(max_size=200),
    ptx=st.text(max_size=200),
    registers=counts(),
    frame=counts(),
    sizes=st.lists(st.tuples(counts(), counts()), max_size=4),
    instructions=st.dictionaries(st.text(max_size=8), counts(), max_size=4),
)
def test_an_entry_comes_back_as_it_was(
    cubin: bytes, ptx: str, registers: int, frame: int, sizes: list[tuple[int, int]], instructions: dict[str, int]
) -> None:
    compiled = replace(
        COMPILED,
        cubin=cubin,
        ptx=ptx,
        registers=registers,
        frame_bytes=frame,
        parameters=tuple(Parameter(offset=offset, size=size) for offset, size in sizes),
        instructions=instructions,
    )
    assert decode(encode(replace(ENTRY, compiled=compiled))) == replace(ENTRY, compiled=replace(compiled, cached=True))


@given(data=st.data())
def test_damage_anywhere_is_seen(data: st.DataObject) -> None:
    damaged = bytearray(DATA)
    for place in data.draw(st.sets(st.integers(0, len(DATA) - 1), min_size=1, max_size=4)):
        damaged[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damaged):
        decode(bytes(damaged))


@given(length=st.integers(0, len(DATA) - 1), tail=st.binary(min_size=1, max_size=9))
def test_a_cut_and_an_addition_are_seen(length: int, tail: bytes) -> None:
    with pytest.raises(Damaged):
        decode(DATA[:length])
    with pytest.raises(Damaged):
        decode(DATA + tail)


@given(
    body=st.one_of(
        st.binary(max_size=80), st.just(b'{"cubin_bytes": 0}\n'), st.just(b"[]\nrest"), st.just(b'{"cubin_bytes": -1, "ptx_bytes": 0}\n')
    )
)
def test_a_body_of_another_form_is_seen_though_its_hash_holds(body: bytes) -> None:
    with pytest.raises(Damaged, match="it was written in another form"):
        decode(b"mkframe-kernel 1 %s\n" % sha256(body).encode() + body)


def test_hashes_and_lines_are_those_of_the_text() -> None:
    assert COMPILED.ptx_lines == 3
    assert (COMPILED.ptx_sha256, COMPILED.cubin_sha256) == (sha256(COMPILED.ptx.encode()), sha256(COMPILED.cubin))


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "kernels", _refuse)


def _refuse(text: str) -> None:
    raise AssertionError(f"nothing is to be told: {text}")


def test_what_is_stored_is_loaded_by_another_process(cache: KernelCache) -> None:
    assert cache.load(KEY) is None
    cache.store(ENTRY)
    assert cache.load(KEY) == COMPILED  # from memory: it was compiled here
    assert KernelCache(cache.folder, _refuse).load(KEY) == replace(COMPILED, cached=True)
    assert [path.name for path in cache.folder.iterdir()] == [f"{KEY}.kernel"]


def test_an_entry_under_another_key_is_not_taken(cache: KernelCache) -> None:
    cache.store(ENTRY)
    (cache.folder / f"{KEY}.kernel").rename(cache.folder / f"{OTHER}.kernel")
    told: list[str] = []
    assert KernelCache(cache.folder, told.append).load(OTHER) is None
    assert told == [f"kernel cache: {OTHER}.kernel is damaged (it belongs to another key); the kernel is compiled again"]


@pytest.mark.parametrize("kind", ["file", "read-only"])
def test_a_folder_that_cannot_be_used_is_told_once(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    if kind == "file":
        folder.touch()
    else:

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "mkdir", refuse)
    told: list[str] = []
    cache = KernelCache(folder, told.append)
    with cache.writing([KEY, OTHER]) as release:
        assert cache.load(KEY) is None
        cache.store(ENTRY)
        release(KEY)
    assert cache.load(KEY) == COMPILED  # in memory all the same
    assert len(told) == 1
    assert re.fullmatch(r"kernel cache: .*/kernels cannot be used \(.+\); every process compiles its kernels again", told[0])


def test_a_full_disk_is_told_and_leaves_no_part(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    told: list[str] = []
    full = KernelCache(cache.folder, told.append)
    full.store(ENTRY)
    assert told == [f"kernel cache: {cache.folder} cannot be used (No space left on device); every process compiles its kernels again"]
    assert list(cache.folder.iterdir()) == []


def test_a_lock_that_is_let_go_leaves_nothing(cache: KernelCache) -> None:
    with cache.writing([OTHER, KEY, KEY]) as release:
        assert sorted(path.name for path in cache.folder.iterdir()) == [f"{KEY}.lock", f"{OTHER}.lock"]
        release(KEY)
        release(KEY)
        assert [path.name for path in cache.folder.iterdir()] == [f"{OTHER}.lock"]
    assert list(cache.folder.iterdir()) == []


def test_clear_takes_what_is_old_enough_and_no_lock_that_is_held(cache: KernelCache) -> None:
    cache.store(ENTRY)
    cache.store(replace(ENTRY, key=OTHER))
    os.utime(cache.folder / f"{KEY}.kernel", (1000.0, 1000.0))
    written = (cache.folder / f"{OTHER}.kernel").stat().st_mtime
    (cache.folder / f".{KEY}.kernel.1234.part").write_bytes(b"xyz")
    (cache.folder / "stale.lock").touch()
    (cache.folder / "notes.txt").touch()
    assert cache.clear(60.0, now=written + 1) == (1, len(DATA))
    with cache.writing([OTHER]):
        assert cache.clear() == (1, len(encode(replace(ENTRY, key=OTHER))) + 3)
        assert sorted(path.name for path in cache.folder.iterdir()) == [f"{OTHER}.lock", "notes.txt"]
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]
    assert cache.clear() == (0, 0)


def test_the_list_holds_damaged_entries_too(cache: KernelCache) -> None:
    assert list(cache.listed()) == []
    cache.store(ENTRY)
    (cache.folder / f"{OTHER}.kernel").write_bytes(b"junk")
    whole, damaged = cache.listed()
    assert (whole.key, whole.bytes, damaged.key, damaged.bytes, damaged.entry) == (KEY, len(DATA), OTHER, 4, None)
    assert whole.entry is not None
    assert (whole.entry.name, whole.entry.compiled.arch) == ("scale", "sm_90a")
    cache.folder.joinpath("x").touch()
    with pytest.raises(UnreadableError, match="cannot read"):
        list(KernelCache(cache.folder / "x").listed())


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({"XDG_CACHE_HOME": "/c"}, "/c"), ({"HOME": "/h"}, "/h/.cache"), ({"HOME": "/h", "XDG_CACHE_HOME": "relative"}, "/h/.cache")],
)
def test_where_kernels_lie(environ: dict[str, str], expected: str) -> None:
    assert kernels_folder(environ) == Path(expected, "mkframe", "kernels")
