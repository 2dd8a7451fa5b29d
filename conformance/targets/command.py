"""``cmd:COMMAND LINE``: a testee that the user starts by a command line; no shell runs it."""

import shlex
from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.transport.pipe import Command

PREFIX = "cmd:"
LIVE = "client:"


def is_command(name: str) -> bool:
    """Whether the target is a command line: that of a testee, or of a live client."""
    return name.startswith(PREFIX) or (name.startswith(LIVE) and "{" in name)


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
