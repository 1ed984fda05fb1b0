"""Events survive the journal bit for bit; a full disk leaves whole lines."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
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
from mkframe.run.stopped import UnwritableJournal

amounts = st.floats(min_value=0, allow_infinity=False)
times = st.just(0.0) | st.floats(min_value=1e-9, max_value=8e7)
samples = arrays(np.float64, st.integers(1, 20), elements=times)
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
checks = st.builds(
    CheckRecord,
    max_abs_error=amounts,
    mean_abs_error=amounts,
    violations=st.integers(0, 9),
    elements=st.integers(1, 9),
    rtol=amounts,
    atol=amounts,
    rounding_rows=st.integers(0, 9),
)
readings = st.builds(
    ClockReading,
    sm_clock_mhz=st.none() | amounts,
    temperature_c=st.none() | st.floats(-200, 200),
    power_w=st.none() | amounts,
    throttle_reasons=st.none() | st.integers(0, 9),
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


@st.composite
def blocks(draw: st.DrawFn) -> m.BlockDone:
    count = draw(st.integers(1, 20))
    stream_ms, host_ms = draw(arrays(np.float64, (2, count), elements=times))
    late = draw(st.none() | st.integers(0, count))
    return m.BlockDone(engine=draw(text), round=draw(st.integers(0, 99)), stream_ms=stream_ms, host_ms=host_ms, late=late)


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
        floors=st.dictionaries(st.tuples(text, text), samples, min_size=1, max_size=3),
        step_ms=st.none() | st.floats(min_value=1e-9, max_value=1),
    ),
    "CellReady": st.builds(
        m.CellReady,
        engine=text,
        check=st.none() | checks,
        checks=names,
        bind_s=amounts,
        check_s=amounts,
        capture_s=st.none() | amounts,
        nodes=st.none() | names,
        kernels=st.none() | st.lists(launches, max_size=2).map(tuple),
        facts=st.dictionaries(st.just("") | text, st.none() | text | st.integers() | st.booleans(), max_size=3),
    ),
    "CellClosed": st.builds(m.CellClosed, engine=text, check=st.none() | checks, checks=names),
    "CellFailed": st.builds(
        m.CellFailed, engine=st.none() | text, outcome=st.sampled_from(Outcome), reason=text, check=st.none() | checks, checks=names
    ),
    "CaseReady": st.builds(m.CaseReady, sources=st.dictionaries(text, digests, max_size=3)),
    "BlockDone": blocks(),
    "TwinDone": st.builds(m.TwinDone, engine=text, stream_ms=samples)
    | st.builds(m.TwinDone, engine=text, stream_ms=st.just(np.empty(0)), reason=text),
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


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**30, 10**400, -1, 1e308, "", "x", "\ud800"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON document, containers and all."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *places_of(item, (*path, key)))]


def with_other(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    changed = json.loads(json.dumps(document))
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return changed


@settings(max_examples=500)
@given(st.data())
def test_any_other_value_is_refused_or_kept_as_it_is(data: st.DataObject) -> None:
    document = json.loads(json.dumps(encode(data.draw(entries))))
    changed = with_other(document, data.draw(st.sampled_from(places_of(document))), data.draw(anything))
    try:
        entry = decode(changed, "here")
    except UnreadableError:
        return
    assert json.dumps(encode(entry)) == json.dumps(changed)


@pytest.mark.parametrize("name", EVENTS)
@given(data=st.data())
def test_a_field_too_few_or_too_many_is_refused(name: str, data: st.DataObject) -> None:
    entry = Entry(worker=0, process=0, set="s", case=0, event=data.draw(EVENTS[name]))
    document = encode(entry)
    gone = data.draw(st.sampled_from(sorted(document.keys() - {"set", "case"})))
    for changed in ({key: value for key, value in document.items() if key != gone}, {**document, "more": 1}):
        with pytest.raises(UnreadableError, match="here is no entry of a journal"):
            decode(changed, "here")


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


def test_a_journal_that_was_removed_takes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.touch()
    with Journal(tmp_path) as journal:
        journal.begin({})
        path.unlink()
        with pytest.raises(UnwritableJournal, match=r"was removed while the run went on.*start the run again") as gone:
            journal.write(entry_of(0))
    assert gone.value.gone
    assert str(tmp_path) not in gone.value.stopped.reason


def test_what_was_written_since_the_beginning_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.touch()
    with Journal(tmp_path) as journal:
        journal.begin({})
        journal.write(entry_of(0))
        written = path.read_bytes()
    with Journal(tmp_path) as journal:
        journal.read()
        journal.write(entry_of(1))
        assert path.read_bytes() != written
        journal.take_back()
        assert path.read_bytes() == written
        journal.write(entry_of(2))
        assert [entry.event.round for entry in journal.read().entries if isinstance(entry.event, m.BlockDone)] == [0, 2]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    first = Journal(tmp_path)
    with pytest.raises(UnreadableError, match="still going on"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()
