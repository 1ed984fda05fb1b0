"""Words of others (plugins, files) for people: nothing of theirs may steer a terminal, start a line or be taken for markup."""

from collections.abc import Iterable
from difflib import get_close_matches


def printable(text: str) -> str:
    """`text` with control characters, line ends and lone surrogates escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode() for character in text
    )


def as_unicode(text: str) -> str:
    """`text` for a document: lone surrogates, by which Python keeps the bytes of file names that are not UTF-8, as `\\udcff`."""
    return text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """`text` with every run of white space as one space, and the rest printable."""
    return printable(" ".join(text.split()))


def told(error: BaseException, *, kind: bool = True) -> str:
    """An exception as one line, whatever its __str__ does; with its type in front unless `kind` is False."""
    name = type(error).__name__
    try:
        message = one_line(str(error))
    except Exception:
        message = "its message cannot be read"
    if not kind:
        return message or name
    return f"{name}: {message}" if message else name


def choices(wanted: str, existing: Iterable[str]) -> str:
    """`there are: a, b, c`, with the closest match to `wanted` in front."""
    names = list(existing)
    if not names:
        return "there is none"
    close = get_close_matches(wanted, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}there are: {', '.join(names)}"
