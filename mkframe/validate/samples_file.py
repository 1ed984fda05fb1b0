"""The samples file beside a report, read as what it is: a file that anybody may have written.

Whoever opens one has checked its hash. Then come the sizes that the archive states, then arrays of exactly the kind that we write.
Nothing is unpickled, nothing is written anywhere, and nothing larger than LIMIT is unpacked: a member gives no more bytes than it states.
"""

import io
import math
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mkframe.errors import UnreadableError
from mkframe.stats import Samples
from mkframe.validate.finding import shown
from mkframe.validate.zip_form import form_fault
from mkframe.validate.zip_members import header_fault, stream_fault

LIMIT = 64 * 2**20
"""Bytes of the whole archive when unpacked."""
_ARRAYS_PER_CELL = 8
_ENTRY = b"PK\x01\x02"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype><[fi]8)', 'fortran_order': False, 'shape': \((?P<shape>[1-9]\d{0,9}(?:,|, [1-9]\d{0,9}))\), \} *\n"
)
_HEADER_END = 128
"""Where the values begin: numpy fills a header up to a multiple of 64, and one of two dimensions at most takes 65 to 128."""
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError, RuntimeError, OverflowError, struct.error, MemoryError)


@dataclass(frozen=True, kw_only=True, slots=True)
class CellSamples:
    """Stream times (rounds, samples per round) in ms, the process that took each round, and which rounds of the plan they are."""

    stream_ms: Samples
    process: tuple[int, ...]
    rounds: tuple[int, ...]


class SamplesFile:
    """An open samples file. `name` is for messages. Every method raises UnreadableError for what does not belong."""

    def __init__(self, data: bytes, name: str, cells: int) -> None:
        """`data`: the bytes of the file; `cells`: how many cells its report has."""
        self._name = name
        if data.count(_ENTRY) > _ARRAYS_PER_CELL * (cells + 1):
            raise self._fault("it holds more arrays than its report has cells")
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except _FAULTS as problem:
            raise self._fault(f"it is no .npz file ({_text(problem)})") from problem
        entries = self._archive.infolist()
        if sum(entry.file_size for entry in entries) > LIMIT:
            raise self._fault(f"it is larger than {LIMIT // 2**20} MiB when unpacked")
        if len({entry.filename for entry in entries}) != len(entries):
            raise self._fault("it holds two arrays of one name")
        # Other methods unpack without a limit.
        if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1 for entry in entries):
            raise self._fault("an array is encrypted, or packed in a way that numpy does not use")
        if (why := form_fault(data, self._archive)) is not None:
            raise self._fault(why)
        for entry in entries:
            if (why := header_fault(data, entry)) is not None:
                raise self._fault(f"{shown(entry.filename)} {why}")
        self._data = data
        self._names = frozenset(entry.filename for entry in entries)

    @property
    def names(self) -> frozenset[str]:
        """What the archive holds, `SET/CASE/ENGINE/ARRAY.npy` each."""
        return self._names

    def host_ms(self, key: str) -> Samples:
        """The host times under `key` (SET/CASE/ENGINE), (rounds, samples per round) in ms."""
        return self._times(f"{key}/host_ms")

    def cell(self, key: str, round_process: tuple[int, ...]) -> CellSamples:
        """The samples under `key` (SET/CASE/ENGINE). `round_process`: process of each round of the plan, for files that do
        not say which worker took a round."""
        stream = self._times(f"{key}/stream_ms")
        rounds = self._array(f"{key}/rounds", "<i8", 1)
        if rounds.size != len(stream) or rounds[0] < 0 or (np.diff(rounds) <= 0).any():
            raise self._fault(f"the rounds of {shown(key)} are not one ascending number for each row of samples")
        if f"{key}/workers.npy" in self._names:
            workers = self._array(f"{key}/workers", "<i8", 1)
            if workers.size != len(stream):
                raise self._fault(f"{shown(key)} does not name one worker for each row of samples")
            process = tuple(int(worker) for worker in workers)
        elif rounds[-1] < len(round_process):
            process = tuple(round_process[index] for index in rounds)
        else:
            raise self._fault(f"{shown(key)} has round {rounds[-1]}, and the report has {len(round_process)} rounds")
        return CellSamples(stream_ms=stream, process=process, rounds=tuple(int(index) for index in rounds))

    def _times(self, name: str) -> Samples:
        times = self._array(name, "<f8", 2)
        if not (np.isfinite(times).all() and (times >= 0).all()):
            raise self._fault(f"{shown(name)} holds times that are negative or no numbers")
        return times

    def _array(self, name: str, dtype: str, dimensions: int) -> NDArray[Any]:
        try:
            with self._archive.open(f"{name}.npy") as file:
                data = file.read(LIMIT + 1)
            why = stream_fault(self._data, self._archive.getinfo(f"{name}.npy"))
        except KeyError:
            raise self._fault(f"{shown(name)} is missing") from None
        except _FAULTS as problem:
            raise self._fault(f"{shown(name)} cannot be unpacked ({_text(problem)})") from problem
        if why is not None:
            raise self._fault(f"{shown(name)} {why}")
        start = len(_MAGIC) + 2
        length = int.from_bytes(data[len(_MAGIC) : start], "little")
        header = _HEADER.fullmatch(data[start : start + length]) if data.startswith(_MAGIC) else None
        if header is None or header["dtype"].decode() != dtype or start + length > _HEADER_END:
            raise self._fault(f"{shown(name)} is no array of {dtype} as numpy writes it")
        shape = tuple(int(size) for size in header["shape"].decode().split(",") if size)
        if len(shape) != dimensions or math.prod(shape) * 8 != len(data) - start - length:
            raise self._fault(f"{shown(name)} has another shape than its header or its report says")
        return np.frombuffer(data, dtype=dtype, offset=start + length).reshape(shape)

    def _fault(self, why: str) -> UnreadableError:
        return UnreadableError(f"samples file {self._name}: {why}")


def _text(problem: BaseException) -> str:
    return shown(str(problem) or type(problem).__name__)
