"""Conversations in which the coordinator reads its log, which may have been compacted before."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Final

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Step, steps_from
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.conformance.protocols.declare.draw_compaction import drawn_compaction
from kipcheck.conformance.protocols.reconciled.log_ops import NOBODY, PARTITIONS, Commit, Fetch, Reload

ROUNDS: Final = 3
"""A group at rest answers the last two of so many rounds alike."""
COMPACTIONS: Final = (
    Reload(), Reload(100), Reload(100, tombstones="gone"), Reload(50), Reload(50, tombstones="gone"),
    *(Reload(upto, since) for upto in (100, 75, 50) for since in (75, 50, 25) if since < upto),
)  # fmt: skip
"""For any conversation: no part of the log, its beginning, and a part that is compacted while the log is read."""


def latest(steps: Iterable[Step], *fields: str) -> dict[str, list[Any]]:
    """Client -> what its heartbeats stated last in each of these fields; None: nothing."""
    found: dict[str, list[Any]] = {}
    for each in steps:
        if "says" in each.body:
            client, known = each.body["client"], found.get(each.body["client"], [None] * len(fields))
            found[client] = [each.body.get(name, before) or before for name, before in zip(fields, known, strict=True)]
    return found


class Reloaded:
    """Adds to the conversations of a machine that the log is read, and that clients ask for everything after that."""

    def __init__(
        self,
        operations: Operations[Any, Any],
        rounds: Callable[[Sequence[Step]], Sequence[Any]],
        commits: Sequence[str] = (),
        known: Mapping[str, str] = MappingProxyType({}),
        pause: Any = None,
    ) -> None:
        """``rounds``: the events by which everyone asks for what there is, after these steps. ``commits``: the clients
        that commit. ``known``: the texts of further conversations, by name. ``pause``: the event after which nothing is
        due any more that everyone has asked for: where the log is read in real time, time passes with it."""
        self._operations = operations
        self._rounds = rounds
        self._commits = commits
        self._known = known
        self._pause = pause

    def __call__(self, subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
        steps: list[Step] = []
        for each in steps_from(value):
            if random.random() < 0.1:
                steps += self._steps(Reload(**drawn_compaction(random)))
            if self._commits and random.random() < 0.2:
                steps += self._steps(self._commit(random))
            steps.append(each)
        yield Conversation(
            (*steps, *self._end(steps, [Reload(**drawn_compaction(random)) for _ in range(random.randint(1, 2))]))
        )

    def given(self, subject: Subject) -> Iterable[Conversation]:
        """Each known conversation with each compaction at its end."""
        for name, text in self._known.items():
            steps = self._operations.parse_shorthand(text)
            for number, reload in enumerate(COMPACTIONS):
                yield Conversation((*steps, *self._end(steps, [reload])), f"{name} {number}")

    def _commit(self, random: Random) -> Commit:
        client, epoch, metadata = (
            random.choice((NOBODY, *self._commits)),
            random.choice((-1, 3)),
            random.choice(("", "m")),
        )
        return Commit(random.randint(0, 99), random.choice(PARTITIONS), client, epoch, metadata)

    def _steps(self, *events: Any) -> Iterator[Step]:
        return map(self._operations.step_of, events)

    def _end(self, steps: Sequence[Step], reloads: Sequence[Reload]) -> Iterator[Step]:
        asked = [*self._rounds(steps), *([Fetch()] if self._commits else [])]
        if self._pause is not None:
            yield from self._steps(*asked, self._pause)
        yield from self._steps(*asked * ROUNDS)
        for each in reloads:
            yield from self._steps(each, *asked)
