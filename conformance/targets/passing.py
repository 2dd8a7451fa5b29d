"""A session between a caller and another session: what it changes is what is held, and nothing else."""

from collections.abc import Sequence

from conformance.targets.protocol import Session, TargetInfo


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
