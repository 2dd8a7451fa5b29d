"""Wrappers of sessions and targets, for subclasses that change what is run and pass everything else on."""

from collections.abc import Sequence
from typing import Any

from kipcheck.conformance.targets.protocol import Session, Target, TargetInfo


class SessionWrapper:
    """Passes on the properties of ``session``. Subclasses define how cases run."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def info(self) -> TargetInfo:
        return self._session.info

    @property
    def troubles(self) -> Sequence[str]:
        return self._session.troubles

    @property
    def breaches(self) -> Sequence[str]:
        return self._session.breaches


class TargetWrapper:
    """Passes on the attributes of ``target``. Subclasses define ``open``."""

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)  # such as its command, for callers that start the program themselves
