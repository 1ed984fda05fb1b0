"""What other people's files hold, on its way to standard output."""

import sys

from mkframe.text import printable


def printed(text: str) -> str:
    """`text` with control characters, and what the encoding of standard output does not have, escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)
