"""KIP-932: the leader of a share partition by hand and explored, and what laws read from answers of a wrong one."""

import pytest

from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Observation, Op, Refused, Replied
from kipcheck.conformance.explore.exploration import explored
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.share_partition import clients, messages, play
from kipcheck.conformance.protocols.share_partition.model import ShareLeader
from kipcheck.conformance.protocols.share_partition.ops import OPERATIONS
from kipcheck.conformance.protocols.share_partition.rules import DEFAULT, Rules

LAWS = {each.id: each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("share-partition/")}
BEGUN = "reset earliest; produce 3; open a; open b"


def answers(text: str, release: str = "") -> list[str]:
    """Of each request: what it acquires, as ``first-last:count``, and its error."""
    machine = ShareLeader(Rules.of(release)) if release else ShareLeader()
    state, found = machine.initial(), []
    for step in OPERATIONS.parse_shorthand(text):
        state, actions = machine.step(state, OPERATIONS.event_of(step))
        for action in actions:
            answer = declared(type(action)).written(action)
            parts = [f"{first}-{last}:{count}" for first, last, count in answer.get("acquired", ())]
            found.append(" ".join([*parts, answer.get("class") or answer.get("refused") or ""]).strip())
    return found


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (BEGUN, ""),
        (f"{BEGUN}; ack a accept 0-0; ack a release 1-1; fetch b", "1-1:2"),
        (f"{BEGUN}; ack a reject 0-2; produce 1; fetch a", "3-3:1"),
        (f"{BEGUN}; ack b accept 0-0", "INVALID_RECORD_STATE"),
        (f"{BEGUN}; ack a accept 0-3", "INVALID_REQUEST"),
        (f"{BEGUN}; ack a accept 0-0; ack b accept 0-0", ""),
        (f"{BEGUN}; ack a accept 1-1; ack a accept 0-1", "INVALID_RECORD_STATE"),
        (f"{BEGUN}; pass 30000; ack a accept 0-0", "INVALID_RECORD_STATE"),
        (f"{BEGUN}; pass 10000; ack a renew 1-1; pass 20000; fetch b", "0-0:2 2-2:2"),
        (f"{BEGUN}; fetch a renew 0-0", ""),
        (f"{BEGUN}; close a; fetch b", "0-2:2"),
        (f"{BEGUN}; disconnect a; fetch b most 1", "0-2:2"),
        (f"{BEGUN}; disconnect a; fetch b most 1 strictly", "0-0:2"),
        ("reset earliest; produce 3; open a most 2", "0-1:1"),
        ("produce 3; open a; produce 1; fetch a", "3-3:1"),
        (f"{BEGUN}; ack a accept 1-1; reload; open b", "0-0:2 2-2:2"),
        ("fetch a+1", "SHARE_SESSION_NOT_FOUND"),
        ("fetch a-1", "SHARE_SESSION_NOT_FOUND"),
        ("open a; fetch a+1", "INVALID_SHARE_SESSION_EPOCH"),
        ("open a; ack-opening a accept 0-0", "INVALID_SHARE_SESSION_EPOCH"),
        ("open a accept 0-0", "INVALID_REQUEST"),
    ],
)
def test_the_last_answer(text: str, last: str) -> None:
    assert answers(text)[-1] == last


def test_what_was_delivered_often_is_delivered_in_smaller_parts() -> None:
    """Source: ``SharePartition.acquireSubsetBatchRecords``. With a limit of 3 the third delivery is of one record."""
    late = f"{BEGUN}; pass 30000; fetch b; pass 30000; fetch b; fetch b; fetch b"
    assert answers(late)[2:] == ["0-2:2", "0-0:3", "1-1:3", "2-2:3"]
    assert answers(late, "4.1.1")[2:] == ["0-2:2", "0-2:3", "", ""]


def test_releases() -> None:
    assert answers(f"{BEGUN}; close a; fetch b", "4.1.1")[-1] == "0-2:1"
    assert answers(f"{BEGUN}; ack a renew 0-0", "4.1.1")[-1] == "INVALID_REQUEST"
    lost = "open a; produce 1; reload; open a"
    assert (answers(lost)[-1], answers(lost, "4.4.0")[-1]) == ("0-0:1", "")


def history(text: str, found: list[Observation]) -> History:
    steps = OPERATIONS.parse_shorthand(text)
    case = Case("share-partition/records", "apache", Role.COORDINATOR, steps)
    return History(
        case, "by hand", tuple(Op(at, *each, at + 1) for at, each in enumerate(zip(steps, found, strict=True)))
    )


def acquired(*ranges: list[int]) -> Replied:
    return Replied((("acquired", [*ranges]),))


@pytest.mark.parametrize(
    ("text", "found", "broken"),
    [
        ("open a", [acquired([0, 0, 1])], "nothing-skipped"),
        ("reset earliest; produce 2; open a", [Replied(()), Replied(()), acquired([1, 1, 1])], "nothing-skipped"),
        ("reset earliest; produce 1; open a", [Replied(()), Replied(()), acquired([0, 0, 2])], "counts-deliveries"),
        (
            "open a; produce 1; fetch a; produce 1; fetch a",
            [acquired(), Replied(()), acquired([0, 0, 1]), Replied(()), acquired()],
            "delivers-what-is-free",
        ),
        ("open a; ack a accept 0-0", [acquired(), Replied((("refused", "UNKNOWN_SERVER_ERROR"),))], "refuses-others"),
        ("open a; fetch a", [acquired(), Refused("INVALID_SHARE_SESSION_EPOCH", "")], "session-epochs"),
        ("open a accept 0-0", [acquired()], "refuses-invalid"),
    ],
)
def test_laws_read_answers(text: str, found: list[Observation], broken: str) -> None:
    given = history(text, found)
    assert [id for id, each in LAWS.items() if next(each.search(given), None)] == [f"share-partition/{broken}"]


def test_messages_have_what_was_asked() -> None:
    consumers = clients.ShareConsumers(DEFAULT)
    opening, acknowledging = OPERATIONS.parse_shorthand("open a; fetch a accept 0-1")
    first = consumers.sent(0, opening)
    assert first is not None and first.request.topics == (messages.Topic(),)
    consumers.learn(0, opening, consumers.observed(messages.ShareFetched(acquired=((0, 1, 1),))))
    second = consumers.sent(1, acknowledging)
    assert second is not None and second.request.epoch == 1
    assert second.request.topics[0].partitions[0].batches == (messages.Batch(0, 1, (1,)),)


@pytest.mark.parametrize("release", ["4.1.1", "4.2.1", "4.4.0"])
def test_no_order_of_events_breaks_a_law(release: str) -> None:
    """The start offset that a release chooses again is none of a loaded partition: laws of steps do not see it."""
    (playable,) = play.PLAYABLES
    exact = edition(f"apache@{release}")
    scope = playable.scope("requests=2", exact)
    search = explored(playable, exact, scope, playable.world(exact, scope), 100_000, None).search
    assert search.complete and search.breach is None
