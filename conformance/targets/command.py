"""``cmd:COMMAND LINE``: a testee that the user starts by a command line; no shell runs it."""

import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.transport.pipe import Command

PREFIX = "cmd:"
LIVE = "client:"
BROKER: Final = "broker:"
"""Before the address of a broker that runs already."""
PATIENCE: Final = re.compile(r"\?patience=([1-9][0-9]{0,6})\Z")
"""The end of the name of a live client whose user states its longest back-off, in seconds."""


def is_command(name: str) -> bool:
    """Whether the target is a command line: that of a testee, or of a live client. Such a target, and a live client
    with a back-off, has another name than what opens it."""
    return name.startswith(PREFIX) or (name.startswith(LIVE) and ("{" in name or bool(PATIENCE.search(name))))


def may_be_named(name: str) -> bool:
    """Whether ``--name`` may name the target in results: what opens it is a command line or the address of a broker,
    which another user does not have."""
    return is_command(name) or name.startswith(BROKER)


def with_patience(name: str, seconds: float | None) -> str:
    """A live client with the longest back-off of ``--patience`` in its name, so that replays have it: ``client:X`` is
    ``client:X?patience=5``. None, and another target: the name as it is."""
    if seconds is None or not name.startswith(LIVE):
        return name
    return f"{PATIENCE.sub('', name)}?patience={seconds:.0f}"


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Uses the current working directory and environment. Its results have the name that the testee gives in hello.

    Errors: LookupError for a bad command line.
    """
    try:
        argv = tuple(shlex.split(rest))
    except ValueError as wrong:
        raise LookupError(f"invalid command line {name!r}: {wrong}") from None
    if not argv:
        raise LookupError(f"{name!r} names no command: use cmd:COMMAND, such as cmd:node testee.mjs")
    return Testee(name, Command(argv), limits, names_itself=True)


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any command line is a target."""
    return iter(())
