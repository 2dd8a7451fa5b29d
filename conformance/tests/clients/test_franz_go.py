"""franz-go, built here: what it claims, what it answers, and what becomes of a case that does not end."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import Died, Refused, Replied, Unsupported
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.targets.protocol import NotPlayed, Session, Unavailable
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.tests.support.releases import FRANZ_GO
from kipcheck.conformance.tests.support.sessions import asked, executed, member, shares
from kipcheck.golden.vectors import vectors

pytestmark = pytest.mark.go

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
ENDS = "0100000000010000"
HANGS = "01000000000100ffffffff0f"
"""A heartbeat that claims four thousand million tagged fields, for each of which 1.22.2 reads on past the end."""


@pytest.fixture(scope="module")
def codec() -> Iterator[Session]:
    with target("franz-go").open("apache", Role.CODEC) as session:
        yield session


@pytest.fixture(scope="module")
def leader() -> Iterator[Session]:
    with target("franz-go").open("apache", Role.LEADER) as session:
        yield session


def test_it_says_who_it_is_and_what_it_can_do(codec: Session) -> None:
    info = codec.info
    assert (info.version, info.language[:3], info.roles) == (FRANZ_GO, "go1", frozenset({Role.CODEC, Role.LEADER}))
    claimed = info.claims.messages
    assert claimed["JoinGroupRequest"] == (0, 9)
    assert claimed["ConsumerProtocolSubscription"] == (0, 3)
    assert claimed["OffsetCommitRequest"] == (0, 10)  # its fields are in another order than the definition's
    assert claimed["TransactionLogValue"] == (0, 1)
    assert claimed["StreamsGroupDescribeResponse"] == (0, 1)
    assert len(claimed) == 45  # a message whose fields did not fall into line would not be claimed
    assert info.claims.assignors == ASSIGNORS


@pytest.mark.parametrize(
    "message",
    [
        "ApiVersionsResponse", "ConsumerGroupHeartbeatResponse", "ConsumerProtocolSubscription", "JoinGroupRequest",
        "JoinGroupResponse", "MetadataResponse", "OffsetCommitRequest", "OffsetFetchResponse", "SyncGroupRequest",
        "TransactionLogValue", "UpdateFeaturesRequest",
    ],
)  # fmt: skip
def test_it_reads_and_writes_what_real_kafka_wrote(codec: Session, message: str) -> None:
    low, high = codec.info.claims.messages[message]
    plain = (
        each
        for each in vectors()
        if each.edition == "apache" and each.message == message and low <= each.version <= high
        and each.value is not None and "_unknownTaggedFields" not in str(each.value)
    )  # fmt: skip
    for vector in islice(plain, 12):
        read, written = executed(
            codec,
            asked("decode", message, vector.version, hex=vector.data.hex()),
            asked("encode", message, vector.version, value=vector.value),
        )
        assert isinstance(read, Replied), vector.name
        assert read["value"] == vector.value, vector.name
        assert isinstance(written, Replied), vector.name
        assert written["hex"] == vector.data.hex(), vector.name


def test_unknown_tags_are_taken_shown_and_kept(codec: Session) -> None:
    value = {"throttleTimeMs": 1, "errorCode": 0, "_unknownTaggedFields": [{"tag": 7, "data": "61"}]}
    data = "00000001000001070161"
    answers = executed(
        codec,
        asked("encode", "HeartbeatResponse", 4, value=value),
        asked("decode", "HeartbeatResponse", 4, hex=data),
        asked("recode", "HeartbeatResponse", 4, hex=data),
    )
    assert answers == (Replied((("hex", data),)), Replied((("value", value),)), Replied((("hex", data),)))


def test_whole_numbers_keep_their_value_and_states_stay_numbers(codec: Session) -> None:
    highest = {"offset": (1 << 63) - 1, "leaderEpoch": 1, "metadata": "", "commitTimestamp": -(1 << 63)}
    (written,) = executed(codec, asked("encode", "OffsetCommitValue", 3, value=highest))
    assert isinstance(written, Replied)
    (read,) = executed(codec, asked("decode", "OffsetCommitValue", 3, hex=written["hex"]))
    assert read == Replied((("value", highest),))
    data = "0000" + "00" * 8 + "0000" + "00" * 4 + "7f" + "00000000" + "00" * 16
    (read,) = executed(codec, asked("decode", "TransactionLogValue", 0, hex=data))
    assert isinstance(read, Replied)
    assert read["value"]["transactionStatus"] == 127


def test_what_is_refused_is_told_with_the_words_of_the_library(codec: Session) -> None:
    (found,) = executed(codec, asked("decode", "HeartbeatResponse", 4, hex="0000"))
    assert found == Refused("errors.errorString", "response did not contain enough data to be valid")


@pytest.mark.parametrize(
    ("ask", "capability"),
    [
        (asked("decode", "HeartbeatRequest", 0, hex="0001ff000000000000"), "utf-8"),
        (asked("encode", "HeartbeatResponse", 0, value={"errorCode": None}), "null"),
        (asked("encode", "HeartbeatResponse", 0, value={"errorCode": 32768}), "place"),
        (asked("encode", "StickyAssignorUserData", 1, value={"previousAssignment": [], "generation": -1}), "version"),
    ],
)
def test_what_it_has_no_words_for_is_unsupported_by_a_limit_that_it_told(
    codec: Session, ask: Step, capability: str
) -> None:
    assert capability in codec.info.claims.limits
    (found,) = executed(codec, ask)
    assert isinstance(found, Unsupported)


def test_a_case_that_does_not_end_is_told_with_its_stack_and_the_next_is_answered(codec: Session) -> None:
    cases = [
        Case("test", "apache", Role.CODEC, (asked("decode", "HeartbeatRequest", 4, hex=each),))
        for each in ("0100000000010000", HANGS, "0100000000010000")
    ]
    (before,), (hung,), (after,) = codec.run(cases)
    assert isinstance(before, Replied)
    assert before == after
    assert isinstance(hung, Died)
    assert hung.cause == "timeout"
    assert "kmsg.internalReadTags" in hung.evidence
    assert list(codec.troubles) == []


def test_it_knows_no_draft_and_plays_no_controller() -> None:
    with (
        pytest.raises(Unavailable, match="franz-go does not implement edition kip-584"),
        target("franz-go").open("kip-584", Role.CODEC),
    ):
        pass
    with pytest.raises(NotPlayed), target("franz-go").open("apache", Role.CONTROLLER):
        pass


@pytest.mark.parametrize(
    ("assignor", "a", "b"),
    [
        ("range", [["t", 0], ["t", 1], ["u", 0]], [["t", 2]]),
        ("roundrobin", [["t", 0], ["t", 2]], [["t", 1], ["u", 0]]),
    ],
)
def test_a_small_group_is_assigned(leader: Session, assignor: str, a: Any, b: Any) -> None:
    found = shares(leader, assignor, {"t": 3, "u": 1}, member("b", ["u", "t"]), member("a", ["t", "u"]))
    assert found == {"a": a, "b": b}


def test_what_is_owned_stays_and_what_moves_is_withheld_where_that_is_the_protocol(leader: Session) -> None:
    old = member("a", ["t"], owned=[["t", 0], ["t", 1], ["t", 2], ["t", 3]], generation=4)
    eager = shares(leader, "sticky", {"t": 4}, old, member("b", ["t"]))
    assert sorted(map(len, eager.values())) == [2, 2]
    slow = shares(leader, "cooperative-sticky", {"t": 4}, old, member("b", ["t"]))
    assert (len(slow["a"]), slow["b"]) == (2, [])


def test_given_user_data_are_taken_in_the_place_of_its_own(leader: Session) -> None:
    owns = "0000000100017400000002000000020000000300000005"
    found = shares(leader, "sticky", {"t": 4}, member("b", ["t"]), member("a", ["t"], userData=owns))
    assert found == {"a": [["t", 2], ["t", 3]], "b": [["t", 0], ["t", 1]]}


def test_members_with_an_instance_id_come_first_and_a_topic_that_is_not_there_is_nothing(leader: Session) -> None:
    static, other = member("z", ["t", "gone"], instance="i"), member("a", ["t", "gone"])
    assert shares(leader, "roundrobin", {"t": 1}, other, static) == {"a": [], "z": [["t", 0]]}


@pytest.mark.parametrize(
    ("assignor", "data"),
    [
        ("range", None),
        ("sticky", "0000000100017400000002000000000000000100000004"),
    ],
)
def test_user_data_are_what_its_own_member_writes(leader: Session, assignor: str, data: str | None) -> None:
    body = {"assignor": assignor, "subscription": ["t"], "owned": [["t", 1], ["t", 0]], "generation": 4}
    assert executed(leader, step("leader", "user-data", **body)) == (Replied((("hex", data),)),)


def test_another_release_is_that_release_and_its_panics_are_told() -> None:
    # A newer claim of a member that does not subscribe brings its sticky balancer down (franz-go #1348).
    owns = [["t", 0], ["t", 1], ["t", 2], ["t", 3]]
    group = [member("a", ["t"], owned=owns), member("b", [], owned=[["t", 0]], generation=9)]
    counts = [{"name": "t", "partitions": 4, "racks": None}]
    steps = [step("leader", "assign", assignor="sticky", topics=counts, members=each) for each in (group, group[:1])]
    with target("franz-go@1.21.3").open("apache", Role.LEADER) as session:
        assert session.info.version == "1.21.3"
        assert session.info.claims.messages["ApiVersionsRequest"] == (0, 4)
        (died,), (after,) = session.run([Case("test", "apache", Role.LEADER, (each,)) for each in steps])
    assert isinstance(died, Died)
    assert died.cause == "crashed"
    assert died.detail.startswith("exit status 2: panic: runtime error: index out of range")
    assert "tryRestickyStales" in died.evidence
    assert after == Replied((("assignment", [{"id": "a", "partitions": owns, "userData": None}]),))


def test_the_list_that_comes_with_kipcheck_makes_it_green_and_is_needed_for_that(tmp_path: Path) -> None:
    part = Options(
        checks=("wire/absent-fields", "wire/prefixes"), messages=("HeartbeatRequest", "HeartbeatResponse"),
        targets=("franz-go",), workers=1, out=tmp_path / "out",
    )  # fmt: skip
    plain = run(part)
    assert (plain.exit_code, plain.failures, plain.warnings, plain.known) == (1, 1, 0, 0), plain.text
    known = run(replace(part, known=("default",)))
    assert (known.exit_code, known.failures, known.warnings, known.known) == (0, 0, 0, 1), known.text
