"""Options that choose rows of a list: of a family, for a role or target, with a word."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.nearest import hint

Row: TypeAlias = Mapping[str, Any]
Fields: TypeAlias = Mapping[str, Callable[[Row], Iterable[str]]]
"""Name of an option -> the values of a row, one of which it must fit."""
WORD: Final = "word"


class NothingFits(LookupError):
    """No row is left. The message names the option, and the nearest value."""


def add_filters(made: argparse.ArgumentParser, about: Mapping[str, str]) -> None:
    """``about``: name of an option, which takes a glob, -> its help."""
    for name, wanted in about.items():
        made.add_argument(f"--{name}", metavar="GLOB", help=f"only those {wanted}")
    made.add_argument(
        f"--{WORD}", action="append", default=[], metavar="TEXT",
        help="only those in which the text occurs, in any case; may be repeated: all of the texts",
    )  # fmt: skip


def filtered(rows: Iterable[Row], options: argparse.Namespace, fields: Fields) -> list[Row]:
    """The rows that fit all options. Errors: ``NothingFits``."""
    left = [*rows]
    for name, values_of in fields.items():
        pattern = getattr(options, name)
        if pattern is None:
            continue
        known = sorted({value for row in left for value in values_of(row)})
        left = [row for row in left if any(fnmatchcase(value, pattern) for value in values_of(row))]
        if not left:
            few = f"; there are {', '.join(known)}" if len(known) <= MOST_LISTED else ""
            raise NothingFits(f"--{name} {pattern!r} fits nothing{hint(pattern, known)}{few}")
    for text in getattr(options, WORD):
        left = [row for row in left if text.casefold() in json.dumps(row, ensure_ascii=False).casefold()]
        if not left:
            raise NothingFits(f"--{WORD} {text!r} occurs in nothing that is left: use a shorter text")
    return left


MOST_LISTED: Final = 30
"""An error lists as many values."""


def family(id: str) -> str:
    """``wire`` of wire/round-trip, ``268`` of 268-01."""
    return id.partition("/")[0] if "/" in id else id.rpartition("-")[0] or id
