"""What is held next: an endless row of batches, drawn for one shard from its seed and the corpus it begins with.

A batch is about one check and one subject; conversations with a machine in one batch are drawn under one swarm.
Nothing here asks a clock, a hash or another process: same shard, same snapshot, same batches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal, Self, TypeAlias

from kipcheck.conformance.campaign.corpus.entries import Snapshot, value_of
from kipcheck.conformance.campaign.plan import SHARDS_A_ROUND, Engine, Shard
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.checks import CHECKS, FAMILIES, Check
from kipcheck.conformance.checks.declare import Conversation, Value
from kipcheck.strategies.compiled import Draw, compiled
from kipcheck.strategies.mutate import mutate

Source: TypeAlias = Literal["given", "replay", "mutate", "draw", "uniform", "hypothesis"]
"""Where a batch is from: vectors; the corpus, as it is and changed; as the check draws; anything that is declared, by
either reading of the declaration."""
Units: TypeAlias = Mapping[str, Sequence[Any]]
"""Check -> the subjects of it that the target claims, in an order that stays."""

SHARES: Final[Mapping[Engine, Mapping[Source, int]]] = {
    "mixed": {"draw": 55, "mutate": 25, "uniform": 10, "hypothesis": 10},
    "compiled": {"draw": 60, "mutate": 28, "uniform": 12},
    "hypothesis": {"hypothesis": 100},
}
"""Of batches. What would mutate where there is no corpus yet draws."""
REPLAYED: Final = 0.25
"""Of the cases of a shard of the first round at most so many are those of the corpus, as they are."""
REPLAYED_LATER: Final = 0.05
"""Of a later round, for whose corpus these targets or the like have shown what it has."""
TOGETHER: Final = 5
"""Conversations with a machine in one batch. Planted defects take a fifth less time to be found than with 20: a swarm
costs nothing here, and one without what a defect needs is soon over."""
FEW: Final = (1, 4)
"""Values of anything else in one batch."""
BY_HYPOTHESIS: Final = 8
"""The same of those that Hypothesis draws, which takes a while to begin."""
FIRST_SHARE: Final = 0.1
"""Of drawn values: one of those that a check begins with."""
HEAVY_SHARE: Final = 0.1
"""So often is it the turn of a heavy check when it is its turn."""
GIVEN: Final = 16
"""Conversations in a batch of a check that draws none."""
NEWER: Final = 0.33
"""The exponent by which newer entries of the corpus are changed more often than older ones."""
GOES_ON: Final = 0.5
"""Of changed conversations: those that begin like an entry and then go on as they are drawn."""
CHANGES: Final = (1, 1, 2, 4)
"""So many places of an entry are changed, one of these."""


@dataclass(frozen=True, slots=True)
class Batch:
    check: str
    subject: Any
    source: Source
    values: Iterable[Value] = ()
    """To be taken once, and drawn as they are taken."""
    given: Sequence[Conversation] = ()
    """Of a check that draws nothing, in the place of values."""


def batches(shard: Shard, units: Units, snapshot: Snapshot) -> Iterator[Batch]:
    """Without end. Errors: ValueError where there is nothing to hold."""
    wanted = {id: subjects for id, subjects in units.items() if subjects}
    if not wanted:
        raise ValueError("there is nothing to hold")
    yield from _Engine.of(shard, wanted, snapshot).batches()


Place: TypeAlias = tuple[str, str, str, int | None]
"""Whose values are of one declaration: whatever check kept one, all checks of the place may change it."""


def _place(check: Check[Any], edition: str, name: str, version: int | None) -> Place:
    declared = check.id if check.node is not None else str(FAMILIES.index(check.family))
    return declared, edition, name, version


@dataclass(frozen=True, slots=True)
class _Engine:
    shard: Shard
    units: Units
    kept: Mapping[Place, Sequence[Kept]]
    """The corpus, as far as it is of these units; the newest last."""
    values: dict[str, list[Value]] = field(default_factory=dict)
    """By the id of an entry: its value, or none that belongs to the declaration of today."""
    draws: dict[Place, Draw] = field(default_factory=dict)

    @classmethod
    def of(cls, shard: Shard, units: Units, snapshot: Snapshot) -> Self:
        here = {_place(CHECKS[id], *_of(each)) for id, subjects in units.items() for each in subjects}
        kept: dict[Place, list[Kept]] = {}
        for entry in snapshot.entries:
            place = _place(CHECKS[entry.check], entry.edition, entry.subject, entry.version)
            if place in here:
                kept.setdefault(place, []).append(entry)
        return cls(shard, units, kept)

    def batches(self) -> Iterator[Batch]:
        if self.shard.engine != "hypothesis":
            yield from self.replayed(self._luck("replay"))
        for number, check in enumerate(self._turns(self._luck("turns"))):
            yield self._batch(check, self._luck(str(number)))

    def _luck(self, about: str) -> Random:
        """No batch depends on how much luck it took to draw those before it."""
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
            return Batch(check.id, subject, "given", given=random.sample(given, min(GIVEN, len(given))))
        shares = SHARES[self.shard.engine]
        (source,) = random.choices([*shares], [*shares.values()])
        number = TOGETHER if check.family.batch is not None else random.randint(*FEW)
        values: Iterable[Value]
        match source:
            case "hypothesis":
                from kipcheck.conformance.campaign import by_hypothesis  # brings Hypothesis: only these batches need it

                values = by_hypothesis.values(check, subject, max(number, BY_HYPOTHESIS), random)
            case "uniform":
                values = self._uniform(check, subject, number, random)
            case "mutate" if known := [each for each in self.units[check.id] if self._known(check, each)]:
                subject = random.choice(known)
                values = self._changed(check, subject, number, random)
            case _:
                source, values = "draw", self._drawn(check, subject, number, random)
        return Batch(check.id, subject, source, values)

    def _drawn(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        """As a run draws them, but that those to begin with come now and then."""
        draw, first = check.drawing(subject, random), check.first
        for _ in range(number):
            known = first and random.random() < FIRST_SHARE
            yield random.choice(first)(subject) if known else draw(random, None)

    def _uniform(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        place = _place(check, *_of(subject))
        if place not in self.draws:  # to look it up among all that are compiled takes longer than to draw
            self.draws[place] = compiled(check.declaration(subject))
        for _ in range(number):
            yield check.family.trimmed(self.draws[place](random))

    def replayed(self, random: Random) -> Iterator[Batch]:
        """This shard's share of the corpus, and of that no more than its budget allows."""
        left = self.shard.cases * (REPLAYED if self.shard.round == 0 else REPLAYED_LATER)
        entries = [each for kept in self.kept.values() for each in kept if each.check in self.units]
        entries = entries[self.shard.shard % SHARDS_A_ROUND :: SHARDS_A_ROUND]
        for entry in random.sample(entries, len(entries)):
            check = CHECKS[entry.check]
            left -= 1 if check.family.batch is not None else entry.steps
            if left < 0:
                return
            subject = check.family.subject(entry.edition, entry.subject, entry.version)
            if value := self._value(entry):
                yield Batch(check.id, subject, "replay", value)

    def _known(self, check: Check[Any], subject: Any) -> bool:
        return any(map(self._value, self.kept.get(_place(check, *_of(subject)), ())))

    def _changed(self, check: Check[Any], subject: Any, number: int, random: Random) -> Iterator[Value]:
        """Values next to those of the corpus."""
        node, kept = check.declaration(subject), self.kept[_place(check, *_of(subject))]
        draw = check.drawing(subject, random) if check.family.batch is not None and check.draw is None else None
        for _ in range(number):
            entry = kept[int(len(kept) * random.random() ** NEWER)]
            for value in self._value(entry):
                if draw is not None and random.random() < GOES_ON:
                    yield draw(random, value[: random.randint(1, len(value))])
                    continue
                for _ in range(random.choice(CHANGES)):
                    value = mutate(node, value, random)
                yield check.family.trimmed(value)

    def _value(self, entry: Kept) -> list[Value]:
        if entry.id not in self.values:
            check = CHECKS[entry.check]
            node = check.declaration(check.family.subject(entry.edition, entry.subject, entry.version))
            with suppress(ValueError):  # it is from another day, or of those that a check begins with
                self.values[entry.id] = [value_of(node, entry.value)]
        return self.values.setdefault(entry.id, [])


def _of(subject: Any) -> tuple[str, str, int | None]:
    return subject.edition, subject.name, subject.version
