"""Whether an archive is one from its first byte to its last, as Python writes them: what no reader unpacks is nothing that was measured."""

import zipfile

_LOCAL, _END, _END_64 = b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06"
_LOCAL_SIZE, _ENTRY_SIZE, _END_SIZE, _END_64_SIZE = 30, 46, 22, 76
_ZIP64 = 20
"""Bytes of the one extra field that numpy writes into local headers: both sizes in 64 bits."""


def form_fault(data: bytes, archive: zipfile.ZipFile) -> str | None:
    """Why `data` holds anything beside the members of `archive`, its directory and its end record; None where it does not.

    Members follow each other without a gap from the first byte on, then the directory, then the end record without a comment; a local
    header is at most as long as numpy's.
    """
    entries = archive.infolist()
    if archive.comment or any(entry.comment or entry.extra for entry in entries):
        return "it holds comments or extra fields, which numpy does not write"
    at = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        header = data[at : at + _LOCAL_SIZE]
        name, extra = (int.from_bytes(header[index : index + 2], "little") for index in (26, 28))
        if entry.header_offset != at or not header.startswith(_LOCAL) or extra not in (0, _ZIP64):
            return f"byte {at} begins no array of its directory"
        at += _LOCAL_SIZE + name + extra + entry.compress_size
    if at != archive.start_dir:
        return f"byte {at} is not the begin of its directory"
    at += sum(_ENTRY_SIZE + len(entry.orig_filename.encode()) for entry in entries)
    end = data[at:]
    plain = end.startswith(_END) and len(end) == _END_SIZE
    if not plain and not (end.startswith(_END_64) and len(end) == _END_64_SIZE + _END_SIZE):
        return f"byte {at} is not the begin of an end record that is the end of the file"
    return None
