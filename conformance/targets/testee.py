"""A target that uses the testee protocol, started by a command."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.targets.session import Limits, TesteeSession
from kipcheck.conformance.targets.transport.pipe import Command, Pipe

__all__ = ["Limits", "Testee"]


class Testee:
    """Starts the command for each session, and again after each death."""

    __test__ = False  # pytest would collect the class by its name

    def __init__(
        self,
        name: str,
        command: Command,
        limits: Limits | None = None,
        names_itself: bool = False,
        omits: Collection[str] = (),
        sessions: Mapping[Role, type[TesteeSession]] | None = None,
    ) -> None:
        """``names_itself``: results have the name in its hello, not ``name``. ``omits``: families of messages that it
        may claim and that no check is to use. ``sessions``: the class of sessions in roles that need their own.
        """
        self.name = name
        self.command = command
        self._limits = limits or Limits()
        self._names_itself = names_itself
        self._omits = omits
        self._sessions = sessions or {}

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        session = self._sessions.get(role, TesteeSession)(
            self.name, self.begin, self._limits, edition, role, self._names_itself, self.command.renews
        )
        session.info = replace(session.info, claims=session.info.claims.without(self._omits))
        try:
            yield session
        finally:
            session.close()

    def begin(self) -> Pipe:
        """Starts the command. Errors: OSError."""
        return Pipe(self.command)
