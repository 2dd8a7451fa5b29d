"""What a coordinator has after it has read its log: the laws, on answers by hand, and what is drawn."""

from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Refused, Replied
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS
from kipcheck.conformance.protocols.declare.draw_compaction import drawn_compaction
from kipcheck.conformance.protocols.group.ops import OPERATIONS as CLASSIC
from kipcheck.conformance.protocols.migration.ops import OPERATIONS as MIXED
from kipcheck.conformance.protocols.reconciled.log_laws import kept, outlived, served
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS as SHARES
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS as STREAMS
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.sessions import played

DONE = Replied(())
FAMILIES: dict[str, Operations[Any, Any]] = {
    "consumer-group": OPERATIONS, "streams-group": STREAMS, "share-group": SHARES, "migration": MIXED,
}  # fmt: skip


def beaten(epoch: int, given: object = None) -> Replied:
    return Replied((("epoch", epoch), ("assignment", given)))


def fetched(*rows: list[Any]) -> Replied:
    return Replied((("offsets", [*rows]),))


def history(text: str, *answers: Observation) -> History:
    steps = OPERATIONS.parse_shorthand(text)
    return played(Case("consumer-group/records", "apache", Role.COORDINATOR, steps), answers)


@pytest.mark.parametrize(
    ("text", "answers", "shapes"),
    [
        ("beat a told; beat a told; reload; beat a told", (beaten(2), beaten(2), DONE, beaten(2)), []),
        ("beat a told; beat a told; reload; beat a told", (beaten(2), beaten(2), DONE, beaten(3)), ["epoch"]),
        ("beat a told; beat a told; reload; beat a told", (beaten(1), beaten(2), DONE, beaten(3)), []),
        ("beat a told; beat a told; reload; beat a on t told", (beaten(2), beaten(2), DONE, beaten(3, [["t", 0]])), []),
        ("beat a before; beat a before; reload; beat a before", (beaten(2), beaten(2), DONE, beaten(3)), []),
        ("fetch; fetch; reload; reload compacted 100; fetch", (fetched(), fetched(), DONE, DONE, fetched()), []),
        ("beat a told; beat a told; reload; beat a told",
         (Replied((("epoch", 2), ("endpoint_epoch", 3), ("endpoints", None))),) * 2
         + (DONE, Replied((("epoch", 2), ("endpoint_epoch", 0), ("endpoints", ())))), []),
        ("reload compacted 50; beat a told", (DONE, Refused("NOT_COORDINATOR")), ["compacted"]),
        ("reload compacted 50 from 20; beat a told", (DONE, Refused("NOT_COORDINATOR")), ["compacted meanwhile"]),
        ("reload; beat a told", (DONE, Refused("COORDINATOR_LOAD_IN_PROGRESS")), ["whole log"]),
        ("beat a told; reload", (Refused("NOT_COORDINATOR"), DONE), []),
        ("beat a told; beat a told; reload; beat a told",
         (beaten(2), beaten(2), DONE, Refused("UNKNOWN_MEMBER_ID")), ["UNKNOWN_MEMBER_ID"]),
    ],
)  # fmt: skip
def test_what_is_answered_alike_twice_is_answered_alike_after_a_reload(
    text: str, answers: tuple[Observation, ...], shapes: list[str]
) -> None:
    assert [each.shape[-1] for each in outlived(history(text, *answers))] == shapes


def test_other_laws_say_nothing_of_a_group_that_is_not_loaded() -> None:
    refused = Refused("NOT_COORDINATOR")
    lost = history(
        "beat a told; reload; fetch; beat a told; beat a told", beaten(2), DONE, fetched(), refused, beaten(2)
    )
    assert len(served(lost).ops) == 3
    begun = history("beat a told; reload; beat a told", refused, DONE, beaten(2))
    assert served(begun) is begun


def test_an_answer_to_an_earlier_request_says_nothing_of_the_log() -> None:
    steps = MIXED.parse_shorthand("classic-join x; reload; receive x")
    lost = Replied((("received", "NOT_COORDINATOR"),))
    case = Case("migration/records", "apache", Role.COORDINATOR, steps)
    assert not [*outlived(played(case, (Replied((("received", "parked"),)), DONE, lost)))]


@pytest.mark.parametrize(
    ("row", "kinds"),
    [
        (["t", 0, 5, 3, "m"], []),
        (["t", 0, 6, 3, "m"], ["offset"]),
        (["t", 0, 5, -1, "m"], ["leader epoch"]),
        (["t", 0, 5, 3, ""], ["metadata"]),
        (["t", 1, 5, 3, "m"], ["lost", "from nowhere"]),
    ],
)
def test_a_commit_is_kept_with_all_that_it_has(row: list[Any], kinds: list[str]) -> None:
    found = kept(history("commit 5 for 0 in 3 with m; reload; fetch", DONE, DONE, fetched(row)), OPERATIONS.event_of)
    assert [each.shape[-1] for each in found] == kinds


def test_a_refused_commit_is_not_kept() -> None:
    refused = Refused("UNKNOWN_MEMBER_ID")
    assert not [*kept(history("commit 5 for 0; fetch", refused, fetched()), OPERATIONS.event_of)]


RELOADS = ("reload", "reload compacted 40", "reload compacted 100 gone", "reload compacted 80 from 30")


@for_each([(name, text) for name in FAMILIES for text in RELOADS])
def test_shorthand_says_what_is_compacted(name: str, text: str) -> None:
    assert FAMILIES[name].shorthand(FAMILIES[name].parse_shorthand(text)) == text


def test_a_move_of_a_classic_group_says_it_too() -> None:
    for text in ("loaded", "loaded compacted 100 gone", "loaded compacted 80 from 30"):
        assert CLASSIC.shorthand(CLASSIC.parse_shorthand(text)) == text
    assert dict(CLASSIC.parse_shorthand("loaded")[0].body) == {}


def test_any_part_of_a_log_is_drawn() -> None:
    drawn = [Reload(**drawn_compaction(Random(seed))) for seed in range(200)]
    assert all(each.since <= each.compacted for each in drawn if each.since)
    assert {each.tombstones for each in drawn} == {"kept", "gone"}
    assert not any(each.since for each in drawn if each.tombstones == "gone")
    assert len({each.compacted for each in drawn}) > 60


def test_default_cases_compact_logs_of_every_kind_of_group() -> None:
    for name in (*FAMILIES, "group"):
        check = CHECKS[f"{name}/records"]
        (subject,) = check.family.subjects("apache")
        batch = check.batch or check.family.batch
        assert batch is not None
        steps = [
            step
            for seed in range(30)
            for found in check.conversations(subject, batch(subject, Random(seed))(Random(seed), None), Random(seed))
            for step in found.steps
        ]
        assert any(step.body.get("compacted") for step in steps), name
