"""One of our own testees, for whoever wants to talk to it: a runner that connects, or a person."""

import os
import socket
import sys
from typing import NoReturn, cast

from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.targets.target_entries import Entry, roll as entries
from kipcheck.conformance.targets.testee import Testee
from kipcheck.conformance.targets.transport import child, process_tree
from kipcheck.conformance.targets.transport.child import Here


def speak(name: str) -> int:
    """On stdin and stdout, until bye. Errors: LookupError; ``Unavailable``."""
    if _is_python(name):
        registry.adapter(name)  # so that a name that nobody has is told here
        return child.run(name)
    _become(_testee(name))


def listen(name: str, port: int) -> int:
    """One connection after another, for ever. Errors: LookupError; ``Unavailable``; OSError where the port is taken."""
    player = registry.adapter(name) if _is_python(name) else _testee(name)
    with socket.create_server(("127.0.0.1", port)) as server:
        print(f"{name} is tcp:127.0.0.1:{server.getsockname()[1]}; end it with ^C", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                _answer(player, connection)


def _answer(player: Adapter | Testee, connection: socket.socket) -> None:
    if isinstance(player, Testee):
        command, both = player.command, connection.fileno()
        process_tree.run(command.argv, env=command.env, cwd=command.cwd, stdin=both, stdout=both, stderr=None)
        return
    try:
        with connection.makefile("rb") as heard, connection.makefile("wb") as said:
            child.serve(player, Here(player), heard, said)
    except ConnectionError as gone:
        print(f"kipcheck: {gone}", file=sys.stderr)


def _is_python(name: str) -> bool:
    return name.startswith(registry.MINIATURE) or (name in entries() and entries()[name].kind == Entry().kind)


def _testee(name: str) -> Testee:
    made = registry.target(name)
    if hasattr(made, "command"):
        return cast(Testee, made)
    raise LookupError(f"{name} is not started by a command of its own; there are {', '.join(sorted(entries()))}")


def _become(made: Testee) -> NoReturn:
    command = made.command
    if command.cwd is not None:
        os.chdir(command.cwd)
    os.execvpe(command.argv[0], command.argv, command.env or os.environ)
