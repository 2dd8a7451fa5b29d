"""How failures of live clients are shown."""

import asyncio
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.live.client.in_process import SETTLE_S, Consumers, consumer
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.protocols.client import events as client_events
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.wording import exchanges, exhibits
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


def at_rest(*events: client_events.Event) -> History:
    """A script of one step with these events."""
    steps = OPERATIONS.parse_shorthand("pass 1")
    answer = observed({"status": "accepted", "actions": [*map(client_events.EVENTS.to_json, events)]})
    return History(Case("client/groups", "apache", Role.CLIENT, steps), "it", (Op(0, steps[0], answer, 1),))


def heartbeat(ms: int) -> tuple[client_events.Event, client_events.Event]:
    sent = client_events.RequestSeen(ms, 1, "Heartbeat", 3, "m", 1)
    return sent, client_events.AnswerSeen(ms + 1, 1, "Heartbeat", 3, ("m", 1), 0)


def test_a_silence_is_shown_with_the_request_in_front_of_it_however_far_it_is_from_the_breach() -> None:
    fetches = [client_events.RequestSeen(2000 + ms, 2, "Fetch", ms % 7) for ms in range(100)]
    history = at_rest(*heartbeat(100), *heartbeat(400), *fetches, *heartbeat(5400))
    violation = Violation("silent", (0,), shape=("no heartbeat",), window_ms=(401, 5400), at_ms=5400)
    rows = [(row["says"], row["guilty"]) for row in exhibits(history, violation)[0]["steps"]]
    assert rows[1:3] == [
        ("0.10 s Heartbeat v3, m1, generation 1 (2 times until 0.40 s)", False),
        ("0.40 s sends nothing more to its group for 5.00 s", True),
    ]
    assert rows[5] == ("89 events are not shown", False) and rows[-1] == (
        "5.40 s Heartbeat v3, m1, generation 1",
        False,
    )


def test_a_client_that_waits_for_an_answer_or_is_stopped_is_not_silent() -> None:
    waits = client_events.RequestSeen(100, 1, "JoinGroup", 5, "m"), client_events.AnswerSeen(6000, 1, "JoinGroup", 5)
    frozen = client_events.Frozen(6100), client_events.Thawed(9000)
    history = at_rest(*waits, *frozen, *heartbeat(9100), *heartbeat(9400))
    assert not any("sends nothing" in row["says"] for row in exchanges(history))


def test_all_exchanges_of_a_script_are_shown_but_for_the_middle_of_a_long_step() -> None:
    history = at_rest(*(client_events.RequestSeen(ms, 2, "Fetch", ms % 7) for ms in range(500)))
    rows = exchanges(history)
    assert len(rows) == 202 and rows[101]["says"] == "300 events are not shown"
