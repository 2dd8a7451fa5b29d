"""Keeps the sessions of a target open for the next caller that opens it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets.protocol import Session, Target
from kipcheck.conformance.targets.session import renewed
from kipcheck.conformance.targets.session_wrapper import TargetWrapper


class KeptOpen(TargetWrapper):
    """A session that is closed stays open if its target can forget what it was sent: only then is the next one the
    same as a new one.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._kept: dict[tuple[str, Role], tuple[AbstractContextManager[Session], Session]] = {}

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        place = edition, role
        kept = self._kept.pop(place, None)
        if kept is None:
            manager = self._target.open(edition, role)
            kept = manager, manager.__enter__()
        manager, session = kept
        try:
            yield session
        finally:
            if place not in self._kept and renewed(session):
                self._kept[place] = kept
            else:
                manager.__exit__(None, None, None)

    def close(self) -> None:
        while self._kept:
            _, (manager, _) = self._kept.popitem()
            manager.__exit__(None, None, None)
