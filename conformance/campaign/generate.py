"""Generates the batches of a shard, without end, from the shard's seed and the corpus of its round.

A batch has one check and one subject; the conversations with a machine in one batch share one swarm. Nothing here
depends on a clock, a hash seed or another process: same shard, same snapshot, same batches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, Final, Literal, Self, TypeAlias

from kipcheck.conformance.campaign.corpus.entries import Snapshot, value_of
from kipcheck.conformance.campaign.plan import SHARDS_A_ROUND, Shard
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.protocols.checks import CHECKS, FAMILIES, Check
from kipcheck.conformance.protocols.declare.check import Conversation, Value
from kipcheck.strategies.compiled import Draw, compiled
from kipcheck.strategies.mutate import mutate

Source: TypeAlias = Literal["given", "replay", "mutate", "draw", "uniform"]
"""The source of a batch: vectors; corpus entries, unchanged or mutated; the check's own draw; or uniform draws from
the declaration."""
Units: TypeAlias = Mapping[str, Sequence[Any]]
"""Check -> its subjects that the target claims, in a fixed order."""

SHARES: Final[Mapping[Source, int]] = {"draw": 60, "mutate": 28, "uniform": 12}
"""Shares of batches. Without a corpus, batches to be mutated are drawn."""
CONVERSATION_SHARES: Final[Mapping[Source, int]] = {"draw": 60, "mutate": 28, "uniform": 12}
"""The same where conversations with a machine are drawn."""
REPLAY_SHARE: Final = 0.25
"""In the first round: the largest share of a shard's cases that replay the corpus."""
LATER_REPLAY_SHARE: Final = 0.05
"""In later rounds, whose corpus was collected with these targets."""
CONVERSATIONS_A_BATCH: Final = 5
"""Conversations with a machine in one batch. With 5, planted defects are found in a fifth less time than with 20: a
swarm costs nothing here, and one without a necessary event is soon over."""
VALUES_A_BATCH: Final = (1, 4)
"""Values in one batch of any other check."""
FIRST_SHARE: Final = 0.1
"""The share of drawn values that are taken from a check's first values."""
HEAVY_SHARE: Final = 0.1
"""The share of its turns that a heavy check takes."""
GIVEN_CONVERSATIONS: Final = 16
"""Conversations in a batch of a check that draws none."""
RECENCY_EXPONENT: Final = 0.33
"""The exponent that makes newer corpus entries more likely to be mutated."""
CONTINUED_SHARE: Final = 0.5
"""The share of mutated conversations that keep the beginning of an entry and are then drawn."""
MUTATIONS: Final = (1, 1, 2, 4)
"""Numbers of mutations of an entry, one of which is chosen."""

VALUES: Final = 8_192
"""Values of the corpus that a process keeps for its next shards."""


@dataclass(frozen=True, slots=True)
class Batch:
    check: str
    subject: Any
    source: Source
    values: Iterable[Value] = ()
    """To be iterated once; values are drawn during the iteration."""
    given: Sequence[Conversation] = ()
    """For a check that draws nothing, instead of values."""


def batches(shard: Shard, units: Units, snapshot: Snapshot) -> Iterator[Batch]:
    """Without end. Errors: ValueError if there are no subjects."""
    claimed = {id: subjects for id, subjects in units.items() if subjects}
    if not claimed:
        raise ValueError("no check has a subject")
    yield from _Engine.of(shard, claimed, snapshot).batches()


DeclarationKey: TypeAlias = tuple[str, str, str, int | None]
"""A declaration with a subject: an entry kept by one check may be mutated for all checks with the same key."""


def _declaration_key(check: Check[Any], edition: str, name: str, version: int | None) -> DeclarationKey:
    declared = check.id if check.node is not None else str(FAMILIES.index(check.family))
    return declared, edition, name, version


