"""Checks the parts of a failure from a file that become paths or commands."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from kipcheck.conformance.core.ledger.record import brief

ID: Final = re.compile(r"[0-9a-f]{12}")
"""The id of a failure: it becomes the name of a file and a part of links."""


def check_failure(line: Mapping[str, Any], at: str) -> None:
    """Checks ``id`` and ``reproduce`` of a failure. ``at``: the file, and the line if it has several, for the error.

    Errors: ValueError that names the key and what is allowed.
    """
    id, again = line.get("id"), line.get("reproduce", "")
    if not isinstance(id, str) or not ID.fullmatch(id):
        raise ValueError(f'{at}: "id" is {brief(id)}: the id of a failure is 12 hex digits')
    if not isinstance(again, str) or not _is_ours(again):
        raise ValueError(f'{at}: "reproduce" is {brief(again)}: it must be a single command of kipcheck')


def _is_ours(command: str) -> bool:
    """Whether it is one command line of kipcheck, quoted as kipcheck quotes it; empty: it is not known yet."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return not command or (words[:1] == ["kipcheck"] and shlex.join(words) == command)
