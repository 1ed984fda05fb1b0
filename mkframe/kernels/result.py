"""A compiled kernel, and the bytes that it is kept as."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mkframe import canonical
from mkframe.kernels.cubin import Parameter
from mkframe.kernels.ptx import count

FORMAT = 1
_MAGIC = b"mkframe-kernel"
_MOST_PTX_BYTES = 2**28
_CLOCK_PLACES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """A kernel for one architecture, and what is known of it.

    entry: its name in the cubin. registers: of a thread; frame_bytes: local memory of a thread, spilled registers among it.
    parameters: in order, where they lie among the arguments.
    instructions: full PTX instruction -> how often it stands in the text. compile_s: seconds to trace and compile it, by whoever did;
    cached: it came from the disk cache.
    """

    entry: str
    arch: str
    cubin: bytes
    ptx: str
    registers: int
    frame_bytes: int
    parameters: tuple[Parameter, ...]
    instructions: Mapping[str, int]
    compile_s: float
    cached: bool = False

    @property
    def ptx_lines(self) -> int:
        return len(self.ptx.splitlines())

    @property
    def ptx_sha256(self) -> str:
        return canonical.sha256(self.ptx.encode())

    @property
    def cubin_sha256(self) -> str:
        return canonical.sha256(self.cubin)

    def count(self, prefix: str) -> int:
        """How many PTX instructions begin with `prefix`, in whole parts ("mma.sync")."""
        return count(self.instructions, prefix)

    def lacks(self, expected: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `expected` (beginnings of PTX instructions) that are not there."""
        return tuple(prefix for prefix in expected if not self.count(prefix))


class Damaged(Exception):
    """An entry that is not what was written: one clause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A compiled kernel as the cache keeps it: under `key`, with the module and the name that it had."""

    key: str
    module: str
    name: str
    compiled: Compiled


def encode(entry: Entry) -> bytes:
    """A line with the hash of all that follows, a line of JSON, the cubin, and the PTX (zlib)."""
    compiled = entry.compiled
    ptx = zlib.compress(compiled.ptx.encode())
    head = {
        "key": entry.key,
        "module": entry.module,
        "name": entry.name,
        "entry": compiled.entry,
        "arch": compiled.arch,
        "registers": compiled.registers,
        "frame_bytes": compiled.frame_bytes,
        "parameters": [[parameter.offset, parameter.size] for parameter in compiled.parameters],
        "instructions": dict(compiled.instructions),
        "compile_s": round(compiled.compile_s, _CLOCK_PLACES),
        "cubin_bytes": len(compiled.cubin),
        "ptx_bytes": len(ptx),
    }
    body = canonical.line(head).encode() + compiled.cubin + ptx
    return b"%s %d %s\n" % (_MAGIC, FORMAT, canonical.sha256(body).encode()) + body


def decode(data: bytes) -> Entry:
    """What `encode` wrote. Raises Damaged for anything else, whatever it is."""
    first, _, body = data.partition(b"\n")
    if first != b"%s %d %s" % (_MAGIC, FORMAT, canonical.sha256(body).encode()):
        raise Damaged("its content does not match its hash")
    line, _, rest = body.partition(b"\n")
    try:
        return _entry(json.loads(line), rest)
    except (ValueError, KeyError, TypeError, zlib.error) as error:  # the hash holds: written by another mkframe
        raise Damaged(f"it was written in another form ({type(error).__name__})") from None


def _entry(head: Any, rest: bytes) -> Entry:
    cubin, packed = rest[: head["cubin_bytes"]], rest[head["cubin_bytes"] :]
    if len(packed) != head["ptx_bytes"]:
        raise ValueError("its parts do not add up")
    unpacker = zlib.decompressobj()
    ptx = unpacker.decompress(packed, _MOST_PTX_BYTES)
    if not unpacker.eof:
        raise ValueError("its PTX has no end")
    compiled = Compiled(
        entry=head["entry"],
        arch=head["arch"],
        cubin=cubin,
        ptx=ptx.decode(),
        registers=head["registers"],
        frame_bytes=head["frame_bytes"],
        parameters=tuple(Parameter(offset=offset, size=size) for offset, size in head["parameters"]),
        instructions=head["instructions"],
        compile_s=head["compile_s"],
        cached=True,
    )
    return Entry(key=head["key"], module=head["module"], name=head["name"], compiled=compiled)
