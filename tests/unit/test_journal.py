"""Events survive the journal bit for bit; a full disk leaves whole lines."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkframe.errors import UnreadableError
from mkframe.model.device import ClockReading
from mkframe.model.launch import LaunchRecord
from mkframe.model.outcome import Outcome
from mkframe.model.report import CheckRecord
from mkframe.run import messages as m
from mkframe.run.journal import Journal
from mkframe.run.journal_codec import JOURNALLED, Entry, decode, encode

finite = st.floats(allow_nan=False, allow_infinity=False)
samples = arrays(np.float64, st.integers(1, 20), elements=finite)
text = st.text(max_size=20)
checks = st.builds(
    CheckRecord,
    max_abs_error=finite,
    mean_abs_error=finite,
    violations=st.integers(0, 9),
    elements=st.integers(1, 9),
    rtol=finite,
    atol=finite,
    rounding_rows=st.integers(0, 9),
)
readings = st.builds(
    ClockReading, sm_clock_mhz=st.none() | finite, power_w=st.none() | finite, throttle_reasons=st.none() | st.integers(0, 9)
)
names = st.lists(text, max_size=3).map(tuple)
extents = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
launches = st.builds(
    LaunchRecord,
    name=text,
    grid=extents,
    block=extents,
    cluster=extents,
    shared_bytes=st.integers(0, 9),
    cooperative=st.booleans(),
    programmatic=st.booleans(),
    registers=st.integers(0, 255),
    local_bytes=st.integers(0, 9),
)
EVENTS: dict[str, st.SearchStrategy[Any]] = {
    "Hello": st.builds(
        m.Hello,
        pid=st.integers(1, 99999),
        name=text,
        multiprocessors=st.none() | st.integers(1, 200),
        l2_bytes=st.none() | st.integers(1, 10**9),
        cuda=st.none() | text,
        threads=st.none() | st.integers(1, 64),
        packages=st.dictionaries(text, text, max_size=3),
        floors=st.dictionaries(st.tuples(text, text), samples, max_size=3),
        step_ms=st.none() | finite,
    ),
    "CellReady": st.builds(
        m.CellReady,
        engine=text,
        check=st.none() | checks,
        checks=names,
        bind_s=finite,
        check_s=finite,
        capture_s=st.none() | finite,
        nodes=st.none() | names,
        kernels=st.none() | st.lists(launches, max_size=2).map(tuple),
        facts=st.dictionaries(text, st.none() | text | st.integers() | st.booleans(), max_size=3),
    ),
    "CellClosed": st.builds(m.CellClosed, engine=text, check=st.none() | checks, checks=names),
    "CellFailed": st.builds(
        m.CellFailed, engine=st.none() | text, outcome=st.sampled_from(Outcome), reason=text, check=st.none() | checks, checks=names
    ),
    "CaseReady": st.builds(m.CaseReady, sources=st.dictionaries(text, text, max_size=3)),
    "BlockDone": st.builds(
        m.BlockDone, engine=text, round=st.integers(0, 99), stream_ms=samples, host_ms=samples, late=st.none() | st.integers(0, 9)
    ),
    "TwinDone": st.builds(m.TwinDone, engine=text, stream_ms=samples | st.just(np.empty(0)), reason=st.none() | text),
    "RoundDone": st.builds(m.RoundDone, round=st.integers(0, 99), before=readings, after=readings),
}
entries = st.builds(
    Entry,
    worker=st.integers(0, 99),
    process=st.integers(0, 9),
    set=st.none() | text,
    case=st.none() | st.integers(0, 99),
    event=st.one_of(*EVENTS.values()),
)


def plain(value: Any) -> Any:
    """Comparable: arrays as bytes, so that every bit counts."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if hasattr(value, "__slots__") and not isinstance(value, str):
        return {name: plain(getattr(value, name)) for name in value.__slots__}
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def test_every_journalled_event_is_tried() -> None:
    assert EVENTS.keys() == JOURNALLED.keys()


@given(entries)
def test_an_entry_comes_back_bit_for_bit(entry: Entry) -> None:
    assert plain(decode(json.loads(json.dumps(encode(entry))), "here")) == plain(entry)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_is_no_entry_is_refused(value: Any) -> None:
    document = value if isinstance(value, dict) else {"event": value, "worker": 0, "process": 0, "set": None, "case": None}
    with pytest.raises(UnreadableError, match="here is no entry of a journal"):
        decode(document, "here")


def entry_of(round_index: int) -> Entry:
    block = m.BlockDone(engine="e", round=round_index, stream_ms=np.ones(5), host_ms=np.ones(5), late=None)
    return Entry(worker=0, process=0, set="s", case=0, event=block)


def test_events_that_only_tell_what_goes_on_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    journal = Journal(tmp_path)
    journal.begin({})
    journal.write(Entry(worker=0, process=0, event=m.Stage(engine=None, doing="resting")))
    journal.write(Entry(worker=0, process=0, set="s", case=0, event=m.CaseClosed()))
    journal.close()
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 1


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "journal.jsonl").touch()
    journal = Journal(tmp_path)
    journal.begin({})
    journal.write(entry_of(0))
    real = os.write
    room = [40]

    def scarce(descriptor: int, data: Any) -> int:
        if room[0] <= 0:
            raise OSError(28, "No space left on device")
        written = real(descriptor, bytes(data)[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", scarce)
    with pytest.raises(UnreadableError, match="No space left on device"):
        journal.write(entry_of(1))
    monkeypatch.setattr(os, "write", real)
    journal.write(entry_of(2))
    rounds = [entry.event.round for entry in journal.read().entries if isinstance(entry.event, m.BlockDone)]
    assert rounds == [0, 2]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    first = Journal(tmp_path)
    with pytest.raises(UnreadableError, match="still going on"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()