@dataclass(frozen=True, slots=True)
class _Engine:
    shard: Shard
    units: Units
    kept: Mapping[DeclarationKey, Sequence[Kept]]
    """The entries of the corpus for these units, the newest last."""
    known: dict[str, Sequence[Any]] = field(default_factory=dict)
    draws: dict[DeclarationKey, Draw] = field(default_factory=dict)

    @classmethod
    def of(cls, shard: Shard, units: Units, snapshot: Snapshot) -> Self:
        here = {_declaration_key(CHECKS[id], *_of(each)) for id, subjects in units.items() for each in subjects}
        kept: dict[DeclarationKey, list[Kept]] = {}
        for entry in snapshot.entries:
            key = _declaration_key(CHECKS[entry.check], entry.edition, entry.subject, entry.version)
            if key in here:
                kept.setdefault(key, []).append(entry)
        return cls(shard, units, kept)

    def batches(self) -> Iterator[Batch]:
        yield from self.replayed(self._random("replay"))
        for number, check in enumerate(self._turns(self._random("turns"))):
            yield self._batch(check, self._random(str(number)))

    def _random(self, about: str) -> Random:
        """A generator for each batch, so that no batch depends on the number of draws before it."""
        return Random(f"{self.shard.own_seed}/{about}")

    def _turns(self, random: Random) -> Iterator[Check[Any]]:
        while True:
            for id in random.sample([*self.units], len(self.units)):
                if not CHECKS[id].heavy or random.random() < HEAVY_SHARE:
                    yield CHECKS[id]

    def _batch(self, check: Check[Any], random: Random) -> Batch:
        subject = random.choice(self.units[check.id])
        if not check.values:
            given = list(check.given(subject))
            return Batch(check.id, subject, "given", given=random.sample(given, min(GIVEN_CONVERSATIONS, len(given))))
        shares = SHARES if check.family.batch is None else CONVERSATION_SHARES
        (source,) = random.choices([*shares], [*shares.values()])
        number = CONVERSATIONS_A_BATCH if check.family.batch is not None else random.randint(*VALUES_A_BATCH)
        values: Iterable[Value]
        match source:
            case "uniform":
                values = self._uniform(check, subject, number, random)
            case "mutate" if known := self._known(check):
                subject = random.choice(known)
                values = self._changed(check, subject, number, random)
            case _:
                source, values = "draw", self._drawn(check, subject, number, random)
        return Batch(check.id, subject, source, values)

    def _drawn(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        """Values drawn as in a run, with some of the check's first values among them."""
        draw, first = check.drawing(subject, random), check.first
        for _ in range(number):
            known = first and random.random() < FIRST_SHARE
            yield random.choice(first)(subject) if known else draw(random, None)

    def _uniform(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        key = _declaration_key(check, *_of(subject))
        if key not in self.draws:  # a lookup among all compiled draws takes longer than a draw
            self.draws[key] = compiled(check.declaration(subject))
        for _ in range(number):
            yield check.family.trimmed(self.draws[key](random))

    def replayed(self, random: Random) -> Iterator[Batch]:
        """This shard's part of the corpus, within its budget."""
        budget = self.shard.cases * (REPLAY_SHARE if self.shard.round == 0 else LATER_REPLAY_SHARE)
        entries = [each for kept in self.kept.values() for each in kept if each.check in self.units]
        entries = entries[self.shard.shard % SHARDS_A_ROUND :: SHARDS_A_ROUND]
        for entry in random.sample(entries, len(entries)):
            check = CHECKS[entry.check]
            budget -= 1 if check.family.batch is not None else entry.steps
            if budget < 0:
                return
            subject = check.family.subject(entry.edition, entry.subject, entry.version)
            if value := _value_of(entry):
                yield Batch(check.id, subject, "replay", value)

    def _known(self, check: Check[Any]) -> Sequence[Any]:
        """The subjects of which the corpus has a value."""
        if check.id not in self.known:
            kept = ((each, self.kept.get(_declaration_key(check, *_of(each)), ())) for each in self.units[check.id])
            self.known[check.id] = [each for each, entries in kept if any(map(_value_of, entries))]
        return self.known[check.id]

    def _changed(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        """Values mutated from those of the corpus."""
        node, kept = check.declaration(subject), self.kept[_declaration_key(check, *_of(subject))]
        draw = check.drawing(subject, random) if check.family.batch is not None and check.draw is None else None
        for _ in range(number):
            entry = kept[int(len(kept) * random.random() ** RECENCY_EXPONENT)]
            for value in _value_of(entry):
                if draw is not None and random.random() < CONTINUED_SHARE:
                    yield draw(random, value[: random.randint(1, len(value))])
                    continue
                for _ in range(random.choice(MUTATIONS)):
                    value = mutate(node, value, random)
                yield check.family.trimmed(value)


@lru_cache(VALUES)
def _value(check: str, place: tuple[str, str, int | None], text: str) -> Sequence[Value]:
    """The value of an entry; none if it does not belong to a current declaration."""
    declared = CHECKS[check]
    try:
        return (value_of(declared.declaration(declared.family.subject(*place)), text),)
    except ValueError:  # its declaration has changed, or it is one of a check's first values
        return ()


def _value_of(entry: Kept) -> Sequence[Value]:
    return _value(entry.check, (entry.edition, entry.subject, entry.version), entry.value)


def _of(subject: Any) -> tuple[str, str, int | None]:
    return subject.edition, subject.name, subject.version
