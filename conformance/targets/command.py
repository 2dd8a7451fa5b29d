"""``cmd:COMMAND LINE``: a testee of anybody's, started as it would be from a shell, but without one."""

import shlex
from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.transport.pipe import Command


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """With kipcheck's own working directory and environment. Errors: LookupError where it is no command line."""
    try:
        argv = tuple(shlex.split(rest))
    except ValueError as wrong:
        raise LookupError(f"{name!r} is no command line: {wrong}") from None
    if not argv:
        raise LookupError(f"{name!r} names no command: cmd:node testee.mjs would")
    return Testee(name, Command(argv), limits)


def rows() -> Iterator[dict[str, Any]]:
    """None: there are as many as command lines."""
    return iter(())
