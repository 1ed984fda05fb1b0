"""`python -m mkframe cache`: what is kept in the user's cache folder, and clearing compiled kernels out of it."""

import json
import math
import time
from datetime import UTC, datetime
from typing import Any

from mkframe.cli.output import console
from mkframe.cli.parser import Parser
from mkframe.cli.printed import printed
from mkframe.errors import UsageError
from mkframe.kernels.cache import KernelCache, Listed, kernels_folder
from mkframe.probe.cards import cards_folder

_DAY_S = 86_400.0
_SHORT_KEY = 16
_COLUMNS = ("key", "kernel", "module", "arch", "bytes", "age")
_WIDTH_OF_A_FILE = 160


def main(argv: list[str]) -> int:
    """Exit code 0, 2 for wrong usage or a folder that cannot be read."""
    parser = Parser(
        prog="mkframe cache",
        description="Lists the compiled kernels that are kept on disk. `clear` removes them: they are compiled again when they are needed.",
        epilog="Device cards lie in the same folder and are left alone: `mkframe device probe` writes them.",
    )
    parser.add_argument("action", nargs="?", choices=("list", "clear"), default="list", help="list (default) or clear")
    parser.add_argument("--older-than", metavar="DAYS", help="with clear: only what was written at least so many days ago")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="a table for people, or one JSON document")
    options = parser.parse_args(argv)
    if options.older_than is not None and options.action != "clear":
        raise UsageError("--older-than belongs to clear; give mkframe cache clear --older-than DAYS")
    cache = KernelCache(kernels_folder())
    if options.action == "clear":
        _clear(cache, 0.0 if options.older_than is None else _days(options.older_than) * _DAY_S, options.format)
    else:
        _list(cache, options.format)
    return 0


def _days(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"--older-than takes days from 0 on, not {text!r}")
    return value


def _clear(cache: KernelCache, older_than_s: float, form: str) -> None:
    entries, freed = cache.clear(older_than_s)
    if form == "json":
        print(json.dumps({"format": "cache/1", "folder": str(cache.folder), "removed": entries, "freed_bytes": freed}, indent=2))
    else:
        print(f"{entries} kernels removed, {freed} bytes freed in {printed(str(cache.folder))}")


def _list(cache: KernelCache, form: str) -> None:
    now = time.time()
    rows = [_row(listed, now) for listed in cache.listed()]
    cards = cards_folder()
    there = sorted(path.name for path in cards.glob("*.json")) if cards.is_dir() else []
    if form == "json":
        document = {
            "format": "cache/1",
            "kernels": {"folder": str(cache.folder), "entries": rows},
            "device_cards": {"folder": str(cards), "files": there},
        }
        print(json.dumps(document, indent=2))
        return
    if rows:
        _table(rows)
    total = sum(row["bytes"] for row in rows)
    print(f"{len(rows)} kernels, {total} bytes in {printed(str(cache.folder))}")
    print(f"{len(there)} device cards in {printed(str(cards))}")


def _row(listed: Listed, now: float) -> dict[str, Any]:
    """A damaged entry has neither kernel nor module: it is compiled again when it is needed."""
    entry = listed.entry
    return {
        "key": listed.key,
        "kernel": None if entry is None else entry.name,
        "module": None if entry is None else entry.module,
        "arch": None if entry is None else entry.compiled.arch,
        "bytes": listed.bytes,
        "written": datetime.fromtimestamp(listed.written, UTC).isoformat(timespec="seconds"),
        "age_s": max(0, round(now - listed.written)),
    }


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in _COLUMNS:
        table.add_column(column)
    for row in rows:
        words = (
            row["key"][:_SHORT_KEY],
            row["kernel"] or "damaged",
            row["module"] or "-",
            row["arch"] or "-",
            str(row["bytes"]),
            _age(row["age_s"]),
        )
        table.add_row(*(Text(printed(word)) for word in words))
    console(_WIDTH_OF_A_FILE).print(table)


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
