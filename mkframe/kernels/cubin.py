"""Registers, stack and parameters out of a cubin: the ELF file that the driver loads. No CUDA tool is needed.

The sections `.nv.info` (per function) and `.nv.info.KERNEL` hold attributes: a byte of format, a byte of kind, then two bytes of
value, or of length where the format is 4. NVIDIA documents none of it; the kinds are those that cuobjdump names EIATTR_...
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mkframe.errors import KernelError

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_CUDA_MACHINE = 190
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2
_NO_CONTENT = 8
_SIZED = 4

_MAX_THREADS, _REQUIRED_THREADS, _FRAME_SIZE, _PARAMETER, _REGISTERS = 0x05, 0x10, 0x11, 0x17, 0x2F


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """Where a kernel parameter lies among the arguments, bytes."""

    offset: int
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CubinKernel:
    """One kernel of a cubin. `frame_bytes`: local memory of a thread, where spilled registers lie too, of the kernel and of the
    functions beside it that it may call. `block`: the size that it was compiled for, None where that is left open."""

    name: str
    registers: int
    frame_bytes: int
    block: tuple[int, int, int] | None
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    link: int
    data: bytes


def kernels_of(cubin: bytes) -> tuple[CubinKernel, ...]:
    """The kernels of a cubin, by name. Raises KernelError where it is no cubin, or a damaged one."""
    try:
        return tuple(_read(cubin))
    except (struct.error, ValueError, IndexError, OverflowError, _Malformed) as error:
        raise KernelError(f"this is no whole cubin: {error}; compile the kernel again") from None


class _Malformed(Exception):
    pass


def _read(cubin: bytes) -> Iterator[CubinKernel]:
    sections = _sections(cubin)
    symbols = _symbols(sections)
    registers: dict[str, int] = {}
    frames: dict[str, int] = {}
    by_name = {section.name: section for section in sections}
    for kind, value in _attributes(by_name[".nv.info"].data) if ".nv.info" in by_name else ():
        if kind in (_FRAME_SIZE, _REGISTERS):
            symbol, number = struct.unpack("<II", value)
            if symbol >= len(symbols):
                raise _Malformed(f"an attribute names symbol {symbol} of {len(symbols)}")
            (registers if kind == _REGISTERS else frames)[symbols[symbol]] = number
    names = sorted(section.name.removeprefix(".nv.info.") for section in sections if section.name.startswith(".nv.info."))
    if not names:
        raise _Malformed("it holds no kernel")
    beside = max((size for name, size in frames.items() if name not in names), default=0)
    for name in names:
        if name not in registers:
            raise _Malformed(f"nothing says how many registers {name} takes")
        block, parameters = _of_kernel(by_name[f".nv.info.{name}"].data)
        yield CubinKernel(
            name=name,
            registers=registers[name],
            frame_bytes=frames.get(name, 0) + beside,
            block=block,
            parameters=parameters,
        )


def _of_kernel(data: bytes) -> tuple[tuple[int, int, int] | None, tuple[Parameter, ...]]:
    block: tuple[int, int, int] | None = None
    parameters: dict[int, Parameter] = {}
    for kind, value in _attributes(data):
        if kind == _PARAMETER:
            _, ordinal, offset, packed = struct.unpack("<IHHI", value)
            parameters[ordinal] = Parameter(offset=offset, size=packed >> 18)
        elif kind == _REQUIRED_THREADS or (kind == _MAX_THREADS and block is None):
            x, y, z = struct.unpack("<III", value)
            block = x, y, z
    if sorted(parameters) != list(range(len(parameters))):
        raise _Malformed(f"of its {len(parameters)} parameters some are missing")
    return block, tuple(parameters[ordinal] for ordinal in range(len(parameters)))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        form, kind, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            if at + value > len(data):
                raise _Malformed("an attribute goes beyond its section")
            yield kind, data[at : at + value]
            at += value


def _sections(cubin: bytes) -> list[_Section]:
    if not cubin.startswith(_MAGIC):
        raise _Malformed("it does not begin as a 64-bit ELF file")
    (machine,) = struct.unpack_from("<H", cubin, 18)
    if machine != _CUDA_MACHINE:
        raise _Malformed(f"its machine is {machine}, not CUDA's ({_CUDA_MACHINE})")
    (start,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    if size != _SECTION.size or names >= count:
        raise _Malformed("its table of sections cannot be read")
    rows = [_SECTION.unpack_from(cubin, start + index * size) for index in range(count)]
    contents = [b"" if row[1] == _NO_CONTENT else _slice(cubin, row[4], row[5]) for row in rows]
    return [
        _Section(name=_text(contents[names], row[0]), kind=row[1], link=row[6], data=content)
        for row, content in zip(rows, contents, strict=True)
    ]


def _symbols(sections: list[_Section]) -> list[str]:
    found: list[str] = []
    for section in sections:
        if section.kind == _SYMBOL_TABLE:
            texts = sections[section.link].data
            found += [_text(texts, row[0]) for row in _SYMBOL.iter_unpack(section.data)]
    return found


def _slice(cubin: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(cubin):
        raise _Malformed("a section goes beyond the end of the file")
    return cubin[offset : offset + size]


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if end < 0:
        raise _Malformed("a name has no end")
    return table[offset:end].decode()
