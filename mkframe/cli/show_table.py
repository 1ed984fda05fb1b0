"""Prints tables: with colours on a terminal, as plain text elsewhere; very large ones as one line a cell."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mkframe.cli.output import console
from mkframe.cli.printed import printed
from mkframe.report.table import Cell, Table

if TYPE_CHECKING:
    from rich.text import Text

_WIDTH_OF_A_FILE = 160
_MOST_CELLS = 5000
"""Of a grid: beyond, nobody reads one, and drawing it takes much longer than reading the report."""


_WIDEST_NAME = 40


def show(table: Table) -> None:
    """Prints to standard output: one row per shape, one column per engine, the loss as plain as the win. Beyond _MOST_CELLS one line
    per cell."""
    if len(table.rows) * len(table.engines) > _MOST_CELLS:
        for line in _lines(table):
            print(line)
        return
    from rich.table import Table as RichTable
    from rich.text import Text

    out = console(max(_WIDTH_OF_A_FILE, 24 + 20 * len(table.engines)))
    grid = RichTable(show_lines=any(_tall(row.cells.values()) for row in table.rows))
    grid.add_column("shape set")
    grid.add_column("shape", no_wrap=True)
    for engine in table.engines:
        grid.add_column(Text(printed(engine)), justify="right")
    for row in table.rows:
        grid.add_row(Text(printed(row.set)), Text(printed(row.shape)), *(_text(row.cells.get(engine)) for engine in table.engines))
    out.print(printed(table.title), markup=False)
    out.print(grid)
    for note in table.notes:
        out.print(printed(note), markup=False)


def _lines(table: Table) -> Iterator[str]:
    yield printed(table.title)
    width = min(_WIDEST_NAME, max(len(printed(engine)) for engine in table.engines))
    for row in table.rows:
        where = f"{printed(row.set)}  {printed(row.shape)}"
        for engine, cell in row.cells.items():
            told = "failed" if cell.p50_us is None else f"{cell.p50_us:.2f}"
            words = (word for word in (cell.standing, cell.share, cell.target) if word)
            yield "  ".join((where, printed(engine).ljust(width), told.rjust(10), *words))
    for note in table.notes:
        yield printed(note)


def _tall(cells: Iterable[Cell]) -> bool:
    return any(cell.standing or cell.share or cell.target for cell in cells)


def _text(cell: Cell | None) -> "Text":
    from rich.text import Text

    if cell is None:
        return Text("-", style="dim")
    if cell.p50_us is None:
        return Text("failed", style="bold red")
    shown = Text(f"{cell.p50_us:.2f}", style="bold")
    for line in (cell.standing, cell.share, cell.target):
        if line:
            shown.append(f"\n{line}", style=_style(line))
    return shown


def _style(line: str) -> str:
    if line.endswith(("slower", "missed")):
        return "red"
    return "green" if line.endswith(("faster", "met")) else ""
