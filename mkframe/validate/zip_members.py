"""Whether a member of an archive is as numpy writes it, beside what it unpacks to: nothing hides in its headers or behind its stream."""

import struct
import zipfile
import zlib

_LOCAL = struct.Struct("<4s5H3I2H")
_SIZES = struct.Struct("<2H2Q")
_ZIP64, _SIZES_BYTES, _ELSEWHERE = 1, 16, 0xFFFFFFFF
_DATE = (1980, 1, 1, 0, 0, 0)
_DOS_DATE, _DOS_TIME = 33, 0  # the same, as local headers have it
_MODE = 0o600 << 16


def header_fault(data: bytes, entry: zipfile.ZipInfo) -> str | None:
    """What numpy writes otherwise in the local header of a member or in the directory; None where nothing is. The header is there.

    Dates are those of a member without one, attributes those of a file of its owner's, and a local header repeats its directory; where
    the sizes are in its extra field, both are.
    """
    _, version, flags, method, time, date, crc, packed, size, name, extra = _LOCAL.unpack_from(data, entry.header_offset)
    if entry.date_time != _DATE or (date, time) != (_DOS_DATE, _DOS_TIME):
        return "has a date"
    if entry.external_attr != _MODE or entry.internal_attr or entry.volume:
        return "has attributes that numpy does not write"
    sizes = packed, size
    if extra:
        field, length, *rest = _SIZES.unpack_from(data, entry.header_offset + _LOCAL.size + name)
        if (field, length) != (_ZIP64, _SIZES_BYTES) or sizes != (_ELSEWHERE, _ELSEWHERE):
            return "has an extra field that numpy does not write"
        sizes = rest[1], rest[0]
    stated = version, flags, method, crc, *sizes
    directory = (entry.extract_version, entry.flag_bits, entry.compress_type, entry.CRC, entry.compress_size, entry.file_size)
    return None if stated == directory else "has another header than the directory of the archive says"


def stream_fault(data: bytes, entry: zipfile.ZipInfo) -> str | None:
    """Why the packed bytes of a member are not one stream from the first to the last; None where they are. Unpacks at most what the
    member states. Raises zlib.error."""
    *_, name, extra = _LOCAL.unpack_from(data, entry.header_offset)
    start = entry.header_offset + _LOCAL.size + name + extra
    if entry.compress_type == zipfile.ZIP_STORED:
        return None if entry.compress_size == entry.file_size else "is longer than it states"
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    stream.decompress(data[start : start + entry.compress_size], entry.file_size + 1)
    whole = stream.eof and not stream.unused_data and not stream.unconsumed_tail
    return None if whole else "has bytes behind the end of its packed stream"
