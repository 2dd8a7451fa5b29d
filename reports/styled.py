"""Colours, tables and bars of a terminal, by rich. It is imported when one of them is made: 70 ms that a file, a pipe
and ``--help`` do not pay.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

BAR: Final = 16
"""Columns of a bar."""


@cache
def coloured(text: str, style: str) -> str:
    """``style``: as rich names it, ``red`` or ``dim``."""
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def beside_bar(width: int) -> int:
    """The columns for text in a line of this width."""
    return width if width < 4 * BAR else width - BAR - 1


def with_bar(line: str, share: float, width: int) -> str:
    """One line of at most so many columns: a bar that is full at 1, and a text that is cut. Narrow ones have no bar."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    if (room := beside_bar(width)) == width:
        return line[:width]
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=1, completed=min(max(share, 0), 1), width=BAR)
    row.add_row(bar, Text(line[:room], no_wrap=True))
    return _rendered(row, width).rstrip("\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int], width: int) -> str:
    """A table whose cells wrap where the terminal ends. ``right``: columns of numbers."""
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    numbers = {*right}
    for column, name in enumerate(head):
        found.add_column(name, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        found.add_row(*map(Text, row))
    return "\n".join(line.rstrip() for line in _rendered(found, width).splitlines()) + "\n"


def _rendered(what: Any, width: int) -> str:
    console = _console(width)
    console.print(what, end="")
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _console(width: int) -> "Console":
    from rich.console import Console

    return Console(file=StringIO(), force_terminal=True, color_system="standard", width=width, highlight=False)
