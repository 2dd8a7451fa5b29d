"""Serves one of kipcheck's testees on stdin and stdout, or on a TCP port."""

import os
import socket
import sys
from typing import NoReturn, cast

from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.targets.target_entries import Entry, target_entries as entries
from kipcheck.conformance.targets.testee import Testee
from kipcheck.conformance.targets.transport import child, process_tree
from kipcheck.conformance.targets.transport.child import InlineExecutor


def serve_stdio(name: str) -> int:
    """Serves on stdin and stdout, until bye. Errors: LookupError; ``Unavailable``."""
    if _is_python(name):
        registry.adapter(name)  # reports an unknown name before the protocol starts
        return child.run(name)
    _exec_command(_testee(name))


def listen(name: str, port: int) -> int:
    """Serves one connection after another, for ever. Errors: LookupError; ``Unavailable``; OSError for a used port."""
    player = registry.adapter(name) if _is_python(name) else _testee(name)
    with socket.create_server(("127.0.0.1", port)) as server:
        print(f"{name} is tcp:127.0.0.1:{server.getsockname()[1]}; stop it with ^C", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                _answer(name, player, connection)


def _answer(name: str, player: Adapter | Testee, connection: socket.socket) -> None:
    if isinstance(player, Testee):
        command, both = player.command, connection.fileno()
        process_tree.run(command.argv, env=command.env, cwd=command.cwd, stdin=both, stdout=both, stderr=None)
        return
    try:
        with connection.makefile("rb") as reader, connection.makefile("wb") as writer:
            child.serve(player, InlineExecutor(player), reader, writer, registry.omitted(name))
    except ConnectionError as gone:
        print(f"kipcheck: {gone}", file=sys.stderr)


def _is_python(name: str) -> bool:
    return name.startswith(registry.MUTANT_PREFIX) or (name in entries() and entries()[name].kind == Entry().kind)


def _testee(name: str) -> Testee:
    made = registry.target(name)
    if hasattr(made, "command"):
        return cast(Testee, made)
    raise LookupError(f"{name} has no command of its own to serve; use one of {', '.join(sorted(entries()))}")


def _exec_command(made: Testee) -> NoReturn:
    command = made.command
    if command.cwd is not None:
        os.chdir(command.cwd)
    os.execvpe(command.argv[0], command.argv, command.env or os.environ)
