"""What is held next: an endless row of batches, drawn for one shard from its seed and the corpus it begins with.

A batch is about one check and one subject. The conversations with a machine in one batch are drawn under one swarm.
Nothing here asks a clock, a hash or another process: same shard, same snapshot, same batches.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, TypeAlias

from conformance.campaign.plan import Shard
from conformance.checks import CHECKS, Check
from conformance.checks.declared import Conversation, Value

Source: TypeAlias = Literal["given", "replay", "mutate", "draw", "uniform", "hypothesis"]
Units: TypeAlias = Mapping[str, Sequence[Any]]
"""Check -> the subjects of it that the target claims, in an order that stays."""
TOGETHER: Final = 20
"""Conversations with a machine in one batch."""
FEW: Final = (1, 4)
"""Values of anything else in one batch."""
FIRST_SHARE: Final = 0.1
"""Of drawn values: one of those that a check begins with."""
GIVEN: Final = 16
"""Conversations in a batch of a check that draws none."""


@dataclass(frozen=True, slots=True)
class Batch:
    check: str
    subject: Any
    source: Source
    values: Sequence[Value] = ()
    given: Sequence[Conversation] = ()
    """Of a check that draws nothing, in the place of values."""


def batches(shard: Shard, units: Units, snapshot: object) -> Iterator[Batch]:
    """Without end. Errors: ValueError where there is nothing to draw."""
    wanted = [id for id, subjects in units.items() if subjects]
    if not wanted:
        raise ValueError("no check has a subject that the target claims")
    random = Random(f"{shard.own_seed}/batches")
    while True:
        for id in random.sample(wanted, len(wanted)):
            check = CHECKS[id]
            if check.heavy and random.random() >= 0.1:
                continue
            subject = random.choice(units[id])
            yield _drawn(check, subject, random)


def _drawn(check: Check[Any], subject: Any, random: Random) -> Batch:
    if not check.values:
        given = list(check.given(subject))
        return Batch(check.id, subject, "given", given=random.sample(given, min(GIVEN, len(given))))
    one = check.drawing(subject, random)
    number = TOGETHER if check.family.batch is not None else random.randint(*FEW)
    values = [
        random.choice(check.first)(subject) if check.first and random.random() < FIRST_SHARE else one(random)
        for _ in range(number)
    ]
    return Batch(check.id, subject, "draw", values)
