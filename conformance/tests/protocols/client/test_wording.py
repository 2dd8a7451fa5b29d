"""How failures of live clients are shown."""

import asyncio
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.live.client.in_process import SETTLE_S, Consumers, consumer
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.wording import exhibits
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import observed


def shown(name: str, law: str, text: str = "rebalance; stop") -> list[dict[str, Any]]:
    steps = OPERATIONS.parse_shorthand(text)
    answers = asyncio.run(play(served("apache"), Consumers(consumer(name)), steps, SETTLE_S))
    ops = [Op(place, *each, place + 1) for place, each in enumerate(zip(steps, map(observed, answers), strict=True))]
    history = History(Case("client/groups", "apache", Role.CLIENT, steps), "it", tuple(ops))
    violation = next(iter(next(each for each in all_invariants(Role.CLIENT) if each.id == law).search(history)))
    return exhibits(history, violation)


def test_the_breach_is_marked_and_its_neighbours_are_shown() -> None:
    (sequence,) = shown("NamesAnother", "client/names-itself")
    guilty = [each["says"] for each in sequence["steps"] if each["guilty"]]
    assert len(guilty) == 1 and "Heartbeat v3, m1, generation 8" in guilty[0]
    assert len(sequence["steps"]) < 20


def test_a_refused_request_is_shown_with_its_bytes() -> None:
    sequence, data = shown("WritesLoosely", "client/encodes-strictly")
    (guilty,) = [each for each in data["rows"] if each["guilty"]]
    assert guilty["type"] == "trailing" and guilty["bytes"] == "00"
    assert any(each["guilty"] and "which strict decoding refuses" in each["says"] for each in sequence["steps"])
