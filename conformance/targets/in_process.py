"""Runs an adapter without a child process. Nothing confines it there, so it serves tests and trusted adapters only."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.targets import protocol


class InProcess:
    """A target that runs an adapter in this process."""

    def __init__(self, adapter: protocol.Adapter) -> None:
        self.name = adapter.name
        self._adapter = adapter

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[protocol.Session]:
        self._adapter.configure(edition)
        session = _Session(self._adapter)
        if role not in session.info.roles:
            raise protocol.NotPlayed(session.info, role)
        if isinstance(self._adapter, protocol.ImportsByRole):
            self._adapter.import_for(role)
        yield session


class Afresh:
    """Like ``InProcess``, with a new adapter for each session, so that no state survives a session."""

    def __init__(self, name: str, made: Callable[[], protocol.Adapter]) -> None:
        self.name = name
        self._made = made

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[protocol.Session]:
        with InProcess(self._made()).open(edition, role) as session:
            yield session


class _Session:
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()

    def __init__(self, adapter: protocol.Adapter) -> None:
        self._adapter = adapter
        self._cases = 0
        claims = adapter.claims()
        self.info = protocol.TargetInfo(adapter.name, adapter.version, "python", adapter.issues, claims.roles, claims)

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        held = [tuple(self._answer(k, step) for step in case.steps) for k, case in enumerate(cases, self._cases)]
        self._cases += len(cases)
        return held

    def _answer(self, case: int, step: Step) -> Observation:
        # Through JSON, as from a child: a later step must not change an earlier answer.
        answer = json.loads(json.dumps(self._adapter.answer({"case": case, **protocol.operation(step)})))
        return protocol.observed(answer, self.info.claims.limits)
