"""Sessions and targets between a caller and others of their kind: they change what is held, and nothing else."""

from collections.abc import Sequence
from typing import Any

from kipcheck.conformance.targets.protocol import Session, Target, TargetInfo


class Passing:
    """Tells of itself what ``session`` tells. Whoever inherits from it brings ``hold``."""

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


class PassingTarget:
    """Called as ``target`` is. Whoever inherits from it brings ``open``."""

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)  # how its program is started: for whoever talks to that himself
