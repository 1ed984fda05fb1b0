"""Files of a payload folder, by names that a report gives: nothing outside the folder, no links, nothing without end, no pickles."""

import ast
import io
import math
import os
import re
import stat
import struct
import warnings
import zipfile
import zlib
from dataclasses import dataclass

from mkframe.canonical import sha256
from mkframe.validate.finding import shown
from mkframe.validate.reader import SIZE_LIMIT, read_stream

_MAX_MEMBERS = 1000
_MAX_HEADER = 10_000
_MAX_DIMENSIONS = 32
_PLAIN_DTYPE = re.compile(r"[<>|=]?[biufc][0-9]{1,2}")
_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)
_BROKEN_HEADER = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, struct.error)


class PayloadError(Exception):
    """Why a file or an array cannot be had, in words. `absent`: there is no such file."""

    def __init__(self, why: str, *, absent: bool = False) -> None:
        super().__init__(why)
        self.absent = absent


@dataclass(frozen=True, kw_only=True, slots=True)
class Array:
    """One array of a payload file. `sha256` is of its bytes in C order, little-endian."""

    shape: tuple[int, ...]
    dtype: str
    sha256: str


def read_below(folder: str | os.PathLike[str], name: str) -> bytes:
    """The content of the regular file `name` (components separated by /) in `folder`, at most SIZE_LIMIT bytes.

    Raises PayloadError, also for names that lead out of the folder and where a link is on the way.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise PayloadError(f"{shown(name)} is not a plain name within the payload folder")
    held = -1
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        for index, part in enumerate(parts):
            # A pipe that nobody writes to must not make us wait.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_DIRECTORY if index < len(parts) - 1 else 0)
            inner = os.open(part, flags, dir_fd=held)
            os.close(held)
            held = inner
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise PayloadError(f"{shown(name)} is not a regular file")
        with os.fdopen(held, "rb", buffering=0, closefd=False) as file:
            data = read_stream(file, SIZE_LIMIT)
    except FileNotFoundError:
        raise PayloadError(f"{shown(name)} is not in the payload folder", absent=True) from None
    except OSError as problem:
        raise PayloadError(f"{shown(name)} cannot be opened without following a link: {problem.strerror}") from problem
    except ValueError as problem:
        raise PayloadError(f"{shown(name)} cannot be the name of a file") from problem
    finally:
        if held >= 0:
            os.close(held)
    if not isinstance(data, bytes):
        raise PayloadError(f"{shown(name)}: {data.message}")
    return data


def arrays(data: bytes) -> dict[str, Array]:
    """The arrays of an .npz file, at most SIZE_LIMIT bytes when unpacked. Raises PayloadError for anything else."""
    left = SIZE_LIMIT
    found: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS:
                raise PayloadError(f"the file holds {len(members)} members, more than {_MAX_MEMBERS}")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name in found:
                    raise PayloadError(f"the file holds {shown(name)} twice")
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise PayloadError(f"{shown(name)} is packed in a way that numpy does not use")
                with archive.open(member) as file:
                    content = file.read(left + 1)  # what the directory says of its size may be a lie
                left -= len(content)
                if left < 0:
                    raise PayloadError(f"the file is larger than {SIZE_LIMIT} bytes when it is unpacked")
                found[name] = _array(name, content)
    except _BROKEN_ZIP as problem:
        raise PayloadError(f"the file is no .npz that can be read ({type(problem).__name__})") from problem
    return found


def _array(name: str, content: bytes) -> Array:
    import numpy as np

    try:
        descr, fortran, shape, raw = _npy(content)
        dtype = np.dtype(descr)
    except _BROKEN_HEADER as problem:
        raise PayloadError(f"{shown(name)} is no .npy file of plain numbers ({type(problem).__name__})") from problem
    if math.prod(shape) * dtype.itemsize != len(raw):
        raise PayloadError(f"{shown(name)} holds {len(raw)} bytes, which are not those of its shape")
    values = np.frombuffer(raw, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    little = np.ascontiguousarray(values).astype(dtype.newbyteorder("<"), copy=False)
    return Array(shape=shape, dtype=dtype.name, sha256=sha256(little.tobytes()))


def _npy(content: bytes) -> tuple[str, bool, tuple[int, ...], memoryview]:
    """Dtype, order, shape and data of an .npy file (numpy.lib.format, versions 1.0 to 3.0). Raises one of _BROKEN_HEADER.

    numpy's own reader hands broken headers to Python's tokenizer, which raises whatever it likes.
    """
    if content[:6] != b"\x93NUMPY" or content[6:8] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise ValueError("no .npy file")
    start, size = (10, "<H") if content[6] == 1 else (12, "<I")
    (length,) = struct.unpack(size, content[8:start])
    if length > _MAX_HEADER:
        raise ValueError("a header without end")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        header = ast.literal_eval(content[start : start + length].decode("latin-1" if content[6] < 3 else "utf-8").strip())
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("no header of an .npy file")
    descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if not isinstance(descr, str) or not _PLAIN_DTYPE.fullmatch(descr):
        raise ValueError("numbers alone are read: no objects, no structures, no texts")
    if not isinstance(fortran, bool) or not isinstance(shape, tuple):
        raise ValueError("no header of an .npy file")
    if len(shape) > _MAX_DIMENSIONS or any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("no shape")
    return descr, fortran, shape, memoryview(content)[start + length :]
